"""From the tree of a parsed body to typed values, as lenient as fastjson and no further.

`reader_of(hint)` builds, once for each type, a function from a raw value to a typed one. What is
taken although it is not what the type says, because some client sends it and Java reads it:

    numbers as texts, texts as numbers or booleans    (C++ `subVersion`, Go `codeSet`)
    enums by name in any case, or by ordinal          (C++ heartbeats)
    whole numbers written as 5.0, booleans as 0 and 1
    null, an empty text or an unknown enum name where a number or an enum is expected: as if absent
    null among the elements of a list or a map: left out
    keys that the type does not know: ignored

An absent key takes the default of its attribute. Everything else is a `Mismatch`, which collects
the path on its way out; `read` turns it into a `ContentError` that names the field.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, Flag
from functools import cache
from types import UnionType
from typing import Final, NewType, Union, get_args, get_origin

import msgspec

from gantrymq.errors import ContentError, InvalidValue
from gantrymq.model.queue import QueueId
from gantrymq.model.widths import Int32
from gantrymq.wire.bodies.scalars import (
    ABSENT,
    SHOWN,
    Mismatch,
    Reader,
    int_reader,
    read_bool,
    read_bytes,
    read_float,
    read_int32,
    read_int64,
    read_str,
    show,
)
from gantrymq.wire.bodies.schema import wire_fields
from gantrymq.wire.fastjson import ObjectKeyed


def read(hint: object, raw: object, field: str) -> object:
    """Return a raw value as the type says.

    Raises:
        ContentError: it is not of that type; names the field.
    """
    try:
        value = reader_of(hint)(raw)
    except Mismatch as mismatch:
        path = "".join(reversed(mismatch.path))
        raise ContentError(field + path, mismatch.problem) from None
    if value is ABSENT:
        raise ContentError(field, "nothing is there")
    return value


@cache
def reader_of(hint: object) -> Reader:
    """Return the reader for a type."""
    if simple := _SIMPLE.get(hint):
        return simple
    if isinstance(hint, NewType):
        return reader_of(hint.__supertype__)
    if isinstance(hint, type) and get_origin(hint) is None:
        if issubclass(hint, msgspec.Struct):
            return _struct_reader(hint)
        if issubclass(hint, Enum):
            return _enum_reader(hint)
    return _generic_reader(hint)


def _generic_reader(hint: object) -> Reader:
    """Return the reader for a type that has parameters."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        (inner,) = (argument for argument in arguments if argument is not type(None))
        return reader_of(inner)
    if origin is tuple:
        return _list_reader(reader_of(arguments[0]), tuple)
    if origin is frozenset:
        return _list_reader(reader_of(arguments[0]), frozenset)
    if origin is Mapping:
        key, value = arguments
        if isinstance(key, type) and issubclass(key, msgspec.Struct):
            return _object_map_reader(reader_of(key), reader_of(value))
        return _map_reader(reader_of(key), reader_of(value))
    raise TypeError(f"no reader for {hint!r}")


def _enum_reader(kind: type[Enum]) -> Reader:
    """Return the reader for an enum: name in any case, ordinal, or the ordinal as text."""
    if issubclass(kind, Flag):
        return _flag_reader(kind)
    by_ordinal = dict(enumerate(kind))

    def read_enum(raw: object) -> object:
        if isinstance(raw, str):
            text = raw.strip()
            if not text.isdecimal():
                return kind.__members__.get(text.upper(), ABSENT)
        ordinal = read_int32(raw)
        if ordinal not in by_ordinal:
            raise Mismatch(f"{show(raw)} is none of {', '.join(kind.__members__)}")
        return by_ordinal[ordinal]

    return read_enum


def _flag_reader(kind: type[Flag]) -> Reader:
    """Return the reader for a set of bits; unknown ones are refused, since each would be kept."""
    high = sum(flag.value for flag in kind)
    read_bits = int_reader(0, high)

    def read_flags(raw: object) -> object:
        bits = read_bits(raw)
        return bits if bits is ABSENT else kind(bits)

    return read_flags


def _list_reader(element: Reader, kind: Callable[[list[object]], object]) -> Reader:
    """Return the reader for a list that becomes a tuple or a set."""

    def read_list(raw: object) -> object:
        if not isinstance(raw, list):
            raise Mismatch(f"expected a list, got {show(raw)}")
        values: list[object] = []
        for index, item in enumerate(raw):
            if item is None:
                continue
            try:
                value = element(item)
            except Mismatch as mismatch:
                mismatch.within(f"[{index}]")
                raise
            if value is not ABSENT:
                values.append(value)
        return kind(values)

    return read_list


def _map_reader(key_of: Reader, value_of: Reader) -> Reader:
    """Return the reader for an object whose keys are data."""

    def read_map(raw: object) -> object:
        if not isinstance(raw, dict):
            raise Mismatch(f"expected an object, got {show(raw)}")
        return _pairs(raw.items(), key_of, value_of)

    return read_map


def _object_map_reader(key_of: Reader, value_of: Reader) -> Reader:
    """Return the reader for a map whose keys are objects; an empty one looks like any object."""

    def read_map(raw: object) -> object:
        if isinstance(raw, ObjectKeyed):
            return _pairs(raw.pairs, key_of, value_of)
        if raw == {}:
            return {}
        raise Mismatch(f"expected an object with objects as keys, got {show(raw)}")

    return read_map


def _pairs(pairs: Iterable[tuple[object, object]], key_of: Reader, value_of: Reader) -> object:
    """Read keys and values; a null value is left out."""
    values: dict[object, object] = {}
    for key, item in pairs:
        if item is None:
            continue
        try:
            name, value = key_of(key), value_of(item)
        except Mismatch as mismatch:
            mismatch.within(f".{_segment(key)}")
            raise
        if name is ABSENT:
            raise Mismatch("an entry has an empty key")
        if value is not ABSENT:
            values[name] = value
    return values


def _segment(key: object) -> str:
    """Return a key as a step of a path."""
    if isinstance(key, dict):
        key = f"{{{key.get('topic')}/{key.get('brokerName')}/{key.get('queueId')}}}"
    return str(key)[:SHOWN]


def _struct_reader(kind: type[msgspec.Struct]) -> Reader:
    """Return the reader for an object whose keys are attributes."""
    plan = [
        (field.name, field.attribute, reader_of(field.hint), field.required)
        for field in wire_fields(kind)
    ]

    def read_struct(raw: object) -> object:
        if not isinstance(raw, dict):
            raise Mismatch(f"expected an object, got {show(raw)}")
        values: dict[str, object] = {}
        for name, attribute, reader, required in plan:
            item = raw.get(name)
            if item is not None:
                try:
                    value = reader(item)
                except Mismatch as mismatch:
                    mismatch.within(f".{name}")
                    raise
                if value is not ABSENT:
                    values[attribute] = value
                    continue
            if required:
                missing = Mismatch("is missing")
                missing.within(f".{name}")
                raise missing
        try:
            return kind(**values)
        except InvalidValue as error:
            raise Mismatch(str(error)) from None

    return read_struct


_SIMPLE: Final[Mapping[object, Reader]] = {
    str: read_str,
    int: read_int64,
    float: read_float,
    bool: read_bool,
    bytes: read_bytes,
    Int32: read_int32,
    QueueId: read_int32,
}
