r"""Settings as text: Java's `.properties` format (25, 26, 318, 319, 1009, 1010, 2001).

Java writes these bodies as plain `key=value` lines and reads them with `Properties.load`, so a
backslash or a line break inside a value does not survive between two Java peers. Here the writer
escapes what the reader would otherwise take for something else, and nothing more: for every text in
the golden data the result is the same bytes.

The reader follows `Properties.load`: `#` and `!` begin a comment, a backslash at the end of a line
joins the next one, the key ends at the first bare `=`, `:` or blank, `\uXXXX` and `\t \n \r \f` are
escapes, any other escaped character stands for itself. Text is UTF-8 (Java would read Latin-1; all
its settings are ASCII). The patterns are possessive: they never go back, so time and memory are
linear.
"""

import re
from collections.abc import Mapping
from typing import Final

from gantrymq.errors import ContentError
from gantrymq.wire.bodies.codec import TEXT

_LINE: Final = re.compile(
    r"[ \t\f]*+"
    r"(?:[#!][^\r\n]*+|([^\\\r\n]*+(?:\\(?:\r\n|[\s\S]|\Z)[^\\\r\n]*+)*+))"
    r"(?:\r\n|[\r\n]|\Z)"
)
_ENTRY: Final = re.compile(
    r"\A([^\\=: \t\f]*+(?:\\[\s\S][^\\=: \t\f]*+)*+)[ \t\f]*+[=:]?+[ \t\f]*+([\s\S]*+)\Z"
)
_JOIN: Final = re.compile(r"\\(?:\r\n|[\r\n])[ \t\f]*")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|[\s\S]|$)")
_LETTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN: Final = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
_IN_VALUE: Final = re.compile(r"[\\\n\r]|^[ \t\f]")
_IN_KEY: Final = re.compile(r"[\\\n\r\t\f =:]|^[#!]")


class SettingsBody:
    """A body of settings by name."""

    __slots__ = ()

    def decode(self, body: bytes) -> Mapping[str, str]:
        """Return the settings in their order; of two with one name the last holds.

        Raises:
            ContentError: it is not UTF-8, or an escape is broken.
        """
        text = TEXT.decode(body)
        settings: dict[str, str] = {}
        for logical in _LINE.findall(text):
            if line := _JOIN.sub("", logical):
                ((key, value),) = _ENTRY.findall(line)
                settings[_unescape(key)] = _unescape(value)
        return settings

    def encode(self, value: Mapping[str, str]) -> bytes:
        """Return one line for each setting, by name."""
        lines = [
            f"{_IN_KEY.sub(_escape, key)}={_IN_VALUE.sub(_escape, text)}\n"
            for key, text in sorted(value.items())
        ]
        return TEXT.encode("".join(lines))


def _unescape(text: str) -> str:
    """Replace escapes by what they stand for."""
    return _ESCAPE.sub(_letter, text)


def _letter(match: re.Match[str]) -> str:
    """Return what one escape stands for."""
    name = match.group(1)
    if len(name) > 1:
        letter = chr(int(name[1:], 16))
        if "\ud800" <= letter <= "\udfff":
            raise ContentError("body", f"the escape \\{name} is half a surrogate pair")
        return letter
    if name == "u":
        raise ContentError(
            "body", f"a \\u escape without four digits, at character {match.start()}"
        )
    return _LETTERS.get(name, name)


def _escape(match: re.Match[str]) -> str:
    """Return one character so that it is read as itself."""
    sign = match.group()
    return _WRITTEN.get(sign, "\\" + sign)


SETTINGS: Final = SettingsBody()
