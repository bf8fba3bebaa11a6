"""Filters come with heartbeats, stay a day when their groups go, and are kept in a file."""

from __future__ import annotations

import msgspec
import pytest

from gantrymq.broker.filter import table as table_module
from gantrymq.broker.filter.bloom import BloomFilter
from gantrymq.broker.filter.errors import FilterError
from gantrymq.broker.filter.group_filter import GroupFilter, build_filter, is_tag_type
from gantrymq.broker.filter.table import KEPT_MS, FilterTable
from gantrymq.errors import ContentError
from gantrymq.model.group import Subscription

NOW = 1_794_800_000_000


def sql(topic: str, expression: str, version: int = 1) -> Subscription:
    return Subscription(topic, expression, version=version, expression_type="SQL92")


def known(table: FilterTable, topic: str = "T", group: str = "g") -> GroupFilter:
    found = table.get(topic, group)
    assert found is not None
    return found


@pytest.fixture
def table() -> FilterTable:
    """Return a table in which g filters T."""
    table = FilterTable()
    assert table.register("g", [sql("T", "a > 5")], NOW)
    return table


def test_a_filter_is_registered(table: FilterTable) -> None:
    found = known(table)
    assert (found.group, found.topic, found.expression) == ("g", "T", "a > 5")
    assert (found.born_ms, found.dead_ms, found.client_version) == (NOW, 0, 1)
    assert found.bits == table.bloom.bits_of("g", "T")
    assert found.compiled is not None
    assert found.compiled.matches({"a": "6"})
    assert not found.is_dead
    assert len(table) == 1
    assert list(table.of_topic("T")) == [found]
    assert table.of_group("g") == {"T": found}


def test_tags_and_empty_expressions_are_not(table: FilterTable) -> None:
    tags = [Subscription("A", "x || y"), sql("B", ""), Subscription("C", "x", expression_type="")]
    assert not table.register("h", tags, NOW)
    assert len(table) == 1


@pytest.mark.parametrize("expression_type", ["sql92", "SQL", "GROOVY"])
def test_a_type_that_nobody_knows_is_not(table: FilterTable, expression_type: str) -> None:
    assert not table.register_one("X", "g", "a > 5", expression_type, 1, NOW)
    with pytest.raises(FilterError, match="SQL92 is"):
        build_filter("X", "g", "a > 5", expression_type, 1, NOW)


def test_tag_types() -> None:
    assert all(map(is_tag_type, (None, "", "TAG")))
    assert not any(map(is_tag_type, ("SQL92", "tag")))


def test_an_older_or_the_same_version_changes_nothing(table: FilterTable) -> None:
    before = known(table)
    assert not table.register("g", [sql("T", "a > 6", version=1)], NOW + 1)
    assert not table.register("g", [sql("T", "a > 6", version=0)], NOW + 1)
    assert known(table) is before


def test_a_newer_version_with_the_same_expression_keeps_its_birth(table: FilterTable) -> None:
    assert table.register("g", [sql("T", "a > 5", version=2)], NOW + 1)
    assert (known(table).client_version, known(table).born_ms) == (2, NOW)


def test_a_new_expression_is_born_anew(table: FilterTable) -> None:
    assert table.register("g", [sql("T", "a > 6", version=2)], NOW + 1)
    found = known(table)
    assert (found.expression, found.client_version, found.born_ms) == ("a > 6", 2, NOW + 1)
    assert found.bits == table.bloom.bits_of("g", "T")
    assert len(table) == 1


def test_a_new_expression_that_is_none_removes_the_old_one(table: FilterTable) -> None:
    assert not table.register("g", [sql("T", "a >", version=2)], NOW + 1)
    assert table.get("T", "g") is None
    assert len(table) == 0
    assert table.bits_for("T", {}) is None


def test_a_topic_that_a_group_left_is_dead(table: FilterTable) -> None:
    table.register("other", [sql("T", "a > 1")], NOW)
    assert table.register("g", [Subscription("Elsewhere")], NOW + 1)
    assert (known(table).dead_ms, known(table).is_dead) == (NOW + 1, True)
    assert not known(table, group="other").is_dead
    assert not table.register("g", [Subscription("Elsewhere")], NOW + 2)
    assert known(table).dead_ms == NOW + 1


def test_a_group_goes_and_comes_back(table: FilterTable) -> None:
    table.unregister("g", NOW + 10)
    table.unregister("g", NOW + 20)
    table.unregister("nobody", NOW + 20)
    assert known(table).dead_ms == NOW + 10
    assert not table.register("g", [sql("T", "a > 5", version=0)], NOW + 30)
    assert known(table).is_dead
    assert table.register("g", [sql("T", "a > 5", version=1)], NOW + 30)
    assert (known(table).is_dead, known(table).born_ms) == (False, NOW)
    table.unregister("g", NOW + 40)
    assert table.register("g", [sql("T", "a > 5", version=2)], NOW + 50)
    assert (known(table).is_dead, known(table).born_ms) == (False, NOW)


def test_the_long_dead_are_forgotten(table: FilterTable) -> None:
    table.register("alive", [sql("T", "a > 5")], NOW)
    table.unregister("g", NOW + 10)
    assert table.clean(NOW + 9 + KEPT_MS) == 0
    assert table.clean(NOW + 10 + KEPT_MS) == 1
    assert table.get("T", "g") is None
    assert table.get("T", "alive") is not None
    assert len(table) == 1


def test_there_are_not_too_many(table: FilterTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "FILTERS_REGISTERED_MAX", 2)
    assert table.register("h", [sql("T", "a > 5")], NOW)
    assert not table.register("i", [sql("T", "a > 5")], NOW)
    assert len(table) == 2
    # Those that are there can still change.
    assert table.register("h", [sql("T", "a > 6", version=2)], NOW)


# -- dispatch --------------------------------------------------------------------------------------


def test_bits_are_those_of_the_groups_that_want_the_message(table: FilterTable) -> None:
    table.register("h", [sql("T", "b = 'x' OR a > 100")], NOW)
    of_g = 1 << known(table).bits.positions[0]  # type: ignore[union-attr]
    nobody = table.bits_for("T", {"a": "1"})
    g_only = table.bits_for("T", {"a": "6"})
    both = table.bits_for("T", {"a": "101"})
    assert nobody == bytes(14)
    assert g_only is not None
    assert both is not None
    g_bits, both_bits = (int.from_bytes(found, "little") for found in (g_only, both))
    assert g_bits & of_g
    assert g_bits.bit_count() == 3
    assert both_bits & g_bits == g_bits
    assert both_bits != g_bits


def test_a_value_that_cannot_be_compared_sets_no_bit(table: FilterTable) -> None:
    assert table.bits_for("T", {"a": "x"}) == bytes(14)


def test_a_topic_without_filters_has_no_bitmap(table: FilterTable) -> None:
    assert table.bits_for("U", {"a": "6"}) is None


def test_groups_that_are_gone_still_count(table: FilterTable) -> None:
    before = table.bits_for("T", {"a": "6"})
    table.unregister("g", NOW + 1)
    assert before != bytes(14)
    assert table.bits_for("T", {"a": "6"}) == before


# -- the file --------------------------------------------------------------------------------------


def test_the_file_has_apaches_names(table: FilterTable) -> None:
    assert msgspec.json.decode(table.to_json(NOW)) == {
        "filterDataByTopic": {
            "T": {
                "groupFilterData": {
                    "g": {
                        "bloomFilterData": {
                            "bitNum": 112,
                            "bitPos": list(table.bloom.bits_of("g", "T").positions),
                        },
                        "bornTime": NOW,
                        "clientVersion": 1,
                        "consumerGroup": "g",
                        "dead": False,
                        "deadTime": 0,
                        "expression": "a > 5",
                        "expressionType": "SQL92",
                        "topic": "T",
                    }
                },
                "topic": "T",
            }
        }
    }


def test_the_file_leaves_out_the_long_dead(table: FilterTable) -> None:
    table.unregister("g", NOW)
    assert msgspec.json.decode(table.to_json(NOW + KEPT_MS)) == {"filterDataByTopic": {}}


def test_loaded_groups_count_as_gone(table: FilterTable) -> None:
    table.register("h", [sql("T", "a > 5")], NOW + 90_000)
    table.unregister("h", NOW + 90_001)
    table.register("late", [sql("T", "a > 5")], NOW + 95_000)
    loaded = FilterTable.from_json(table.to_json(NOW), NOW + 100_000)
    assert known(loaded).dead_ms == NOW + 70_000
    assert known(loaded, group="h").dead_ms == NOW + 90_001
    assert known(loaded, group="late").dead_ms == NOW + 95_000
    assert all(found.is_dead for found in loaded)
    assert loaded.bits_for("T", {"a": "6"}) == table.bits_for("T", {"a": "6"})
    assert loaded.register("g", [sql("T", "a > 5")], NOW + 100_000)
    assert not known(loaded).is_dead
    assert len(loaded) == 3


def test_other_bits_make_the_file_useless(table: FilterTable) -> None:
    content = table.to_json(NOW)
    assert len(FilterTable.from_json(content, NOW, BloomFilter.for_consumers(20, 64))) == 0
    assert len(FilterTable.from_json(content, NOW, BloomFilter.for_consumers(20, 32))) == 1


def test_a_stored_expression_that_is_none_is_kept_without_bits_set(table: FilterTable) -> None:
    content = table.to_json(NOW).replace(b"a > 5", b"a > >")
    loaded = FilterTable.from_json(content, NOW)
    assert known(loaded).compiled is None
    assert loaded.bits_for("T", {"a": "6"}) == bytes(14)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"filterDataByTopic":5}', b"\xff"])
def test_another_file_is_refused(content: bytes) -> None:
    with pytest.raises(ContentError):
        FilterTable.from_json(content, NOW)


@pytest.mark.parametrize("content", [b"{}", b'{"filterDataByTopic":{}}'])
def test_an_empty_file_is_an_empty_table(content: bytes) -> None:
    assert len(FilterTable.from_json(content, NOW)) == 0
