"""JSON as fastjson writes and reads it, which is not quite JSON.

Java servers and clients build every JSON body, and every file in `config/`, with fastjson (1.x up
to 5.3, fastjson2 from 5.5). What it writes beyond the standard, all of it in the golden data:

    {0:"127.0.0.1:10911"}                                numbers as keys, without quotes
    {{"brokerName":"a","queueId":0,"topic":"t"}:5}       objects as keys, in maps keyed by queue

`parse` gives the second as `ObjectKeyed`, pairs in their order, and every other object as a dict
with text keys. What fastjson also reads, and a hand-written or foreign body may therefore hold:

    {'a':'b', c:1, "d":[1,2,],}    single quotes, bare words as keys, one comma too many
    NaN, undefined                 the first is a number, the second is null
    "\\x41 \\101 \\' \\v"            more escapes; raw newlines and tabs inside quotes

Not read, since nobody in the field writes it: comments, `new Date(..)`, `Set[..]`, type suffixes
(`5L`) and `{"$ref":".."}`, which stays an object. Half a surrogate pair is refused, since it
cannot be written back as UTF-8. Of two equal keys the last one wins, as in Java.

Strict JSON is the common case and goes through msgspec. Where only numbers as keys stand against
it (a master's consumer offsets, a route), they get their quotes and it is tried once more. The
tolerant reader (`loose_json`) runs when that fails, so it is the one that words the complaint; it
goes character by character and therefore takes shorter texts only.

`encode` writes strict, compact JSON in the form that every client takes: keys in order and
quoted, no nulls, no blanks (Go cuts `brokerAddrs` out as text), `/` bare, enums by name. The one
exception is `ObjectKeyed`, written with bare objects as keys, because fastjson2 takes no other
form.
"""

import re
from collections.abc import Mapping
from enum import Enum, Flag
from typing import Final

import msgspec

from gantrymq.errors import ContentError, InvalidValue
from gantrymq.limits import (
    JSON_DEPTH_MAX,
    JSON_ENTRIES_MAX,
    JSON_LOOSE_BYTES_MAX,
    JSON_LOOSE_ENTRIES_MAX,
)
from gantrymq.wire.loose_json import LooseReader, ObjectKeyed

__all__ = ["ObjectKeyed", "encode", "parse"]

_INTEGER_KEY: Final = re.compile(rb"[{,][ \t\r\n]*+-?[0-9]++[ \t\r\n]*+:")
_CLOSED_TEXTS: Final = re.compile(rb'[^"]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"]*+)*+', re.DOTALL)
_UP_TO_INTEGER_KEY: Final = re.compile(
    rb"""((?: [^"{,]++
        | "[^"\\]*+(?:\\.[^"\\]*+)*+"
        | [{,](?![ \t\r\n]*+-?[0-9]++[ \t\r\n]*+:)
        )*+ [{,][ \t\r\n]*+ ) (-?[0-9]++)""",
    re.DOTALL | re.VERBOSE,
)
"""The next bare key outside of texts and all that is before it."""
_LAST_KEY: Final = b"{0:"
"""Put behind the text, so that the pattern above always finds a key and never looks twice."""


def parse(data: bytes, field: str = "body") -> object:
    """Read one JSON text: dict, list, str, int, float, bool, None or `ObjectKeyed`.

    Raises:
        ContentError: it is not UTF-8, not JSON by the rules above, too deep, or has more entries or
            more bytes than `limits` allows; names the place.
    """
    entries = data.count(b",") + _openers(data)
    if entries > JSON_ENTRIES_MAX:
        raise ContentError(field, f"{entries} entries; at most {JSON_ENTRIES_MAX} are read")
    try:
        value = _read_strictly(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        _check_loose(data, entries + data.count(b":"), field, error)
        return LooseReader(_text(data, field), field).read()
    if _openers(data) > JSON_DEPTH_MAX and _is_deep(value):
        raise ContentError(field, f"more than {JSON_DEPTH_MAX} levels of nesting")
    return value


def _read_strictly(data: bytes) -> object:
    """Read strict JSON, or JSON whose only fault is integers as keys: all of a master's offsets."""
    try:
        value: object = msgspec.json.decode(data)
    except msgspec.DecodeError:
        if _INTEGER_KEY.search(data) is None or _CLOSED_TEXTS.fullmatch(data) is None:
            raise
        pieces = _UP_TO_INTEGER_KEY.split(data + _LAST_KEY)
        del pieces[::3]  # nothing is between two matches: what is left are the groups
        value = msgspec.json.decode(b'"'.join(pieces)[: -len(b'{"0')])
    return value


def _check_loose(data: bytes, entries: int, field: str, error: Exception) -> None:
    """Refuse what the tolerant reader would take long for."""
    if len(data) > JSON_LOOSE_BYTES_MAX:
        found = f"{len(data)} bytes that are not strict JSON; at most {JSON_LOOSE_BYTES_MAX}"
    elif entries > JSON_LOOSE_ENTRIES_MAX:
        found = f"{entries} entries that are not strict JSON; at most {JSON_LOOSE_ENTRIES_MAX}"
    else:
        return
    raise ContentError(field, f"{found} are read then: {error}") from None


def _openers(data: bytes) -> int:
    """Count what could nest: an upper bound of the depth that costs next to nothing."""
    return data.count(b"{") + data.count(b"[")


def _is_deep(value: object) -> bool:
    """Measure the depth level by level, without recursion."""
    level = [value]
    for _ in range(JSON_DEPTH_MAX):
        below: list[object] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        if not below:
            return False
        level = below
    return any(isinstance(item, dict | list) for item in level)


def _text(data: bytes, field: str) -> str:
    """Decode the whole text, so that positions in errors are positions of characters."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ContentError(field, f"not UTF-8 at byte {error.start}") from None


def encode(value: object) -> bytes:
    """Write a tree of what `parse` returns; tuples and enums may be in it.

    Raises:
        InvalidValue: something in it has no JSON form.
    """
    try:
        return msgspec.json.encode(_plain(value, JSON_DEPTH_MAX))
    except InvalidValue:
        raise
    except (TypeError, ValueError) as error:  # also for half a surrogate pair, or 4300 digits
        raise InvalidValue(f"a body cannot hold this: {error}") from None


def _plain(value: object, depth: int) -> object:
    """Turn a tree into one that msgspec writes in the right form."""
    if depth < 0:
        raise InvalidValue(f"a body cannot have more than {JSON_DEPTH_MAX} levels of nesting")
    if isinstance(value, ObjectKeyed):
        pairs = [
            encode(key) + b":" + msgspec.json.encode(_plain(item, depth - 1))
            for key, item in value.pairs
            if item is not None
        ]
        return msgspec.Raw(b"{" + b",".join(pairs) + b"}")
    if isinstance(value, Mapping):
        members = [(str(key), item) for key, item in value.items() if item is not None]
        return {key: _plain(item, depth - 1) for key, item in sorted(members, key=_by_key)}
    if isinstance(value, list | tuple):
        return [_plain(item, depth - 1) for item in value]
    return _scalar(value)


def _scalar(value: object) -> object:
    """Write enums by name and sets of flags by number."""
    if isinstance(value, Flag):
        return value.value
    return value.name if isinstance(value, Enum) else value


def _by_key(member: tuple[str, object]) -> str:
    """Order the members of an object by their names."""
    return member[0]
