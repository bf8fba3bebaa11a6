"""A value of any body type, made from its annotations: one of everything, nothing left at None."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import UnionType
from typing import Annotated, NewType, Union, get_args, get_origin

import msgspec

from gantrymq.wire.bodies import BODIES, CONFIG_FILES, JsonBody

JSON_CODECS: dict[str, JsonBody[object]] = {
    repr(codec): codec
    for codec in [
        *(codec for bodies in BODIES.values() for codec in bodies),
        *CONFIG_FILES.values(),
    ]
    if isinstance(codec, JsonBody)
}
"""Every JSON body by the name of its type."""

_SCALARS: dict[object, object] = {
    str: "text",
    int: 7,
    float: 0.5,
    bool: True,
    bytes: b"\x05",
}


def sample(hint: object) -> object:
    """Return a value of a type."""
    if hint in _SCALARS:
        return _SCALARS[hint]
    if isinstance(hint, NewType):
        return sample(hint.__supertype__)
    if get_origin(hint) is not None:
        return _generic(get_origin(hint), get_args(hint))
    assert isinstance(hint, type)
    if issubclass(hint, Enum):
        return list(hint)[-1]
    assert issubclass(hint, msgspec.Struct)
    return hint(**{info.name: sample(info.type) for info in msgspec.structs.fields(hint)})


def _generic(origin: object, arguments: tuple[object, ...]) -> object:
    """Return a value of a type with parameters."""
    if origin in {Annotated, Union, UnionType}:
        return sample(next(item for item in arguments if item is not type(None)))
    if origin is Mapping:
        return {sample(arguments[0]): sample(arguments[1])}
    elements = (sample(arguments[0]), sample(arguments[0]))
    return elements if origin is tuple else frozenset(elements)


def kind_of(codec: JsonBody[object]) -> object:
    """Return the type that a codec reads and writes."""
    return codec._kind  # a test may look inside
