"""Rows on their way to a real broker, without a Spark: what is there already, and bad rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from gantrymq.errors import GantryError, InvalidValue
from gantrymq.spark.idempotent import OtherRows
from gantrymq.spark.link import link_to
from gantrymq.spark.options import ConnectionOptions, read_sink_options
from gantrymq.spark.places import Place
from gantrymq.spark.sink import write_rows
from gantrymq.testing import ThreadedBroker

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@pytest.fixture(scope="module")
def broker() -> Iterator[ThreadedBroker]:
    with ThreadedBroker() as started:
        yield started
        link_to(ConnectionOptions(name_server=started.namesrv, timeout_s=5.0, retries=2)).close()


def write(
    broker: ThreadedBroker,
    columns: Mapping[str, Sequence[Any]],
    types: dict[str, Any] | None = None,
    place: Place | None = None,
    **options: str,
) -> int:
    told = {"nameServer": broker.namesrv, "timeoutMs": "5000", "retries": "2", **options}
    fields = [(name, (types or {}).get(name, pa.string())) for name in columns]
    batch = pa.RecordBatch.from_pydict(columns, schema=pa.schema(fields))
    at = place or Place("job-test", 0, 0, 0, is_stream=False, begun_ms=0)
    return write_rows(read_sink_options(told), at, iter([batch])).rows


def bodies(broker: ThreadedBroker, topic: str) -> list[bytes]:
    return sorted(message.body for message in broker.messages(topic))


def second_attempt(name: str) -> Place:
    return Place(f"job-{name}", 0, 0, 1, is_stream=False, begun_ms=0)


def test_a_second_attempt_sends_what_is_missing_and_nothing_else(broker: ThreadedBroker) -> None:
    topic, rows = broker.create_topic("Again", 2), [f"row-{number}" for number in range(10)]
    first = Place("job-again", 0, 0, 0, is_stream=False, begun_ms=0)
    options: dict[str, Any] = {"topic": topic, "level": "idempotent"}
    assert write(broker, {"body": rows[:6]}, place=first, **options) == 6
    assert write(broker, {"body": rows}, place=second_attempt("again"), **options) == 4
    assert bodies(broker, topic) == sorted(row.encode() for row in rows)


@pytest.mark.parametrize("other", [["a", "c", "b"], ["a", "b"], ["x", "b", "c"]])
def test_other_rows_than_the_first_time_are_an_error(
    broker: ThreadedBroker, other: list[str]
) -> None:
    """Left out as already sent they would be lost, without a word."""
    name = "-".join(other)
    topic = broker.create_topic(f"Other-{name}", 1)
    first = Place(f"job-{name}", 0, 0, 0, is_stream=False, begun_ms=0)
    options: dict[str, Any] = {"topic": topic, "level": "idempotent"}
    write(broker, {"body": ["a", "b", "c"]}, place=first, **options)
    with pytest.raises(OtherRows, match="does not give the same rows"):
        write(broker, {"body": other}, place=second_attempt(name), **options)
    assert bodies(broker, topic) == [b"a", b"b", b"c"]


def test_nulls_are_nothing(broker: ThreadedBroker) -> None:
    columns: dict[str, list[Any]] = {
        "body": ["one", "two"], "topic": ["Nulls", "Nulls"], "tags": [None, "t"],
        "keys": [None, ["k", None, ""]], "properties": [None, [("a", None), ("b", "2")]],
        "queueId": [None, None], "brokerName": [None, "broker-a"], "shardingKey": [None, None],
        "delayLevel": [None, 0], "deliverTimestamp": [None, None], "flag": [None, 3],
    }  # fmt: skip
    types = {
        "keys": pa.list_(pa.string()), "properties": pa.map_(pa.string(), pa.string()),
        "queueId": pa.int32(), "delayLevel": pa.int32(), "flag": pa.int32(),
        "deliverTimestamp": pa.timestamp("us", tz="Europe/Lisbon"),
    }  # fmt: skip
    assert write(broker, columns, types) == 2
    one, two = sorted(broker.messages("Nulls"), key=lambda message: message.body)
    assert (one.tags, one.keys, one.flag) == (None, (), 0)
    assert (two.tags, two.keys, two.flag, two.properties["b"]) == ("t", ("k",), 3, "2")
    assert "a" not in two.properties


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"body": [None], "topic": ["T"]}, "has no body"),
        ({"body": ["x"], "topic": [None]}, "has no topic"),
        ({"body": ["x"], "topic": ["no topic!"]}, "no topic!"),
        ({"body": ["x"], "topic": ["T"], "brokerName": ["nobody"]}, "of broker nobody"),
        ({"body": [""], "topic": ["T"]}, "body"),
        ({"body": ["x" * (5 << 20)], "topic": ["T"]}, "4194304"),
    ],
)
@pytest.mark.parametrize("level", ["at_least_once", "idempotent", "transactional"])
def test_rows_that_are_none_are_named(
    broker: ThreadedBroker, columns: dict[str, list[Any]], said: str, level: str
) -> None:
    broker.create_topic("T", 1)
    with pytest.raises((GantryError, InvalidValue), match=said):
        write(broker, columns, level=level)
    assert not broker.messages("T")


def test_rows_of_the_size_of_the_largest_body_are_taken() -> None:
    largest = "x" * (4 << 20)
    with ThreadedBroker(settings={"mappedFileSizeCommitLog": str(16 << 20)}) as broker:
        for level in ("at_least_once", "idempotent", "transactional"):
            topic = broker.create_topic(f"Large-{level.replace('_', '-')}", 1)
            write(broker, {"body": ["first", largest, "small"]}, topic=topic, level=level)
            if level != "transactional":  # whose half messages nobody ends here
                found = [message.body for message in broker.messages(topic)]
                assert found == [b"first", largest.encode(), b"small"]
