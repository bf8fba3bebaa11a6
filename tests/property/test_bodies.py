"""Any value of a body type comes back from its bytes, and any tree from either reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, Flag
from types import UnionType
from typing import Annotated, Any, NewType, Union, get_args, get_origin

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gantrymq.errors import ProtocolError
from gantrymq.model.queue import QueueId
from gantrymq.wire.bodies.registration import REGISTRATION
from gantrymq.wire.bodies.settings import SETTINGS
from gantrymq.wire.fastjson import ObjectKeyed, encode, parse
from support.body_samples import JSON_CODECS, kind_of

Strategy = st.SearchStrategy[Any]

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS: dict[object, Strategy] = {
    str: TEXTS,
    int: INT64,
    float: FLOATS,
    bool: st.booleans(),
    bytes: st.binary(max_size=8),
    QueueId: INT32,
}
COUNTS = st.integers(0, 65536)
BOUNDED = {"read_queues", "write_queues", "retry_queues"}
"""Counts that a model value limits by itself."""


def values(hint: object) -> Strategy:
    """Return values of a type."""
    if hint in SCALARS:
        return SCALARS[hint]
    if isinstance(hint, NewType):
        return values(hint.__supertype__)
    if get_origin(hint) is not None:
        return generic(get_origin(hint), get_args(hint))
    assert isinstance(hint, type)
    if issubclass(hint, Flag):
        return st.integers(0, 15).map(hint)
    if issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    assert issubclass(hint, msgspec.Struct)
    fields = {info.name: values(info.type) for info in msgspec.structs.fields(hint)}
    return st.builds(hint, **{**fields, **dict.fromkeys(BOUNDED & fields.keys(), COUNTS)})


def generic(origin: object, arguments: tuple[object, ...]) -> Strategy:
    """Return values of a type with parameters."""
    if origin is Annotated:
        return INT32
    if origin is Mapping:
        return st.dictionaries(values(arguments[0]), values(arguments[1]), max_size=2)
    if origin in {Union, UnionType}:
        return st.none() | values(next(item for item in arguments if item is not type(None)))
    elements = st.lists(values(arguments[0]), max_size=3)
    return elements.map(tuple) if origin is tuple else elements.map(frozenset)


TREES: Strategy = st.recursive(
    st.none() | st.booleans() | INT64 | FLOATS | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(TEXTS, inner, max_size=4)
        | st.lists(
            st.tuples(st.dictionaries(TEXTS, TEXTS, max_size=2), inner), min_size=1, max_size=3
        ).map(lambda pairs: ObjectKeyed(tuple(pairs)))
    ),
    max_leaves=12,
)


def without_nulls(tree: object) -> object:
    """Return a tree as `encode` leaves it."""
    if isinstance(tree, ObjectKeyed):
        pairs = [(without_nulls(k), without_nulls(v)) for k, v in tree.pairs if v is not None]
        return ObjectKeyed(tuple(pairs)) if pairs else {}
    if isinstance(tree, dict):
        return {key: without_nulls(item) for key, item in tree.items() if item is not None}
    return [without_nulls(item) for item in tree] if isinstance(tree, list) else tree


@pytest.mark.parametrize("name", JSON_CODECS)
@settings(max_examples=max(10, settings().max_examples // 4))
@given(data=st.data())
def test_every_value_comes_back(name: str, data: st.DataObject) -> None:
    codec = JSON_CODECS[name]
    value = data.draw(values(kind_of(codec)))
    body = codec.encode(value)
    assert codec.decode(body) == value
    assert codec.encode(codec.decode(body)) == body


@given(TREES)
def test_every_tree_comes_back(tree: object) -> None:
    assert parse(encode(tree)) == without_nulls(tree)


@given(TREES)
def test_both_readers_agree(tree: object) -> None:
    # A comma too many is all that keeps the strict reader away.
    strict = encode([tree])
    assert parse(strict[:-1] + b",]") == parse(strict)


def refusal(decode: Callable[[bytes], object], data: bytes) -> ProtocolError | None:
    """Return why bytes are refused, or None if they are not; any other error is the test's."""
    try:
        decode(data)
    except ProtocolError as error:
        return error
    return None


@given(st.binary(max_size=64) | TEXTS.map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    error = refusal(parse, data)
    assert error is None or error.field.startswith("body")


@given(st.text(st.sampled_from("{}[]:,\"'\\/ax01-.eE+u\n\ud7ff"), max_size=40))
def test_any_text_of_brackets_and_quotes_is_read_or_refused(text: str) -> None:
    error = refusal(parse, text.encode())
    assert error is None or error.field.startswith("body")


@given(st.binary(max_size=64), st.sampled_from([b"", b"x", b"x\x9c", b"{"]))
def test_any_bytes_are_a_registration_or_refused(data: bytes, lead: bytes) -> None:
    error = refusal(REGISTRATION.decode, lead + data)
    assert error is None or error.field.startswith("body")


@given(st.dictionaries(TEXTS, TEXTS, max_size=6))
def test_any_settings_come_back(value: dict[str, str]) -> None:
    assert SETTINGS.decode(SETTINGS.encode(value)) == value


@given(st.text(st.sampled_from("ab=: \t\f\\\r\n#!u0"), max_size=60))
def test_any_settings_text_is_read_or_refused(text: str) -> None:
    error = refusal(SETTINGS.decode, text.encode())
    if error is None:
        read = SETTINGS.decode(text.encode())
        assert SETTINGS.decode(SETTINGS.encode(read)) == read
    else:
        assert error.field == "body"
