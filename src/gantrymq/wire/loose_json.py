"""The tolerant half of `fastjson`: reads what a strict JSON parser refuses.

One pass over the tokens of the text, with a stack of open containers and, beside it, what may come
next. An object can stand where a key is expected, so a key is whatever value is finished in that
place. Every character is looked at once (the patterns are possessive: they never go back), the
stack stops at `JSON_DEPTH_MAX`, and numbers have a length: neither depth nor size of the input can
hurt.
"""

import re
from typing import Final, NamedTuple

from gantrymq.errors import ContentError
from gantrymq.limits import JSON_DEPTH_MAX

_NUMBER_CHARACTERS_MAX: Final = 400
"""The longest double in plain decimal digits has fewer; longer ones only cost time to convert."""
_SHOWN: Final = 32

_TOKEN: Final = re.compile(
    r"""[ \t\r\n\f]*+ (?:
        ([,:]) | ([{\[]) | ([}\]])
        | "( (?: [^"\\]++ | \\[\s\S] )*+ )"
        | '( (?: [^'\\]++ | \\[\s\S] )*+ )'
        | ( [-+]?[0-9]++ (?: \.[0-9]*+ )?+ (?: [eE][-+]?[0-9]++ )?+ )
        | ( [A-Za-z_$][\w$]*+ )
        | (\Z) | ([\s\S]) )""",
    re.VERBOSE,
)
"""One token; the last group takes what is none, so that tokens follow each other without gaps."""
_SEPARATOR, _OPENER, _CLOSER, _DOUBLE, _SINGLE, _NUMBER, _WORD, _END, _GARBAGE = range(1, 10)
_TEXTS: Final = frozenset({_DOUBLE, _SINGLE, _NUMBER, _WORD})
"""What can be a key; a number or a word gets here only as one."""
_ESCAPE: Final = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([0-3][0-7]{2}|[0-7])|([\s\S]))"
)
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_WORDS: Final = {
    "true": True,
    "false": False,
    "null": None,
    "undefined": None,
    "NaN": float("nan"),
}
_ESCAPES: Final = {
    **dict(zip("ntrbfvF", "\n\t\r\b\f\v\f", strict=True)),
    **{sign: sign for sign in "\"'\\/"},
}

# What may come next.
_VALUE: Final = 0
_ELEMENT: Final = 1
"""A value, or the end of the array."""
_KEY: Final = 2
"""A key, or the end of the object."""
_COLON: Final = 3
_NEXT: Final = 4
"""A comma, or the end of the container."""
_NOTHING: Final = 5
_WANTED: Final = (
    "a value",
    "a value or ']'",
    "a key or '}'",
    "a colon behind the key",
    "a comma or the end of the object or list",
    "nothing behind the end",
)


class ObjectKeyed(NamedTuple):
    """A map with objects as keys; every key is as it was read."""

    pairs: tuple[tuple[object, object], ...]


class _Frame:
    """An object or an array that is being read."""

    __slots__ = ("closer", "has_key", "key", "object_keyed", "pairs", "values")

    def __init__(self, *, is_object: bool) -> None:
        self.closer = "}" if is_object else "]"
        self.pairs: list[tuple[object, object]] = []
        self.values: list[object] = []
        self.key: object = None
        self.has_key = False
        self.object_keyed = False

    def finish(self) -> object:
        """Return what was read."""
        if self.closer == "]":
            return self.values
        return ObjectKeyed(tuple(self.pairs)) if self.object_keyed else dict(self.pairs)


class LooseReader:
    """Reads one text, once."""

    __slots__ = ("_expected", "_field", "_result", "_stack", "_text")

    def __init__(self, text: str, field: str) -> None:
        self._text = text
        self._field = field
        self._expected = _VALUE
        self._stack: list[_Frame] = []
        self._result: object = None

    def read(self) -> object:
        """Return the one value that the text holds.

        Raises:
            ContentError: it holds none, or something behind it.
        """
        for token in _TOKEN.finditer(self._text):
            group = token.lastindex or _GARBAGE
            text, at = token[group], token.start(group)
            if group == _NUMBER and self._expected != _KEY:
                self._put(self._number(text, at), at)
            elif group == _SEPARATOR:
                self._separate(text, at)
            elif group == _WORD and self._expected != _KEY:
                self._put(self._word(text, at), at)
            elif group in _TEXTS:
                self._put(self._unescaped(text, at) if "\\" in text else text, at)
            elif group == _OPENER:
                self._open(text, at)
            elif group == _CLOSER:
                self._close(text, at)
            elif group == _END and self._expected == _NOTHING:
                break
            else:
                raise self._unexpected(text, at)
        return self._result

    def _separate(self, sign: str, at: int) -> None:
        """Go on behind a comma or a colon."""
        if sign == "," and self._expected == _NEXT:
            self._expected = _KEY if self._stack[-1].closer == "}" else _ELEMENT
        elif sign == ":" and self._expected == _COLON:
            self._expected = _VALUE
        else:
            raise self._unexpected(sign, at)

    def _open(self, sign: str, at: int) -> None:
        """Begin an object or an array, or an object that is a key."""
        if self._expected > _KEY:
            raise self._unexpected(sign, at)
        if len(self._stack) == JSON_DEPTH_MAX:
            raise self._error(f"more than {JSON_DEPTH_MAX} levels of nesting", at)
        self._stack.append(_Frame(is_object=sign == "{"))
        self._expected = _KEY if sign == "{" else _ELEMENT

    def _close(self, sign: str, at: int) -> None:
        """End the innermost container, which is then a value of the next one."""
        may_end = self._expected in {_ELEMENT, _KEY, _NEXT}
        if not may_end or self._stack[-1].closer != sign:
            raise self._unexpected(sign, at)
        value = self._stack.pop().finish()
        frame = self._stack[-1] if self._stack else None
        wants_key = frame is not None and frame.closer == "}" and not frame.has_key
        self._expected = _KEY if wants_key else _VALUE
        self._put(value, at)

    def _put(self, value: object, at: int) -> None:
        """Put a finished value where it belongs: into a container, as a key, or as the result."""
        if self._expected > _KEY:
            raise self._unexpected(self._text[at], at)
        if not self._stack:
            self._result = value
            self._expected = _NOTHING
            return
        frame = self._stack[-1]
        if self._expected == _KEY:
            self._put_key(frame, value, at)
            return
        if frame.has_key:
            frame.pairs.append((frame.key, value))
            frame.has_key = False
        else:
            frame.values.append(value)
        self._expected = _NEXT

    def _put_key(self, frame: _Frame, key: object, at: int) -> None:
        """Keep a key until its value is read."""
        if isinstance(key, dict):
            frame.object_keyed = True
        elif not isinstance(key, str):
            raise self._error("a key is a text, a number or an object", at)
        frame.key = key
        frame.has_key = True
        self._expected = _COLON

    def _number(self, text: str, at: int) -> object:
        """Convert a number that is not too long to be one."""
        if len(text) > _NUMBER_CHARACTERS_MAX:
            raise self._error(f"a number of {len(text)} characters", at)
        try:
            return int(text)
        except ValueError:
            return float(text)

    def _word(self, text: str, at: int) -> object:
        """Convert one of the few words that are values."""
        if text not in _WORDS:
            raise self._unexpected(text, at)
        return _WORDS[text]

    def _unescaped(self, text: str, at: int) -> str:
        """Replace escapes; two of them can make one character."""

        def replace(match: re.Match[str]) -> str:
            unicode, byte, octal, sign = match.groups()
            if sign is None:
                return chr(int(unicode or byte or octal, 8 if octal else 16))
            if sign not in _ESCAPES:
                raise self._error(f"unknown escape \\{sign}", at + match.start())
            return _ESCAPES[sign]

        plain = _ESCAPE.sub(replace, text)
        if _SURROGATE.search(plain):
            try:
                return plain.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
            except UnicodeDecodeError:
                raise self._error("half a surrogate pair", at) from None
        return plain

    def _unexpected(self, text: str, at: int) -> ContentError:
        """Say what was found and what could have been there."""
        if text in {'"', "'"} and self._text[at] == text:
            return self._error("the text ends inside quotes", at)
        found = f"found {text[:_SHOWN]!r}" if text else "the text ends too early"
        return self._error(f"expected {_WANTED[self._expected]}, {found}", at)

    def _error(self, problem: str, at: int) -> ContentError:
        """Name the place: the keys that lead to it, and the character."""
        keys = [frame.key for frame in self._stack if frame.has_key]
        path = "".join(f".{key[:_SHOWN]}" for key in keys if isinstance(key, str))
        return ContentError(self._field + path, f"{problem}, at character {at}")
