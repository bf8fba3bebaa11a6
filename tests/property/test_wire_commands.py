"""Any command survives the codec; any bytes are commands or refused; any cut is alike."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, TypeVar

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from gantrymq.errors import ProtocolError
from gantrymq.limits import FRAME_BYTES_MAX
from gantrymq.wire.codes import LanguageCode
from gantrymq.wire.command import BINARY_HEADER, JSON_HEADER, Command
from gantrymq.wire.frame import FrameParser, encode_frame
from gantrymq.wire.header_codec import decode_header
from gantrymq.wire.registry import HEADERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.wire.fields import Header

int16 = st.integers(-(2**15), 2**15 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
name = text.filter(bool)
languages = st.sampled_from(LanguageCode)


Result = TypeVar("Result")


def attempt(call: Callable[[], Result]) -> Result | ProtocolError:
    """Return what a call returns, or the one error that it may raise."""
    try:
        return call()
    except ProtocolError as error:
        return error


def commands(serialize_type: int) -> st.SearchStrategy[Command]:
    binary = serialize_type == BINARY_HEADER
    return st.builds(
        Command,
        code=int16 if binary else int32,
        opaque=int32,
        flag=int32,
        version=int16 if binary else int32,
        # A binary header has no empty text, and no name for a language.
        language=languages | st.integers(14, 255) if binary else languages | name,
        remark=st.none() | (name if binary else text),
        fields=st.dictionaries(name, name if binary else text, max_size=8),
        body=st.binary(max_size=50),
        serialize_type=st.just(serialize_type),
    )


any_command = commands(JSON_HEADER) | commands(BINARY_HEADER)


def feed(pieces: list[bytes]) -> tuple[list[Command], ProtocolError | None]:
    parser = FrameParser()
    found: list[Command] = []
    for piece in pieces:
        found += parser.feed(piece)
        if parser.error is not None:
            break
    return found, parser.error


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(stream) + 1) for place in places})
    starts = [0, *ends]
    return [stream[start:end] for start, end in zip(starts, [*ends, len(stream)], strict=True)]


@given(st.lists(any_command, max_size=5), st.lists(st.integers(0, 2**16), max_size=10))
def test_round_trip_in_any_pieces(sent: list[Command], places: list[int]) -> None:
    stream = b"".join(map(encode_frame, sent))
    assert feed([stream]) == (sent, None)
    assert feed(cut(stream, places)) == (sent, None)


@given(st.binary(max_size=200), st.sampled_from([JSON_HEADER, BINARY_HEADER]))
def test_any_header_is_a_command_or_refused(header: bytes, serialize_type: int) -> None:
    command = attempt(lambda: decode_header(header, serialize_type))
    if isinstance(command, ProtocolError):
        assert command.field.startswith("header")
        return
    again = encode_frame(command)
    assert FrameParser().feed(again) == [command]
    if serialize_type == BINARY_HEADER:
        assert again[8:] == header


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=10,
)
json_headers = st.fixed_dictionaries(
    {},
    optional={
        "code": int32 | json_values,
        "opaque": int32 | json_values,
        "flag": int32 | json_values,
        "version": json_values,
        "language": json_values,
        "remark": json_values,
        "extFields": st.dictionaries(text, json_values, max_size=4) | json_values,
        "other": json_values,
    },
)


@given(json_headers)
@example({"code": 1, "opaque": 2, "extFields": {"a": 10**5000}})
def test_any_json_is_a_command_or_refused(header: dict[str, object]) -> None:
    try:
        data = msgspec.json.encode(header)
    except (OverflowError, ValueError):
        return  # msgspec itself writes no such integer
    command = attempt(lambda: decode_header(data, JSON_HEADER))
    if isinstance(command, ProtocolError):
        assert command.field.startswith("header")
    else:
        assert FrameParser().feed(encode_frame(command)) == [command]


@given(
    st.lists(any_command, min_size=1, max_size=3),
    st.integers(0, 2**16),
    st.integers(0, 255),
    st.lists(st.integers(0, 2**16), max_size=10),
)
def test_damage_is_found_alike_however_it_is_cut(
    sent: list[Command], place: int, byte: int, places: list[int]
) -> None:
    stream = bytearray(b"".join(map(encode_frame, sent)))
    stream[place % len(stream)] = byte
    whole, error = feed([bytes(stream)])
    pieces, same_error = feed(cut(bytes(stream), places))
    assert pieces == whole
    assert (error and str(error)) == (same_error and str(same_error))


@given(st.binary(max_size=100))
def test_any_bytes(stream: bytes) -> None:
    found, error = feed([stream])
    assert feed([stream[at : at + 1] for at in range(len(stream))])[0] == found
    if len(stream) >= 4 and not found:
        (total,) = struct.unpack(">i", stream[:4])
        assert (error is not None) >= (not 4 <= total <= FRAME_BYTES_MAX - 4)


schemas = sorted(
    {schema for found in HEADERS.values() for schema in found[:2] if schema is not None},
    key=str,
)


@given(st.sampled_from(schemas), st.data())
def test_any_header_value_survives(schema: type[Header], data: st.DataObject) -> None:
    """Fill a schema with values of its own types, through its own annotations."""
    header = data.draw(st.builds(schema, **values_of(schema)))
    assert schema.decode(header.encode()) == header


@given(st.sampled_from(schemas), st.data())
def test_any_text_is_a_header_or_refused(schema: type[Header], data: st.DataObject) -> None:
    texts = text | int32.map(str) | st.sampled_from(["true", "", "-", "1" * 30])
    names = list(schema.wire_names())
    fields = data.draw(st.dictionaries(st.sampled_from([*names, "other"]), texts))
    header = attempt(lambda: schema.decode(fields))
    if isinstance(header, ProtocolError):
        assert header.field.removeprefix("header.extFields.") in names
    else:
        assert header.encode().keys() == fields.keys() & set(names)


def values_of(schema: type[Header]) -> dict[str, st.SearchStrategy[object]]:
    strategies: dict[str, st.SearchStrategy[object]] = {}
    for field in msgspec.structs.fields(schema):
        said = str(field.type)
        if "Annotated" in said:
            bits = 32 if "2147483647" in said else 64
            kind: st.SearchStrategy[object] = st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        else:
            kind = st.booleans() if "bool" in said else text
        strategies[field.name] = kind if field.required else st.none() | kind
    return strategies
