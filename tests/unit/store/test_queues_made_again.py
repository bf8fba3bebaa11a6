"""Consume queues and index are taken away as a whole; the next start makes the same ones again."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

import pytest

from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.record import decode_record
from support import every_kind
from support.queues import tag_filter

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.store.message_store import MessageStore

FOREVER_MS = 2**62


class Served(NamedTuple):
    """Everything that a store says when it is asked for everything."""

    ends: dict[tuple[str, int], tuple[int, int]]
    records: dict[tuple[str, int], list[bytes]]
    by_tag: dict[tuple[str, int, str], list[bytes]]
    by_key: dict[tuple[str, str], tuple[int, ...]]


def ends_of(store: MessageStore, topic: str, queue_id: int) -> tuple[int, int]:
    """Return the first offset of a queue and the one behind the last."""
    queue = store.queues.find(topic, queue_id)
    assert queue is not None
    return queue.min_offset, queue.max_offset


def consumed(store: MessageStore, topic: str, queue_id: int, tag: str | None = None) -> list[bytes]:
    """Return the messages of a queue, as one consumer after all of them gets them."""
    wanted = None if tag is None else tag_filter(tag)
    found: list[bytes] = []
    offset, end = 0, ends_of(store, topic, queue_id)[1]
    while offset < end:
        batch = store.get(topic, queue_id, offset, 32, wanted)
        found += [bytes(raw) for raw in batch.records]
        assert batch.next_offset > offset
        offset = batch.next_offset
    return found


def served(store: MessageStore) -> Served:
    """Ask a store for everything."""
    queues = [(queue.topic, queue.queue_id) for queue in store.queues if queue.max_offset]
    ends = {place: ends_of(store, *place) for place in queues}
    records = {place: consumed(store, *place) for place in queues}
    by_tag: dict[tuple[str, int, str], list[bytes]] = {}
    by_key: dict[tuple[str, str], tuple[int, ...]] = {}
    assert store.index is not None
    for place, raws in records.items():
        for raw in raws:
            message = decode_record(raw, 0, len(raw))[0]
            if message.tags is not None and (*place, message.tags) not in by_tag:
                by_tag[*place, message.tags] = consumed(store, *place, message.tags)
            for key in (*message.keys, message.unique_key or ""):
                hits = store.index.query(message.topic, key, 64, 0, FOREVER_MS)
                by_key[message.topic, key] = tuple(hits.log_offsets)
    return Served(ends, records, by_tag, by_key)


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_a_full_consume_finds_what_it_found_before(tmp_path: Path, *, clean: bool) -> None:
    root, clock = tmp_path / "store", VirtualClock(every_kind.STORED_MS)
    store = every_kind.make_store(root, clock)
    store.open(1)
    every_kind.write(store, clock)
    before = served(store)
    assert sum(map(len, before.records.values())) > 800
    assert len(before.by_tag) > 5
    assert len(before.by_key) > 700
    if clean:
        assert store.close()
    else:
        shutil.copytree(root, tmp_path / "killed")
        assert store.close()
        root = tmp_path / "killed"
    for name in ("consumequeue", "index"):
        shutil.rmtree(root / name)
    again = every_kind.make_store(root, clock)
    assert again.open(2).clean is clean
    assert served(again) == before
    assert again.close()
