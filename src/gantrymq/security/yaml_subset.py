"""The part of YAML that account files are written in, and nothing else of it.

    name: text            a block map; every name once
    list:                 a block list, indented or not
      - text              with maps or texts in it
      - name: text
    empty: []             the only flow there is; {} likewise
    'text'  "text"        quoted; a plain text ends where a comment or the line does
    # comment

A value is a text, a list, a map or nothing. Whether a text is a number or a word such as `true`
is for whoever reads it: a `Text` knows whether it stood in quotes. Whatever else YAML has, as
anchors, aliases, tags, block texts, merges, documents and tabs, is refused with the number of its
line: no file of accounts needs it, and each is a way to make a file mean what nobody sees in it.
An error never repeats a value: it may be a secret.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from gantrymq.errors import InvalidValue, shown

DEPTH_MAX: Final = 16
_NAME: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)[ ]*:(?:[ ]+(.*))?$")
_INDICATORS: Final = {
    "&": "an anchor", "*": "an alias", "!": "a tag", "|": "a block text", ">": "a block text",
    "{": "a flow map", "[": "a flow list", "%": "a directive", "@": "a reserved character",
    "`": "a reserved character", "?": "a key of several parts", ",": "a comma", "}": "a bracket",
    "]": "a bracket", "#": "a comment", "'": "a quote", '"': "a quote",
}  # fmt: skip
_ESCAPES: Final = {"\\": "\\", '"': '"', "/": "/", "n": "\n", "t": "\t", "r": "\r", "0": "\0"}
_HEX_DIGITS: Final = {"x": 2, "u": 4, "U": 8}


class WrongYaml(InvalidValue):
    """A file is not in the part of YAML that is read here; says which line."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")


class Text(NamedTuple):
    """A scalar."""

    value: str
    quoted: bool
    line: int


class Nothing(NamedTuple):
    """A name without a value, or `null`."""

    line: int


class Sequence(NamedTuple):
    """A list."""

    items: list[Value]
    line: int


class Mapping(NamedTuple):
    """A map."""

    entries: dict[str, Value]
    line: int


Value = Text | Nothing | Sequence | Mapping


class _Line(NamedTuple):
    number: int
    indent: int
    text: str


def parse(source: str) -> Value:
    """Return the value of a file; an empty one is nothing.

    Raises:
        WrongYaml: it is not in the part of YAML that is read here.
    """
    lines = _lines(source)
    if not lines:
        return Nothing(1)
    reader = _Reader(lines)
    found = reader.block(lines[0].indent, 0)
    if reader.place < len(lines):
        raise WrongYaml(lines[reader.place].number, "it is indented like nothing before it")
    return found


def _lines(source: str) -> list[_Line]:
    """Return the lines that say something."""
    found: list[_Line] = []
    for number, raw in enumerate(re.split(r"\r\n|\n|\r", source.removeprefix("\ufeff")), 1):
        text = raw.lstrip(" ")
        if not text.strip() or text.startswith("#"):
            continue
        if text.startswith("\t"):
            raise WrongYaml(number, "it is indented with a tab; use spaces")
        if (control := re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text)) is not None:
            raise WrongYaml(number, f"it has the control character {control[0]!r}")
        if raw.startswith("%"):
            raise WrongYaml(number, "a directive; there is none in such a file")
        if text.rstrip() == "---" and not found:
            continue
        if text.startswith(("---", "...")):
            raise WrongYaml(number, "a second document; there is one in a file")
        found.append(_Line(number, len(raw) - len(text), text.rstrip()))
    return found


class _Reader:
    """Reads blocks, line by line."""

    def __init__(self, lines: list[_Line]) -> None:
        self._lines = lines
        self.place = 0

    def _now(self) -> _Line | None:
        return self._lines[self.place] if self.place < len(self._lines) else None

    def block(self, indent: int, depth: int) -> Value:
        """Read the map or list that begins here."""
        line = self._lines[self.place]
        if depth > DEPTH_MAX:
            raise WrongYaml(line.number, f"more than {DEPTH_MAX} blocks inside each other")
        if _is_item(line.text):
            return self._sequence(indent, depth)
        if _NAME.match(line.text):
            return self._mapping(indent, depth)
        self.place += 1
        return _scalar(line.text, line.number)

    def _sequence(self, indent: int, depth: int) -> Sequence:
        items: list[Value] = []
        first = self._lines[self.place].number
        while (line := self._now()) is not None and line.indent == indent and _is_item(line.text):
            rest = line.text[1:].lstrip(" ")
            if not rest or rest.lstrip("\t ").startswith("#"):
                self.place += 1
                items.append(self._below(line, indent, depth, lists_at=indent + 1))
                continue
            # What stands behind the dash is a block of its own, as far in as it stands.
            inner = indent + len(line.text) - len(rest)
            self._lines[self.place] = _Line(line.number, inner, rest)
            items.append(self.block(inner, depth + 1))
        self._check_indent(indent)
        return Sequence(items, first)

    def _mapping(self, indent: int, depth: int) -> Mapping:
        entries: dict[str, Value] = {}
        first = self._lines[self.place].number
        while (line := self._now()) is not None and line.indent == indent:
            if _is_item(line.text):
                break
            named = _NAME.match(line.text)
            if named is None:
                raise WrongYaml(line.number, "it is not `name: value`")
            name, rest = named[1], (named[2] or "").lstrip("\t ")
            if name in entries:
                raise WrongYaml(line.number, f"{shown(name)} stands here for the second time")
            self.place += 1
            if not rest or rest.startswith("#"):
                entries[name] = self._below(line, indent, depth, lists_at=indent)
            else:
                entries[name] = _scalar(rest, line.number)
        self._check_indent(indent)
        return Mapping(entries, first)

    def _below(self, line: _Line, indent: int, depth: int, *, lists_at: int) -> Value:
        """Read what is indented below a line; nothing, if nothing is.

        A list may stand as far out as the name that it belongs to.
        """
        below = self._now()
        if below is None or below.indent < indent:
            return Nothing(line.number)
        if below.indent > indent or (_is_item(below.text) and below.indent >= lists_at):
            return self.block(below.indent, depth + 1)
        return Nothing(line.number)

    def _check_indent(self, indent: int) -> None:
        line = self._now()
        if line is not None and line.indent > indent:
            raise WrongYaml(line.number, "it is indented like nothing before it")


def _is_item(text: str) -> bool:
    return text == "-" or text.startswith("- ")


def _scalar(text: str, line: int) -> Value:
    """Read what stands behind a name or a dash."""
    if text[0] in "'\"":
        return _quoted(text, line)
    plain = re.split(r"\s#", text, maxsplit=1)[0].rstrip()
    if not plain:
        raise WrongYaml(line, "a blank that is neither a space nor a tab; put it in quotes")
    if plain in {"[]", "{}"}:
        return Sequence([], line) if plain == "[]" else Mapping({}, line)
    if plain in {"~", "null", "Null", "NULL"}:
        return Nothing(line)
    if (what := _INDICATORS.get(plain[0])) is not None:
        raise WrongYaml(
            line, f"{plain[0]} at the beginning is {what}; put it in quotes if it is a text"
        )
    if ": " in plain or plain.endswith(":"):
        raise WrongYaml(line, "the value has a colon in it; put it in quotes")
    if "\t" in plain:
        raise WrongYaml(line, "a tab stands in a text; put it in quotes")
    return Text(plain, quoted=False, line=line)


def _quoted(text: str, line: int) -> Text:
    quote = text[0]
    value: list[str] = []
    place = 1
    while place < len(text):
        one = text[place]
        place += 1
        if one == quote:
            if quote == "'" and text[place : place + 1] == "'":
                value.append("'")
                place += 1
                continue
            rest = text[place:]
            if rest.strip() and not re.match(r"\s+#", rest):
                raise WrongYaml(line, "something stands behind the closing quote")
            return Text("".join(value), quoted=True, line=line)
        if one == "\\" and quote == '"':
            one, place = _escaped(text, place, line)
        value.append(one)
    raise WrongYaml(line, "the quote is not closed on its line")


def _escaped(text: str, place: int, line: int) -> tuple[str, int]:
    """Return the character that an escape stands for, and where the next one is."""
    kind = text[place : place + 1]
    if kind in _ESCAPES:
        return _ESCAPES[kind], place + 1
    digits = text[place + 1 : place + 1 + _HEX_DIGITS.get(kind, 0)]
    if kind in _HEX_DIGITS and re.fullmatch(r"[0-9a-fA-F]+", digits):
        number = int(digits, 16)
        if (
            len(digits) == _HEX_DIGITS[kind]
            and number <= 0x10FFFF
            and not 0xD800 <= number < 0xE000
        ):
            return chr(number), place + 1 + len(digits)
    raise WrongYaml(line, f"\\{kind} is no escape that is read here")


# -- writing ---------------------------------------------------------------------------------------

Plain = str | int | bool | None | list["Plain"] | dict[str, "Plain"]
"""What can be written."""
_BARE: Final = re.compile(r"[A-Za-z/_][A-Za-z0-9%/._|=*-]*")
_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def write(value: dict[str, Plain]) -> str:
    """Return a file, which `parse` and any YAML reader understand alike."""
    return "".join(f"{line}\n" for line in _written(value, 0))


def _written(value: dict[str, Plain], indent: int) -> list[str]:
    lines: list[str] = []
    pad = " " * indent
    for name, one in value.items():
        if isinstance(one, list) and one:
            lines.append(f"{pad}{name}:")
            for item in one:
                lines += _item(item, indent)
        elif isinstance(one, dict) and one:
            lines.append(f"{pad}{name}:")
            lines += _written(one, indent + 2)
        else:
            lines.append(f"{pad}{name}: {_text(one)}".rstrip())
    return lines


def _item(item: Plain, indent: int) -> list[str]:
    pad = " " * indent
    if isinstance(item, dict) and item:
        inner = _written(item, indent + 2)
        return [f"{pad}- {inner[0].lstrip(' ')}", *inner[1:]]
    return [f"{pad}- {_text(item)}"]


def _text(value: Plain) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list | dict):
        return "[]" if isinstance(value, list) else "{}"
    if _BARE.fullmatch(value) and value.lower() not in _WORDS:
        return value
    escaped = "".join(_safe(one) for one in value)
    return f'"{escaped}"'


def _safe(one: str) -> str:
    if one in '"\\':
        return "\\" + one
    return one if one.isprintable() else f"\\U{ord(one):08x}"
