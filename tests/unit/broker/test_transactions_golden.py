"""Half messages that Apache brokers left behind: ours goes on with exactly those that are open.

The stores have messages that were committed, rolled back, decided when asked about, and five that
their producer never decides. Release 5.5.0 writes several offsets into one op record.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from gantrymq.broker.half import done_with
from gantrymq.model.names import HALF_OP_TOPIC
from gantrymq.testing.clock import VirtualClock
from support.golden import stored_messages
from support.golden_disk import golden_disk
from support.golden_trees import NOW_MS
from support.store_rig import Rig
from support.stores import GoldenStore
from support.transaction_world import COMMIT, ROLLBACK, World

if TYPE_CHECKING:
    from collections.abc import Iterator

LABELS = (
    "apache-4.9.7-clean",
    "apache-4.9.7-killed",
    "apache-4.9.7-torn",
    "apache-5.5.0-clean",
    "apache-5.5.0-killed",
    "apache-5.5.0-torn",
)
GROUP = "pg_tx"
SIZES = {
    "mappedFileSizeCommitLog": "262144",
    "mappedFileSizeConsumeQueue": "1000",
    "maxHashSlotNum": "200",
    "maxIndexNum": "800",
}


class Taken:
    """A golden store with our transactions on it."""

    def __init__(self, label: str) -> None:
        store = GoldenStore(label)
        disk = golden_disk(store, "commitlog", "consumequeue", "index", "config", "checkpoint")
        rig = Rig(SIZES, disk, VirtualClock(NOW_MS))
        saved = store.files["config/consumerOffset.json"]
        self.world = World(rig, saved=saved)
        self.tags = {
            str(each["uniqKey"]).encode(): str(each["tags"])
            for each in stored_messages(label)
            if each["topic"] == "RMQ_SYS_TRANS_HALF_TOPIC"
        }
        self.seen_before = self.seen()

    def seen(self) -> Counter[bytes]:
        """Return the bodies that consumers get."""
        return Counter(self.world.seen("TransTopic", 0) + self.world.seen("TransTopic", 1))


@pytest.fixture(params=LABELS)
def taken(request: pytest.FixtureRequest) -> Iterator[Taken]:
    """Return a store that was taken over."""
    taken = Taken(request.param)
    yield taken
    taken.world.close()


def test_only_what_is_open_is_asked_about(taken: Taken) -> None:
    """Once for each, whatever became of its copies; what was decided is left alone."""
    producer = taken.world.producer(5, GROUP)
    taken.world.round()
    asked = [question.body for question in taken.world.asked(producer)]
    assert sorted(taken.tags[key] for key in asked) == ["pending"] * 5
    assert len(set(asked)) == 5
    assert taken.seen() == taken.seen_before


def test_open_ones_can_be_committed(taken: Taken) -> None:
    """They are seen once, and nobody is asked any more."""
    producer = taken.world.producer(5, GROUP)
    taken.world.round()
    first, *others = taken.world.asked(producer)
    for question in others:
        taken.world.end(question, COMMIT, GROUP)
    taken.world.end(first, ROLLBACK, GROUP)
    taken.world.round()
    assert taken.world.asked(producer) == []
    new = taken.seen() - taken.seen_before
    assert len(new) == 4
    assert set(new.values()) == {1}
    assert taken.world.progress()[0] == len(taken.world.halves())


@pytest.mark.parametrize(
    ("label", "several"), [("apache-4.9.7-clean", False), ("apache-5.5.0-clean", True)]
)
def test_op_records_of_both_releases_are_read(label: str, several: bool) -> None:
    """4.9 writes an offset, 5.x a list; together they are about the twenty that were decided."""
    world = Taken(label).world
    found = [done_with(record) for record in world.rig.records(HALF_OP_TOPIC)]
    world.close()
    assert any(len(halves) > 1 for halves in found) == several
    assert all(halves for halves in found)
    assert len({offset for halves in found for offset in halves}) == 20
