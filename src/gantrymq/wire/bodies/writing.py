"""From typed values to the tree that `fastjson.encode` writes.

The twin of `reading`, without its leniency: every type has one form on the wire.
"""

import base64
from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec

from gantrymq.wire.bodies.schema import wire_fields
from gantrymq.wire.fastjson import ObjectKeyed

Writer = Callable[[Any], object]


@cache
def writer_of(hint: object) -> Writer:
    """Return the function that turns a value of a type into a tree."""
    if hint is bytes:
        return _write_bytes
    if isinstance(hint, type) and get_origin(hint) is None and issubclass(hint, msgspec.Struct):
        return _struct_writer(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        (inner,) = (argument for argument in arguments if argument is not type(None))
        return writer_of(inner)
    if origin in {tuple, frozenset}:
        return _list_writer(writer_of(arguments[0]), is_set=origin is frozenset)
    if origin is Mapping:
        return _map_writer(*arguments)
    return _as_is


def _as_is(value: object) -> object:
    """Texts, numbers, booleans and enums are trees already."""
    return value


def _write_bytes(value: bytes) -> str:
    """Write bytes as Base64."""
    return base64.b64encode(value).decode()


def _list_writer(element: Writer, *, is_set: bool) -> Writer:
    """Return the writer for a tuple, or for a set, whose order is then always the same."""
    if is_set:
        return lambda values: [element(value) for value in sorted(values)]
    return lambda values: [element(value) for value in values]


def _map_writer(key: object, value: object) -> Writer:
    """Return the writer for a map; a key that is an object stays one."""
    write = writer_of(value)
    if isinstance(key, type) and issubclass(key, msgspec.Struct):
        write_key = writer_of(key)

        def write_pairs(values: Mapping[Any, object]) -> ObjectKeyed:
            return ObjectKeyed(tuple((write_key(k), write(values[k])) for k in sorted(values)))

        return write_pairs
    return lambda values: {name: write(item) for name, item in values.items()}


def _struct_writer(kind: type[msgspec.Struct]) -> Writer:
    """Return the writer for an object; what is None is left out."""
    plan = [
        (field.name, attrgetter(field.attribute), writer_of(field.hint), field.only_if_true)
        for field in wire_fields(kind)
    ]

    def write_struct(value: object) -> dict[str, object]:
        tree: dict[str, object] = {}
        for name, get, write, only_if_true in plan:
            item = get(value)
            if item is not None and (item or not only_if_true):
                tree[name] = write(item)
        return tree

    return write_struct
