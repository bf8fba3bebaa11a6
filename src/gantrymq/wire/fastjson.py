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

Strict JSON is the common case and goes through msgspec. The tolerant reader (`loose_json`) runs
when that fails, so it is the one that words the complaint.

`encode` writes strict, compact JSON in the form that every client takes: keys in order and
quoted, no nulls, no blanks (Go cuts `brokerAddrs` out as text), `/` bare, enums by name. The one
exception is `ObjectKeyed`, written with bare objects as keys, because fastjson2 takes no other
form.
"""

from collections.abc import Mapping
from enum import Enum, Flag

import msgspec

from gantrymq.errors import InvalidValue, ProtocolError
from gantrymq.limits import JSON_DEPTH_MAX
from gantrymq.wire.loose_json import LooseReader, ObjectKeyed

__all__ = ["ObjectKeyed", "encode", "parse"]


def parse(data: bytes, field: str = "body") -> object:
    """Read one JSON text: dict, list, str, int, float, bool, None or `ObjectKeyed`.

    Raises:
        ProtocolError: it is not UTF-8, not JSON by the rules above, or too deep; names the place.
    """
    try:
        value: object = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return LooseReader(_text(data, field), field).read()
    if _openers(data) > JSON_DEPTH_MAX and _is_deep(value):
        raise ProtocolError(field, f"more than {JSON_DEPTH_MAX} levels of nesting")
    return value


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
        raise ProtocolError(field, f"not UTF-8 at byte {error.start}") from None


def encode(value: object) -> bytes:
    """Write a tree of what `parse` returns; tuples and enums may be in it.

    Raises:
        InvalidValue: something in it has no JSON form.
    """
    try:
        return msgspec.json.encode(_plain(value, JSON_DEPTH_MAX))
    except (TypeError, UnicodeEncodeError) as error:
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
