"""A queue offset that is not the next one: a damaged message costs itself, a true gap nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantrymq.store.consume_queue import GAP_UNITS_MAX, ConsumeQueue
from gantrymq.store.errors import StoreDamaged
from gantrymq.store.jumps import Jumps
from gantrymq.testing.disk import SimulatedFiles
from support.queues import log_offsets, run
from support.store_rig import LOG, Rig

QUEUE_OFFSET_AT = 20
"""Where a record has its queue offset, in eight bytes."""
COUNT = 12
DAMAGED = [1, 6, 7, 1000, GAP_UNITS_MAX * 2, 2**59, 2**62, 2**63]
"""Bits of a queue offset that are turned over: 5 becomes 4, 3 and so on, or cannot be."""


class Building:
    """A queue and what is appended to it, each message on its own unless said otherwise."""

    def __init__(self, *offsets: int) -> None:
        self.queue = ConsumeQueue("T", 0, Path("/store/consumequeue/T/0"), 100, SimulatedFiles())
        self.jumps = Jumps()
        self._log_end = 0
        self.append(*offsets)

    def append(self, *offsets: int, together: int = 1) -> Building:
        """Append messages with these offsets; of the last ones so many at once."""
        for offset in offsets:
            count = together if offset == offsets[-1] else 1
            places = range(self._log_end, self._log_end + 100 * count, 100)
            self._log_end += 100 * count
            self.queue.append(run(offset, *places), self.jumps)
        return self

    @property
    def units(self) -> list[int | None]:
        """Return the number in the log of every message that is in the queue, from the first."""
        self.jumps.settle()
        return [None if one is None else one // 100 for one in log_offsets(self.queue)]


class TestWhoIsBelieved:
    """Numbers are those of messages in the log."""

    @pytest.mark.parametrize("said", [9, 4, 0, -5, 3 + GAP_UNITS_MAX, 2**62])
    @pytest.mark.parametrize("together", [1, 3])
    def test_one_that_those_around_it_contradict(self, said: int, together: int) -> None:
        built = Building(0, 1, 2, said).append(4, together=together).append(4 + together)
        assert built.units == [0, 1, 2, None, *range(4, 5 + together)]
        assert built.queue.min_offset == 0
        assert built.jumps.left_out == 1

    @pytest.mark.parametrize("said", [7, 2, 2**62, -1])
    @pytest.mark.parametrize("together", [1, 3])
    def test_the_first_of_a_log(self, said: int, together: int) -> None:
        built = Building(said).append(1, together=together).append(1 + together)
        assert built.units == [*range(1, 2 + together)]
        assert built.queue.min_offset == 1

    @pytest.mark.parametrize("together", [1, 3])
    def test_the_first_of_a_queue_that_begins_somewhere(self, together: int) -> None:
        built = Building(5000).append(1001, together=together).append(1001 + together)
        assert built.units == [*range(1, 2 + together)]
        assert built.queue.min_offset == 1001

    def test_the_second_of_a_queue_that_begins_somewhere(self) -> None:
        built = Building(1000, 33, 1002, 1003)
        assert built.units == [0, None, 2, 3]
        assert built.queue.min_offset == 1000

    def test_two_in_one_queue(self) -> None:
        assert Building(0, 40, 2, 3, 0, 5, 6).units == [0, None, 2, 3, None, 5, 6]

    def test_one_at_the_end_that_cannot_be(self) -> None:
        built = Building(0, 1, 2**62)
        assert built.units == [0, 1]
        assert built.append(2).units == [0, 1, 3]


class TestHonest:
    """What was always believed."""

    @pytest.mark.parametrize("together", [1, 2])
    def test_a_gap(self, together: int) -> None:
        built = Building(0, 1).append(4, together=together).append(4 + together)
        assert built.units == [0, 1, None, None, *range(2, 3 + together)]
        assert built.jumps.left_out == 0

    def test_a_gap_before_the_last_one(self) -> None:
        assert Building(0, 1, 4).units == [0, 1, None, None, 2]

    def test_a_topic_that_was_made_again(self) -> None:
        assert Building(0, 1, 2, 0, 1, 2).units == [3, 4, 5]
        assert Building(0, 1, 2, 0).units == [3]
        assert Building(5, 6, 0, 1).units == [2, 3]

    def test_a_queue_whose_first_messages_have_expired(self) -> None:
        built = Building(1000, 1001, 1002)
        assert (built.units, built.queue.min_offset) == ([0, 1, 2], 1000)
        alone = Building(1000)
        assert (alone.units, alone.queue.min_offset) == ([0], 1000)

    def test_several_that_agree_on_what_cannot_be(self) -> None:
        built = Building(0, 1)
        with pytest.raises(StoreDamaged, match="says that it has queue offset"):
            built.append(2**40, together=2)


def written() -> Rig:
    """Return a store with messages in two queues by turns."""
    rig = Rig()
    for number in range(COUNT):
        rig.put(b"%d" % number * 50, queue_id=number % 2)
    return rig


def damaged(rig: Rig, queue_offset: int, flip: int) -> SimulatedFiles:
    """Return the disk of a killed process with other bits in a queue offset of queue 0."""
    disk, record = rig.disk.kill(), rig.records()[queue_offset]
    said = (queue_offset ^ flip).to_bytes(8)
    disk.write_at(LOG / f"{0:020d}", record.log_offset + QUEUE_OFFSET_AT, said, 0)
    return disk


def served(rig: Rig) -> dict[int, bytes]:
    """Return what a reader of queue 0 gets, by offset; it must come to the end."""
    found: dict[int, bytes] = {}
    offset, end = 0, rig.store.reads.max_offset("T", 0)
    while offset < end:
        batch = rig.store.get("T", 0, offset, 32)
        rig.settle()
        for number, raw in enumerate(batch.records):
            record = int.from_bytes(bytes(raw[QUEUE_OFFSET_AT : QUEUE_OFFSET_AT + 8]))
            found[record] = bytes(raw)
            assert number < COUNT
        assert batch.next_offset > offset, "stuck"
        offset = batch.next_offset
    return found


class TestStores:
    """The same where a user would see it."""

    @pytest.mark.parametrize("flip", DAMAGED)
    @pytest.mark.parametrize("queue_offset", [0, 1, 4])
    def test_after_a_crash_all_others_are_served(self, queue_offset: int, flip: int) -> None:
        rig = written()
        wanted = served(rig)
        assert len(wanted) == COUNT // 2
        del wanted[queue_offset]
        again = rig.again(damaged(rig, queue_offset, flip))
        assert served(again) == wanted
        assert again.put(b"next").queue_offset == COUNT // 2

    @pytest.mark.parametrize("flip", [1, 6, 1000, 2**62])
    def test_a_slave_that_is_sent_it_serves_all_others(self, flip: int) -> None:
        rig = written()
        wanted = served(rig)
        del wanted[2]
        end = rig.store.log.wrote_offset
        log = damaged(rig, 2, flip).read(LOG / f"{0:020d}")[:end]
        slave = Rig({"brokerRole": "SLAVE"})
        slave.store.append_replica(0, log)
        slave.settle()
        assert served(slave) == wanted
