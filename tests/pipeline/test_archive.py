"""Archive, compact, search and replay: a lake that holds every message once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gantrymq.blocking import Producer
from gantrymq.model.names import is_system_topic
from gantrymq.spark.jobs.lake import Lake
from gantrymq.spark.jobs.lake_read import lake_frame
from gantrymq.testing import ThreadedBroker
from support.golden import stored_messages
from support.golden_trees import unpacked
from support.pipeline import IN_TESTS, run, run_well

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.tool("java"), pytest.mark.usefixtures("spark")]


@pytest.fixture(scope="module")
def broker() -> Iterator[ThreadedBroker]:
    with ThreadedBroker() as started:
        yield started


def send(broker: ThreadedBroker, topic: str, first: int, count: int) -> None:
    with Producer(broker.namesrv, "orders") as producer:
        for number in range(first, first + count):
            body = f'{{"order": {{"id": {number}, "city": "town-{number % 7}"}}}}'
            producer.send(topic, body.encode(), keys=[f"k{number}"], tags=f"t{number % 3}")


def test_a_topic_is_archived_batch_by_batch(
    broker: ThreadedBroker, tmp_path: Path, spark: SparkSession
) -> None:
    topic, lake = broker.create_topic("Archived", 3), str(tmp_path / "lake")
    send(broker, topic, 0, 100)
    options = {"name_server": broker.namesrv, "topic": [topic], "to": lake, "batch_rows": 40}
    first = run_well("archive", group="archiver", **options)
    assert first.figures["messages archived"] == 100
    assert int(first.figures["batches"] or 0) >= 3
    again = run_well("archive", **options)
    assert again.figures["messages archived"] == 0
    send(broker, topic, 100, 30)
    third = run_well("archive", **options)
    assert third.figures["messages archived"] == 30
    rows = lake_frame(spark, Lake.open(lake)).selectExpr("cast(body as string) body", "keys")
    found = sorted((row.keys, row.body) for row in rows.collect())
    expected = sorted(
        (f"k{number}", f'{{"order": {{"id": {number}, "city": "town-{number % 7}"}}}}')
        for number in range(130)
    )
    assert found == expected
    lag = run_well("lag", name_server=broker.namesrv, topic=[topic], group=["archiver"])
    assert lag.figures["messages behind"] == 30

    joined = run_well("compact", lake=lake, keep_seconds=0)
    assert int(joined.figures["files made"] or 0) == 3
    assert int(joined.figures["old files removed"] or 0) > 3
    assert lake_frame(spark, Lake.open(lake)).count() == 130
    send(broker, topic, 130, 10)
    hit = run_well("search", lake=lake, name_server=broker.namesrv, topic=[topic], key="k7")
    assert [row["keys"] for row in hit.tables["hits"]] == ["k7"]
    live = run_well(
        "search", lake=lake, name_server=broker.namesrv, topic=[topic],
        json_path=["$.order.city=town-3"],
    )  # fmt: skip
    assert [row["keys"] for row in live.tables["hits"]] == [
        f"k{number}" for number in range(3, 140, 7)
    ]

    target = broker.create_topic("Replayed", 2)
    options = {"lake": lake, "name_server": broker.namesrv, "to": target,
               "state": str(tmp_path / "state")}  # fmt: skip
    sent = run_well("replay", **options)
    assert sent.figures["messages sent now"] == 130
    second = run_well("replay", **options)
    assert second.figures["messages sent now"] == 0
    for done in (tmp_path / "state").glob("*.done"):
        done.unlink()  # as if it had been killed before it could say so
    third = run_well("replay", **options)
    assert third.figures["messages sent now"] == 0
    assert len(broker.messages(target)) == 130
    other = run("replay", IN_TESTS, **{**options, "key": "k1"})
    assert "other messages" in other.problems[0]


def test_a_store_of_apache_is_archived_without_a_broker(tmp_path: Path) -> None:
    label = "apache-4.9.7-clean"
    root, lake = unpacked(label, tmp_path), str(tmp_path / "lake")
    report = run_well("archive", path=[str(root)], topic_pattern=".*", to=lake)
    expected = [
        message
        for message in stored_messages(label)
        if not is_system_topic(str(message["topic"])) and not str(message["topic"]).startswith("%")
    ]
    assert report.figures["messages archived"] == len(expected) > 800


def test_files_that_no_manifest_names_are_removed(tmp_path: Path) -> None:
    root, lake = unpacked("apache-5.5.0-clean", tmp_path), tmp_path / "lake"
    options = {"path": [str(root)], "topic": ["PlainTopic"], "to": str(lake)}
    run_well("archive", **options)
    stray = lake / "data" / "topic=PlainTopic" / "day=2026-01-01" / "b00000001-x-0-0-9.parquet"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"half a file")
    report = run_well("archive", **options)
    assert report.figures["unfinished files removed"] == 1
    assert not stray.exists()


def test_a_damaged_lake_does_not_pass(tmp_path: Path) -> None:
    root, lake = unpacked("apache-5.5.0-clean", tmp_path), tmp_path / "lake"
    options = {"path": [str(root)], "topic": ["PlainTopic"], "to": str(lake)}
    run_well("archive", **options)
    path = next(iter((lake / "data").rglob("*.parquet")))
    path.unlink()
    report = run("archive", IN_TESTS, **options)
    assert not next(check for check in report.checks if check.name == "files").passed


def test_rows_that_a_dying_jvm_kept_are_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySpark takes the end of its socket for the end of the rows, whatever ended it."""
    root, lake = unpacked("apache-5.5.0-clean", tmp_path), tmp_path / "lake"
    options = {"path": [str(root)], "topic": ["PlainTopic"], "to": str(lake)}
    monkeypatch.setattr("pyspark.sql.classic.dataframe.DataFrame.collect", lambda _self: [])
    report = run("archive", IN_TESTS, **options)
    assert report.state == "failed"
    assert "not said that they are done" in report.problems[0]
    assert not Lake.open(str(lake)).batches
    monkeypatch.undo()
    assert int(run_well("archive", **options).figures["messages archived"] or 0) > 100
