"""Header schemas: the typed form of a command's ext fields.

A schema is a class whose annotations say everything:

    class QueryOffsetRequest(Header, frozen=True, kw_only=True):
        consumer_group: str                 # required, wire name consumerGroup
        queue_id: Int32
        set_zero_if_not_found: bool | None = None       # optional
        client_id: str = field(name="clientID")         # a wire name of its own

Attributes are snake_case and their wire names camelCase, unless msgspec's `field` gives another.
Types are `str`, `Int32`, `Int64` and `bool`; with a default a field is optional. None
means absent: such a field is not written.

Text is read by Java's rules. A number has an optional sign, ASCII digits and the range of its
type; a boolean is true for the word `true` in any case and false for everything else. Fields that
the schema does not name are passed over; `Command.fields` still has them.
"""

from collections.abc import Callable, Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Final, NamedTuple, Self, Union, get_args, get_origin

import msgspec

from gantrymq.errors import ContentError, InvalidValue, shown
from gantrymq.wire.integers import fits, parse_integer

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

_Value = str | int | bool


class Header(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Ext fields as attributes; the base of every schema."""

    @classmethod
    def decode(cls, fields: Mapping[str, str]) -> Self:
        """Return the header that these ext fields make.

        Raises ContentError naming the first field that is missing or cannot be read.
        """
        values: dict[str, _Value] = {}
        for field in _fields_of(cls):
            text = fields.get(field.wire_name)
            if text is not None:
                values[field.wire_name] = field.read(text, field.wire_name)
            elif field.required:
                raise ContentError(f"header.extFields.{field.wire_name}", "is missing")
        return msgspec.convert(values, cls)

    def encode(self) -> dict[str, str]:
        """Return the ext fields of this header in declared order.

        Raises InvalidValue for a value of another type, or out of the range of its field.
        """
        fields: dict[str, str] = {}
        for field in _fields_of(type(self)):
            value: _Value | None = getattr(self, field.name)
            if value is not None:
                fields[field.wire_name] = _write(value, field)
        return fields

    @classmethod
    def wire_names(cls) -> tuple[str, ...]:
        """Return the names of the fields on the wire, in declared order."""
        return tuple(field.wire_name for field in _fields_of(cls))


class _Field(NamedTuple):
    """One field of a schema."""

    name: str
    wire_name: str
    required: bool
    read: Callable[[str, str], _Value]
    kind: type
    """What a value is an instance of."""
    bits: int
    """Range of an integer; 0 for other types."""


def _read_text(text: str, _wire_name: str) -> str:
    return text


def _read_boolean(text: str, _wire_name: str) -> bool:
    return text.lower() == "true"


def _read_integer(text: str, wire_name: str, bits: int) -> int:
    number = parse_integer(text, bits)
    if number is None:
        problem = f"{shown(text)!r} is not a {bits}-bit integer"
        raise ContentError(f"header.extFields.{wire_name}", problem)
    return number


def _read_int32(text: str, wire_name: str) -> int:
    return _read_integer(text, wire_name, 32)


def _read_int64(text: str, wire_name: str) -> int:
    return _read_integer(text, wire_name, 64)


def _write(value: _Value, field: _Field) -> str:
    if field.bits:
        if not fits(value, field.bits):
            problem = f"{shown(repr(value))} is not a {field.bits}-bit integer"
            raise InvalidValue(f"{field.wire_name}: {problem}")
        return str(int(value))
    if not isinstance(value, field.kind):
        problem = f"{shown(repr(value))} is not a {field.kind.__name__}"
        raise InvalidValue(f"{field.wire_name}: {problem}")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


_KINDS: Final[dict[object, tuple[Callable[[str, str], _Value], type, int]]] = {
    str: (_read_text, str, 0),
    Int32: (_read_int32, int, 32),
    Int64: (_read_int64, int, 64),
    bool: (_read_boolean, bool, 0),
}


@cache
def _fields_of(schema: type[Header]) -> tuple[_Field, ...]:
    """Read a schema's annotations, once for each class.

    Raises TypeError for a type that cannot stand in a header.
    """
    fields: list[_Field] = []
    for info in msgspec.structs.fields(schema):
        kind: object = info.type
        if get_origin(kind) in {Union, UnionType}:
            kind = next(part for part in get_args(kind) if part is not type(None))
        if kind not in _KINDS:
            raise TypeError(f"{schema.__name__}.{info.name}: {kind} is no type of a header field")
        read, python_type, bits = _KINDS[kind]
        fields.append(_Field(info.name, info.encode_name, info.required, read, python_type, bits))
    return tuple(fields)
