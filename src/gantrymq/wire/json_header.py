"""JSON headers: strict in what is written, lenient in what is read.

    {"code":310,"extFields":{"b":"TopicTest","e":"0"},"flag":0,"language":"PYTHON","opaque":7,
     "serializeTypeCurrentRPC":"JSON","version":407}

Read: `code` and `opaque` are required; ext values may be numbers and booleans (the C++ and Node
clients send them raw) and become their JSON text; the four numbers may be text (`"code":"310"`), as
fastjson takes it; null counts as absent, for every key; the language is a name or an ordinal;
unknown keys are passed over; white space may follow (C++ ends with a line feed). Not read, though
fastjson would: a number with a fraction, a remark that is no text, JSON that is not strict. The
kernel's reader of hot requests is stricter still: it leaves numbers that are text to this one.

Written: numbers as numbers, every ext value as a string, no blanks, keys in alphabetical order as
Java has them. `extFields` is always there, since the Java client reads it from a send response
unasked.

A hostile header is measured before it is parsed: nesting beyond `JSON_DEPTH_MAX` would recurse,
and millions of small entries would take many times their size as objects. Counting brackets and
colons gives an upper bound that nearly every header passes; only one that does not is looked at
mark by mark, and not beyond a few hundred of them.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

import msgspec

from gantrymq.errors import InvalidValue, ProtocolError, shown
from gantrymq.limits import EXT_FIELDS_MAX, JSON_DEPTH_MAX
from gantrymq.wire.codes import LanguageCode
from gantrymq.wire.command import JSON_HEADER, Command, check_encodable, ext_place
from gantrymq.wire.integers import parse_integer

_INT_MIN: Final = -(2**31)
_INT_MAX: Final = 2**31 - 1
_OTHER_MARKS_MAX: Final = 256
"""Colons and brackets beside the colons of extFields; Java writes 12."""

_Number = Annotated[int, msgspec.Meta(ge=_INT_MIN, le=_INT_MAX)] | str | None
_ExtValue = str | int | float | bool | None


class _JsonHeader(msgspec.Struct):
    """The keys that carry information."""

    code: _Number = None
    opaque: _Number = None
    flag: _Number = None
    version: _Number = None
    language: str | int | None = None
    remark: str | None = None
    extFields: dict[str, _ExtValue] | None = None


class _RawFields(msgspec.Struct):
    """Ext fields whose values nobody has looked at yet."""

    extFields: dict[str, msgspec.Raw]


class _JsonOut(msgspec.Struct):
    """The header as it is written, in the order of its keys."""

    code: int
    extFields: dict[str, str]
    flag: int
    language: str | int
    opaque: int
    remark: str | msgspec.UnsetType
    serializeTypeCurrentRPC: str
    version: int


_DECODER: Final = msgspec.json.Decoder(_JsonHeader)
_ENCODER: Final = msgspec.json.Encoder()
_LANGUAGES: Final = {language.name: language for language in LanguageCode}
_ORDINALS: Final = {language.value: language for language in LanguageCode}

# Everything up to the next bracket or colon outside of strings, or to the end. A string may lack
# its end; the parser will say so. Possessive repeats keep the search linear in the header's length.
_STRUCTURE: Final = re.compile(
    rb'(?:[^"\[\]{}:]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+([\[\]{}:]|\Z)', re.DOTALL
)


def decode_json_header(header: bytes, body: bytes) -> Command:
    """Return the command that a JSON header and a body make.

    Raises ProtocolError naming the key that is wrong, or `header` if it is not JSON.
    """
    _measure(header)
    try:
        parsed = _DECODER.decode(header)
    except msgspec.ValidationError as error:
        raise _blame(header, error) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError("header", f"is not JSON: {error}") from error
    ext = parsed.extFields or {}
    if len(ext) > EXT_FIELDS_MAX:
        raise ProtocolError("header.extFields", f"has more than {EXT_FIELDS_MAX} entries")
    return Command(
        code=_number("code", parsed.code),
        opaque=_number("opaque", parsed.opaque),
        flag=_number("flag", parsed.flag, 0),
        version=_number("version", parsed.version, 0),
        language=_known_language(parsed.language),
        remark=parsed.remark,
        fields={
            key: value if type(value) is str else _text(key, value)
            for key, value in ext.items()
            if value is not None
        },
        body=body,
        serialize_type=JSON_HEADER,
    )


def encode_json_header(command: Command) -> bytes:
    """Return the JSON header of a command.

    Raises InvalidValue for text that is not Unicode, such as a lone surrogate, for a number over
    32 bits, and for an ext value that is not text: Go refuses such a frame.
    """
    check_encodable(command)
    language = command.language
    if isinstance(language, int):
        known = _ORDINALS.get(language)
        language = known.name if known is not None else language
    header = _JsonOut(
        code=command.code,
        extFields=command.fields,
        flag=command.flag,
        language=language,
        opaque=command.opaque,
        remark=msgspec.UNSET if command.remark is None else command.remark,
        serializeTypeCurrentRPC="JSON",
        version=command.version,
    )
    try:
        return _ENCODER.encode(header)
    except UnicodeEncodeError as error:
        raise InvalidValue(f"text that is not Unicode in a header: {error}") from error
    except ValueError as error:
        raise InvalidValue(f"a language that is no number of a few digits: {error}") from error


def _measure(header: bytes) -> None:
    """Refuse a header that is nested too deeply or has too many entries, before it is parsed."""
    marks_max = EXT_FIELDS_MAX + _OTHER_MARKS_MAX
    brackets = header.count(b"{") + header.count(b"[")
    if brackets <= JSON_DEPTH_MAX and header.count(b":") <= EXT_FIELDS_MAX:
        return
    depth = 0
    for marks, match in enumerate(_STRUCTURE.finditer(header)):
        mark = match[1]
        if mark in {b"}", b"]"}:
            depth -= 1
        elif mark in {b"{", b"["}:
            depth += 1
        if depth > JSON_DEPTH_MAX:
            raise ProtocolError("header", f"is nested more than {JSON_DEPTH_MAX} deep")
        if marks > marks_max:
            raise ProtocolError("header.extFields", f"has more than {EXT_FIELDS_MAX} entries")


def _number(key: str, value: int | str | None, default: int | None = None) -> int:
    """Return the number that a key of the header has; text and null may stand for one."""
    number = parse_integer(value, 32) if isinstance(value, str) else value
    if number is not None:
        return number
    if value is not None:
        raise ProtocolError(f"header.{key}", f"{shown(str(value))!r} is not a 32-bit integer")
    if default is None:
        raise ProtocolError(f"header.{key}", "is missing")
    return default


def _known_language(language: str | int | None) -> int | str:
    """Return the language code; what came if it is not known; Java's default if nothing came."""
    if language is None:
        return LanguageCode.JAVA
    if isinstance(language, str):
        return _LANGUAGES.get(language, language)
    return _ORDINALS.get(language, language)


def _text(key: str, value: _ExtValue) -> str:
    """Return the text that a raw ext value stands for."""
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        return str(value)
    except ValueError as error:  # Python prints no integer of thousands of digits
        raise ProtocolError(ext_place(key), "is a number out of all range") from error


def _blame(header: bytes, error: msgspec.ValidationError) -> ProtocolError:
    """Find out which key is wrong; msgspec does not name the entry of a dict."""
    try:
        if "`$.extFields[" in str(error):
            ext = msgspec.json.decode(header, type=_RawFields).extFields
            for key, value in ext.items():
                if not _is_readable(value):
                    text = shown(bytes(value)[:256].decode(errors="replace"))
                    return ProtocolError(ext_place(key), f"{text} is not text")
    except (msgspec.DecodeError, UnicodeDecodeError) as other:
        return ProtocolError("header", f"is not JSON: {other}")
    found = re.search(r"`\$\.(\w+)", str(error))
    place = f"header.{found[1]}" if found else "header"
    return ProtocolError(place, str(error).split(" - at ", maxsplit=1)[0])


def _is_readable(value: msgspec.Raw) -> bool:
    """Say whether one ext value alone can be decoded."""
    try:
        msgspec.json.decode(value, type=_ExtValue)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True
