from __future__ import annotations

import pytest

from gantrymq.errors import InvalidValue, ProtocolError
from gantrymq.wire.fields import Header, Int32, Int64


class Sample(Header, frozen=True, kw_only=True):
    """One field of each type, and an optional one of each."""

    plain_text: str
    small_number: Int32
    large_number: Int64
    is_true: bool
    maybe_text: str | None = None
    maybe_number: Int32 | None = None
    maybe_flag: bool | None = None
    defaulted: Int32 = 7


FIELDS = {
    "plainText": "x",
    "smallNumber": "-5",
    "largeNumber": "9223372036854775807",
    "isTrue": "true",
}


def test_decode_and_encode() -> None:
    header = Sample.decode({**FIELDS, "other": "passed over"})
    assert header == Sample(plain_text="x", small_number=-5, large_number=2**63 - 1, is_true=True)
    assert header.encode() == {**FIELDS, "defaulted": "7"}
    assert list(header.encode()) == [*FIELDS, "defaulted"]
    assert Sample.wire_names()[:3] == ("plainText", "smallNumber", "largeNumber")


def test_optional_fields() -> None:
    more = {"maybeText": "", "maybeNumber": "0", "maybeFlag": "false", "defaulted": "8"}
    header = Sample.decode({**FIELDS, **more})
    assert (header.maybe_text, header.maybe_number, header.maybe_flag) == ("", 0, False)
    assert header.encode() == {**FIELDS, **more}


@pytest.mark.parametrize("name", FIELDS)
def test_missing(name: str) -> None:
    fields = {key: value for key, value in FIELDS.items() if key != name}
    with pytest.raises(ProtocolError) as caught:
        Sample.decode(fields)
    assert (caught.value.field, caught.value.problem) == (f"header.extFields.{name}", "is missing")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-0", 0),
        ("+12", 12),
        ("0012", 12),
        ("0" * 5000 + "1", 1),
        ("2147483647", 2**31 - 1),
        ("-2147483648", -(2**31)),
    ],
)
def test_integers_as_java_reads_them(text: str, number: int) -> None:
    assert Sample.decode({**FIELDS, "smallNumber": text}).small_number == number


@pytest.mark.parametrize(
    "text",
    [
        "", "+", "-", "--1", "1-", " 1", "1 ", "1\n", "1_0", "1.0", "1e3", "0x1", "abc", "٣",
        "\uff11", "2147483648", "-2147483649", "9" * 5000,
    ],
)  # fmt: skip
def test_texts_that_are_no_int32(text: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        Sample.decode({**FIELDS, "smallNumber": text})
    assert caught.value.field == "header.extFields.smallNumber"
    assert caught.value.problem.endswith("is not a 32-bit integer")
    assert len(caught.value.problem) < 120


def test_int64_range() -> None:
    lowest = Sample.decode({**FIELDS, "largeNumber": str(-(2**63))})
    assert lowest.large_number == -(2**63)
    for number in (2**63, -(2**63) - 1):
        with pytest.raises(ProtocolError, match="is not a 64-bit integer"):
            Sample.decode({**FIELDS, "largeNumber": str(number)})


def test_the_message_names_field_and_value() -> None:
    with pytest.raises(ProtocolError) as caught:
        Sample.decode({**FIELDS, "smallNumber": "abc"})
    assert str(caught.value) == "header.extFields.smallNumber: 'abc' is not a 32-bit integer"


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("TRUE", True), ("True", True)]
    + [(text, False) for text in ("false", "1", "yes", "", " true", "t")],
)
def test_booleans_as_java_reads_them(text: str, value: bool) -> None:
    assert Sample.decode({**FIELDS, "isTrue": text}).is_true is value


def test_numbers_out_of_range_are_not_written() -> None:
    header = Sample.decode(FIELDS)
    for small, large in ((2**31, 0), (0, -(2**63) - 1)):
        wrong = Sample(
            plain_text=header.plain_text,
            small_number=small,
            large_number=large,
            is_true=True,
        )
        with pytest.raises(InvalidValue):
            wrong.encode()


def test_a_schema_with_another_type_is_refused() -> None:
    class Wrong(Header, frozen=True, kw_only=True):
        names: list[str]

    with pytest.raises(TypeError, match=r"Wrong\.names"):
        Wrong.wire_names()
