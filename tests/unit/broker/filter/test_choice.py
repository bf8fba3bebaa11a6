"""Which messages pass: by tag, by expression, by bitmap, and on retry topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from gantrymq.broker.filter.choice import Choice, choice_for
from gantrymq.broker.filter.group_filter import build_filter
from gantrymq.broker.filter.table import FilterTable
from gantrymq.errors import InvalidValue
from gantrymq.kernel import QueueUnit, Record
from gantrymq.model.group import Subscription
from gantrymq.store.consume_queue_ext import ExtUnit
from gantrymq.wire.properties import encode_properties
from gantrymq.wire.tags import tag_hash
from support.samples import record_on_disk

if TYPE_CHECKING:
    from gantrymq.store.get import Filter

NOW = 1_794_800_000_000
ADDRESS = -(2**63) + 60


def unit(tags_code: int) -> QueueUnit:
    return QueueUnit(1000, 200, tags_code)


def record(**properties: str) -> memoryview:
    raw = Record(
        queue_id=0, flag=0, queue_offset=0, log_offset=0, sys_flag=0, born_timestamp=NOW,
        born_host=bytes(8), store_timestamp=NOW, store_host=bytes(8), reconsume_times=0,
        prepared_offset=0, body=b"body", topic=b"T", properties=encode_properties(properties),
    )  # fmt: skip
    return memoryview(record_on_disk(raw))


def sql(expression: str, topic: str = "T") -> Subscription:
    return Subscription(topic, expression, version=1, expression_type="SQL92")


@pytest.fixture
def table() -> FilterTable:
    """Return a table in which g takes from T what has an `a` above 5."""
    table = FilterTable()
    table.register("g", [sql("a > 5")], NOW)
    return table


def sql_choice(table: FilterTable, bitmap: bytes | None = None, stored_ms: int = NOW + 1) -> Choice:
    """Return the choice of g on T, with an extension that holds one bitmap."""
    ext = None if bitmap is None else ExtUnit(0, stored_ms, bitmap)
    found = choice_for(
        sql("a > 5"),
        table.get("T", "g"),
        table,
        read_extension=lambda address: ext if address == ADDRESS else None,
    )
    assert found is not None
    return found


# -- tags ------------------------------------------------------------------------------------------


def tag_choice(expression: str, ext: ExtUnit | None = None) -> Choice:
    found = choice_for(
        Subscription("T", expression), None, FilterTable(), read_extension=lambda _: ext
    )
    assert found is not None
    return found


def test_tags_are_compared_by_hash() -> None:
    choice = tag_choice("Aa || negative-hash-of-tag-x")
    assert choice.by_unit(unit(tag_hash("Aa")))
    assert choice.by_unit(unit(tag_hash("BB"))), "the client tells them apart"
    assert choice.by_unit(unit(tag_hash("negative-hash-of-tag-x")))
    assert not choice.by_unit(unit(tag_hash("Ab")))
    assert not choice.by_unit(unit(0))
    assert choice.by_record(record(TAGS="Ab")), "the record has nothing to add"
    assert choice.by_properties({})


def test_the_low_half_of_a_tags_code_counts() -> None:
    low = tag_hash("Aa")
    assert tag_choice("Aa").by_unit(unit((1 << 40) + low))
    negative = next(f"t{n}" for n in range(99999) if tag_hash(f"t{n}" * 5) < 0) * 5
    assert tag_choice(negative).by_unit(unit(tag_hash(negative)))
    assert tag_choice(negative).by_unit(unit(tag_hash(negative) & 0xFFFFFFFF))


def test_hashes_of_the_client_are_taken() -> None:
    given = Subscription("T", "x", frozenset({"x"}), frozenset({7}))
    choice = choice_for(given, None, FilterTable())
    assert choice is not None
    assert choice.by_unit(unit(7))
    assert not choice.by_unit(unit(tag_hash("x")))


def test_the_extension_knows_the_tag() -> None:
    choice = tag_choice("Aa", ExtUnit(tag_hash("Aa"), NOW, b""))
    assert choice.by_unit(unit(ADDRESS))
    assert not tag_choice("Ab", ExtUnit(tag_hash("Aa"), NOW, b"")).by_unit(unit(ADDRESS))
    assert choice.by_dispatch(tag_hash("Aa"), None)
    assert not choice.by_dispatch(0, None)


def test_without_its_unit_in_the_extension_the_client_decides() -> None:
    assert tag_choice("Aa", None).by_unit(unit(ADDRESS))
    no_extension = choice_for(Subscription("T", "Aa"), None, FilterTable())
    assert no_extension is not None
    assert no_extension.by_unit(unit(ADDRESS))


@pytest.mark.parametrize(
    "subscription",
    [None, Subscription("T"), Subscription("T", ""), Subscription("T", "x", class_filter=True)],
)
def test_whoever_wants_all_has_no_filter(subscription: Subscription | None) -> None:
    assert choice_for(subscription, None, FilterTable()) is None


def test_no_tag_at_all_is_refused() -> None:
    with pytest.raises(InvalidValue, match="names no tag"):
        choice_for(Subscription("T", "||"), None, FilterTable())


# -- SQL92 -----------------------------------------------------------------------------------------


def test_the_expression_decides(table: FilterTable) -> None:
    choice = sql_choice(table)
    assert choice.by_unit(unit(tag_hash("any")))
    assert choice.by_record(record(a="6", b="y"))
    assert not choice.by_record(record(a="5"))
    assert not choice.by_record(record(b="y"))
    assert not choice.by_record(record(a="x"))
    assert choice.by_properties({"a": "6"})
    assert not choice.by_properties({})


def test_the_bitmap_decides_before_the_record(table: FilterTable) -> None:
    wanted, unwanted = (table.bits_for("T", {"a": a}) for a in ("6", "5"))
    assert sql_choice(table, wanted).by_unit(unit(ADDRESS))
    assert not sql_choice(table, unwanted).by_unit(unit(ADDRESS))
    assert not sql_choice(table).by_dispatch(None, ExtUnit(0, NOW + 1, unwanted or b""))


def test_the_bitmap_tells_nothing(table: FilterTable) -> None:
    nothing = bytes(14)
    assert sql_choice(table, nothing, stored_ms=NOW).by_unit(unit(ADDRESS)), "made before"
    assert sql_choice(table, b"").by_unit(unit(ADDRESS)), "no bitmap"
    assert sql_choice(table, bytes(13)).by_unit(unit(ADDRESS)), "another length"
    assert sql_choice(table, nothing).by_unit(unit(ADDRESS + 34)), "no unit"
    assert sql_choice(table, nothing).by_unit(unit(77)), "no address"
    assert sql_choice(table, nothing).by_dispatch(77, None)
    assert not sql_choice(table, nothing).by_unit(unit(ADDRESS))


def test_a_filter_of_the_pull_itself_has_no_bits(table: FilterTable) -> None:
    of_pull = build_filter("T", "g", "a > 7", "SQL92", 1, NOW)
    ext = ExtUnit(0, NOW + 1, bytes(14))
    choice = choice_for(sql("a > 7"), of_pull, table, read_extension=lambda _: ext)
    assert choice is not None
    assert choice.by_unit(unit(ADDRESS))
    assert not choice.by_record(record(a="7"))
    assert choice.by_record(record(a="8"))


def test_without_a_filter_all_pass(table: FilterTable) -> None:
    broken = replace(build_filter("T", "g", "a > 7", "SQL92", 1, NOW), compiled=None)
    for known in (None, broken):
        choice = choice_for(sql("a > 7"), known, table)
        assert choice is not None
        assert choice.by_unit(unit(5))
        assert choice.by_record(record(a="1"))


def test_a_record_that_cannot_be_read_has_no_properties(table: FilterTable) -> None:
    torn = record(a="6")[:50]
    assert not sql_choice(table).by_record(torn)
    absent = build_filter("T", "g", "a IS NULL", "SQL92", 1, NOW)
    choice = choice_for(sql("a IS NULL"), absent, table)
    assert choice is not None
    assert choice.by_record(torn)


# -- retry topics ----------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", ["%RETRY%g", "%RETRY%g+T"])
def test_a_retried_message_is_filtered_as_at_first(table: FilterTable, topic: str) -> None:
    retried = sql("a > 0", topic)
    choice = choice_for(retried, None, table, retry_filtered=True)
    assert choice is not None
    assert choice.by_unit(unit(5))
    assert choice.by_record(record(RETRY_TOPIC="T", a="6"))
    assert not choice.by_record(record(RETRY_TOPIC="T", a="5"))
    assert choice.by_record(record(RETRY_TOPIC="Unfiltered", a="5"))
    assert choice.by_record(record(a="5")), "nobody knows where it comes from"
    assert not choice.by_properties({"RETRY_TOPIC": "T"})


def test_without_the_setting_it_is_not(table: FilterTable) -> None:
    choice = choice_for(sql("a > 0", "%RETRY%g"), None, table)
    assert choice is not None
    assert choice.by_record(record(RETRY_TOPIC="T", a="5"))


def test_another_group_has_other_filters(table: FilterTable) -> None:
    choice = choice_for(sql("a > 0", "%RETRY%h"), None, table, retry_filtered=True)
    assert choice is not None
    assert choice.by_record(record(RETRY_TOPIC="T", a="5"))


def test_tags_on_a_retry_topic_stay_tags(table: FilterTable) -> None:
    assert choice_for(Subscription("%RETRY%g"), None, table, retry_filtered=True) is None


def test_a_choice_does_not_change_with_the_table(table: FilterTable) -> None:
    choice = choice_for(sql("a > 0", "%RETRY%g"), None, table, retry_filtered=True)
    assert choice is not None
    table.register("g", [replace(sql("a > 100"), version=2)], NOW + 1)
    assert choice.by_record(record(RETRY_TOPIC="T", a="6"))


def test_the_store_takes_a_choice(table: FilterTable) -> None:
    as_store_sees_it: Filter = sql_choice(table)
    assert as_store_sees_it.by_unit(unit(0))
