"""What the two sides of a replication connection do, and what they do not believe."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from gantrymq.cluster.frames import FrameReader, LinkBroken, encode_head, encode_hello
from gantrymq.cluster.group_state import Epoch, GroupState
from gantrymq.cluster.in_sync import InSyncSet, Progress
from gantrymq.cluster.master_link import UNREPORTED_BYTES_MAX, LinkRules, MasterLink
from gantrymq.cluster.replica_group import ReplicaGroup
from gantrymq.cluster.slave_link import LogsDiffer, SlaveLink
from support.replicas import PlainLog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.kernel.interface import Buffer

RULES = LinkRules(batch_bytes_max=100)


def report(offset: int) -> bytes:
    return offset.to_bytes(8, signed=True)


def master_of(end: int, first: int, file_bytes: int = 1000) -> tuple[PlainLog, MasterLink]:
    """Return a log of so many bytes and a link whose slave has reported `first`."""
    log = PlainLog(file_bytes)
    log.append(0, (bytes(range(256)) * (end // 256 + 1))[:end])
    link = MasterLink(log, 0.0)
    link.received(report(first), 0.0)
    return log, link


def sizes(pieces: Sequence[Buffer]) -> list[int]:
    return [len(piece) for piece in pieces if len(piece) != 12]


class TestMaster:
    """What a master sends and which reports it takes."""

    def test_an_empty_slave_gets_the_last_file(self) -> None:
        _, link = master_of(2345, 0)
        assert sizes(link.frames(RULES, 0.0, 1 << 20)) == [100, 100, 100, 45]

    def test_frames_never_cross_a_file(self) -> None:
        _, link = master_of(2345, 1950)
        assert sizes(link.frames(RULES, 0.0, 1 << 20)) == [50, 100, 100, 100, 45]

    def test_a_report_counts_for_what_was_sent(self) -> None:
        _, link = master_of(345, 100)
        link.frames(RULES, 0.0, 1 << 20)
        assert link.received(report(100), 0.0) is None
        assert link.received(report(200) + report(300), 0.0) == 300
        assert link.received(report(300), 0.0) is None
        assert link.received(report(345), 0.0) == 345

    def test_reports_may_come_in_pieces(self) -> None:
        _, link = master_of(345, 100)
        link.frames(RULES, 0.0, 1 << 20)
        assert [link.received(report(200)[i : i + 1], 0.0) for i in range(8)][-1] == 200

    @pytest.mark.parametrize("offset", [-1, 99, 150, 346, 2**62])
    def test_other_numbers_end_it(self, offset: int) -> None:
        _, link = master_of(345, 100)
        link.frames(RULES, 0.0, 1 << 20)
        with pytest.raises(LinkBroken):
            link.received(report(offset), 0.0)

    def test_what_was_not_sent_cannot_be_reported(self) -> None:
        log, link = master_of(345, 100)
        link.frames(RULES, 0.0, 1 << 20)
        log.append(345, bytes(55))
        with pytest.raises(LinkBroken):
            link.received(report(400), 0.0)

    @pytest.mark.parametrize(
        ("first", "why"), [(346, "behind this master's end"), (-5, "without failover")]
    )
    def test_a_slave_that_cannot_follow_is_told_why_in_the_log(self, first: int, why: str) -> None:
        with pytest.raises(LinkBroken, match=why):
            master_of(345, first)

    def test_a_slave_whose_place_is_deleted(self) -> None:
        log = PlainLog()
        log.append(2000, bytes(100))
        with pytest.raises(LinkBroken, match="is deleted"):
            MasterLink(log, 0.0).received(report(1500), 0.0)

    def test_a_member_says_who_it_is(self) -> None:
        log = PlainLog()
        log.append(0, bytes(100))
        link = MasterLink(log, 0.0, epoch=7)
        link.received(encode_hello(7, 3) + report(50), 0.0)
        assert (link.member, link.next_offset) == (3, 50)
        with pytest.raises(LinkBroken, match="epoch 6; this one is in epoch 7"):
            MasterLink(log, 0.0, epoch=7).received(encode_hello(6, 3), 0.0)

    def test_random_bytes_release_nothing(self) -> None:
        dice = Random(7)
        for _ in range(2000):
            log = PlainLog()
            log.append(0, bytes(5000))
            link = MasterLink(log, 0.0)
            try:
                for _ in range(4):
                    assert link.received(dice.randbytes(dice.randrange(1, 64)), 0.0) is None
                    link.frames(RULES, 0.0, 1 << 20)
            except LinkBroken:
                pass

    def test_it_does_not_run_ahead_for_ever(self) -> None:
        log = PlainLog(1 << 30)
        log.append(0, bytes(UNREPORTED_BYTES_MAX + 5))
        link = MasterLink(log, 0.0)
        link.received(report(1), 0.0)
        rules = LinkRules(batch_bytes_max=1 << 20)
        while link.frames(rules, 0.0, 1 << 20):
            pass
        assert link.next_offset == UNREPORTED_BYTES_MAX + 1
        link.received(report(1 + (1 << 20)), 0.0)
        assert sizes(link.frames(rules, 0.0, 1 << 30)) == [4]

    def test_cold_bytes_are_waited_for(self) -> None:
        log, link = master_of(345, 100)
        log.cold_before = 200
        assert sizes(link.frames(RULES, 0.0, 1 << 20)) == []
        log.cold_before = 0
        assert sizes(link.frames(RULES, 0.0, 1 << 20)) == [100, 100, 45]

    def test_signs_of_life_and_silence(self) -> None:
        _, link = master_of(100, 100)
        assert link.frames(RULES, 1.0, 100) == [encode_head(100, 0)]
        assert link.tick(RULES, 5.9) == b""
        assert link.tick(RULES, 6.0) == encode_head(100, 0)
        link.received(report(100), 15.0)
        link.tick(RULES, 35.0)
        with pytest.raises(LinkBroken, match="heard"):
            link.tick(RULES, 35.1)


class TestSlave:
    """What a slave takes."""

    def pair(self, own: bytes, masters: bytes) -> tuple[PlainLog, SlaveLink, MasterLink]:
        log, other = PlainLog(), PlainLog()
        log.append(0, own)
        other.append(0, masters)
        slave, master = SlaveLink(log, 0.0, overlap=150), MasterLink(other, 0.0)
        master.received(slave.begin(), 0.0)
        return log, slave, master

    def give(self, slave: SlaveLink, master: MasterLink, now: float = 0.0) -> int | None:
        """Bring what the master has to the slave, and its reports back."""
        data = b"".join(map(bytes, master.frames(RULES, now, 1 << 20))) or master.tick(RULES, now)
        slave.space()[: len(data)] = data
        return master.received(slave.received(len(data), now), now)

    def test_it_compares_and_goes_on(self) -> None:
        data = bytes(Random(1).randbytes(700))
        log, slave, master = self.pair(data[:400], data)
        assert not slave.is_level
        assert self.give(slave, master) == 700
        assert (log.read(0, 700), slave.is_level) == (data, True)

    def test_another_history_is_not_followed(self) -> None:
        data = Random(1).randbytes(700)
        log, slave, master = self.pair(data[:300] + b"x" + data[301:400], data)
        with pytest.raises(LogsDiffer, match="different histories"):
            self.give(slave, master)
        assert log.end == 400

    def test_a_slave_that_is_ahead_says_so(self) -> None:
        data = Random(1).randbytes(400)
        log, slave, master = self.pair(data, data[:350])
        self.give(slave, master)
        self.give(slave, master, 6.0)
        with pytest.raises(LogsDiffer, match="has lost something"):
            self.give(slave, master, 12.0)
        assert log.end == 400

    def test_it_reports_what_is_safe(self) -> None:
        data = Random(1).randbytes(700)
        log, slave, master = self.pair(data[:400], data)
        log.unsafe_bytes = 250
        frames = b"".join(map(bytes, master.frames(RULES, 0.0, 1 << 20)))
        slave.space()[: len(frames)] = frames
        assert slave.received(len(frames), 0.0)[-8:] == report(450)
        log.unsafe_bytes = 0
        assert slave.reports(0.0) == report(700)

    def test_a_short_log_is_not_taken_for_an_empty_one(self) -> None:
        data = Random(1).randbytes(100)
        log, slave, master = self.pair(data[:90], data)
        assert slave.begin() == report(1)
        assert self.give(slave, master) == 100
        assert log.read(0, 100) == data

    def test_a_hole_ends_it(self) -> None:
        _, slave, _ = self.pair(bytes(400), bytes(400))
        frame = encode_head(500, 3) + b"abc"
        slave.space()[: len(frame)] = frame
        with pytest.raises(LinkBroken, match="was due"):
            slave.received(len(frame), 0.0)

    @pytest.mark.parametrize(
        "head", [encode_head(-1, 5), encode_head(5, -1), encode_head(5, 5 << 20)]
    )
    def test_what_is_no_frame_ends_it(self, head: bytes) -> None:
        reader = FrameReader()
        reader.space()[: len(head)] = head
        with pytest.raises(LinkBroken, match="no master sends"):
            list(reader.feed(len(head)))


def test_a_group_counts_slaves_that_are_near() -> None:
    confirmed: list[int] = []
    group = ReplicaGroup(lambda: 200, confirmed.append, lambda: None)
    assert not group.is_available(100)
    _, near = master_of(345, 300)
    group.joined(near)
    assert (group.is_available(499), group.is_available(500)) == (True, False)
    group.left(near)
    group.left(near)
    assert not group.is_available(301)


def test_how_far_messages_are_shown() -> None:
    state = GroupState(3, 1, "session", (1, 2), (Epoch(3, 0),))
    in_sync = InSyncSet(1, state, 0.0)
    assert in_sync.shown_until({2: 70, 3: 40}) == 70, "of those who may become master"
    assert in_sync.shown_until({3: 40}) == 0, "one of them is gone"
    alone = InSyncSet(1, state.with_in_sync(frozenset({1})), 0.0)
    assert alone.shown_until({2: 70}) is None
    for now, shown in ((0.1, 100), (0.2, 150)):
        assert alone.look(Progress({2: 120}, 120, 0, shown, 0), now) is None
    assert alone.shown_until({2: 130}) == 130, "it is near, and is to lack nothing"
    assert alone.look(Progress({2: 160}, 170, 0, 150, 0), 0.3) == frozenset({1, 2})
    assert ReplicaGroup(lambda: 0, lambda _: None, lambda: None).shown_until() is None
