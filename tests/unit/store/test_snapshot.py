"""A store's files as a reader of ranges sees them, while a broker writes to them and afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gantrymq.blocking import Producer
from gantrymq.kernel import UNIT_BYTES
from gantrymq.store.errors import StoreDamaged
from gantrymq.store.snapshot import FileSnapshot, RecoveredSnapshot, open_snapshot
from gantrymq.testing import ThreadedBroker

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.store.snapshot import Snapshot

SMALL = {"mappedFileSizeCommitLog": "65536", "mappedFileSizeConsumeQueue": "1000"}


def counts(snapshot: Snapshot) -> dict[str, int]:
    found: dict[str, int] = {}
    for topic, _queue, least, most in snapshot.queues():
        found[topic] = found.get(topic, 0) + most - least
    return found


def send(namesrv: str, topic: str, count: int) -> None:
    with Producer(namesrv) as producer:
        for number in range(count):
            producer.send(topic, b"%04d" % number * 50)


def test_files_of_a_running_broker_are_seen_as_they_grow(tmp_path: Path) -> None:
    with ThreadedBroker(directory=tmp_path, settings=SMALL) as broker:
        send(broker.namesrv, "T", 100)
        snapshot = open_snapshot(tmp_path)
        assert isinstance(snapshot, FileSnapshot)  # the broker has the store open
        seen = []
        for _ in range(100):
            seen.append(counts(snapshot).get("T", 0))
            if seen[-1] == 100:
                break
            broker.jump(1)  # queues are written out by the clock
        send(broker.namesrv, "T", 300)
        for _ in range(100):
            seen.append(counts(snapshot)["T"])
            if seen[-1] == 400:
                break
            broker.jump(1)
    assert seen == sorted(seen)
    assert seen[-1] == 400
    assert counts(snapshot)["T"] == 400  # also when it has stopped
    snapshot.close()


def test_every_unit_leads_to_its_message(tmp_path: Path) -> None:
    with ThreadedBroker(directory=tmp_path, settings=SMALL) as broker:
        send(broker.namesrv, "T", 300)
    snapshot = open_snapshot(tmp_path)
    assert not snapshot.is_recovered
    found = []
    for topic, queue_id, least, most in snapshot.queues():
        units = snapshot.units(topic, queue_id, least, most - least + 10)
        for at in range(0, (most - least) * UNIT_BYTES, UNIT_BYTES):
            log_offset = int.from_bytes(units[at : at + 8])
            size = int.from_bytes(units[at + 8 : at + 12])
            span = snapshot.span_at(log_offset)
            assert span is not None
            begin = log_offset - span.log_base
            found.append(bytes(span.buffer[begin : begin + size]))
    assert sum(b"%04d" % 7 * 50 in record for record in found) == 1
    assert len(found) == 300
    assert snapshot.units("T", 0, 10**6, 10) == b""
    assert snapshot.span_at(10**12) is None
    snapshot.close()


def test_queues_that_were_taken_away_are_built_again_in_memory(tmp_path: Path) -> None:
    with ThreadedBroker(directory=tmp_path, settings=SMALL) as broker:
        send(broker.namesrv, "T", 120)
    for path in sorted((tmp_path / "consumequeue").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    snapshot = open_snapshot(tmp_path)
    assert isinstance(snapshot, RecoveredSnapshot)
    assert counts(snapshot)["T"] == 120
    snapshot.close()
    assert not list((tmp_path / "consumequeue").iterdir())


def test_a_store_without_a_clean_end_is_recovered_in_memory(tmp_path: Path) -> None:
    with ThreadedBroker(directory=tmp_path, settings=SMALL) as broker:
        send(broker.namesrv, "T", 120)
    (tmp_path / "abort").write_bytes(b"")
    snapshot = open_snapshot(tmp_path)
    assert snapshot.is_recovered
    assert counts(snapshot)["T"] == 120
    snapshot.close()


def test_no_store_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreDamaged, match="holds no store"):
        open_snapshot(tmp_path)
