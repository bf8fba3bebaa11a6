"""Both sides of the replication socket, against what Apache's brokers said to each other."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pytest

from gantrymq.cluster.frames import encode_head
from gantrymq.cluster.master_link import LinkRules, MasterLink
from gantrymq.cluster.slave_link import SlaveLink
from support.golden import HA, HA_CONVERSATIONS
from support.replicas import PlainLog

if TYPE_CHECKING:
    from collections.abc import Iterator

RULES = LinkRules()
IDLE_S = 5.5


class MasterFrame(msgspec.Struct, rename="camel"):
    """A frame that was recorded."""

    at: int
    physical_offset: int
    body_size: int

    @property
    def end(self) -> int:
        return self.physical_offset + self.body_size


class About(msgspec.Struct, rename="camel"):
    """What a recording's `.json` says."""

    slave_reports: list[int]
    master_frames: list[MasterFrame]


class Recording(NamedTuple):
    """One recorded connection."""

    reports: list[int]
    frames: list[MasterFrame]
    from_master: bytes
    from_slave: bytes

    def steps(self) -> Iterator[MasterFrame]:
        """Yield what made the master write: signs of life, and the last frame of what it had."""
        for frame, after in pairwise(self.frames):
            was_cut = frame.body_size == RULES.batch_bytes_max or frame.end % 65536 == 0
            if frame.body_size == 0 or not (was_cut and after.body_size):
                yield frame
        yield self.frames[-1]


@pytest.fixture(params=HA_CONVERSATIONS)
def recording(request: pytest.FixtureRequest) -> Recording:
    about = msgspec.json.decode((HA / f"{request.param}.json").read_bytes(), type=About)
    return Recording(
        about.slave_reports,
        about.master_frames,
        (HA / f"{request.param}.master-to-slave.bin").read_bytes(),
        (HA / f"{request.param}.slave-to-master.bin").read_bytes(),
    )


def test_our_master_sends_what_apaches_did(recording: Recording) -> None:
    first = recording.frames[0]
    log = PlainLog(65536)
    log.append(0, bytes(first.physical_offset))
    bodies = b"".join(
        recording.from_master[one.at + 12 : one.at + 12 + one.body_size] for one in recording.frames
    )
    now = 0.0
    link = MasterLink(log, now)
    assert (link.frames(RULES, now, 1 << 20), link.tick(RULES, now)) == ([], b"")
    link.received(recording.from_slave[:8], now)
    said = b""
    for step in recording.steps():
        if step.body_size == 0 and step is not first:
            now += IDLE_S
            link.received(link.reported.to_bytes(8), now)
            said += link.tick(RULES, now)
            continue
        log.append(
            log.end, bodies[log.end - first.physical_offset : step.end - first.physical_offset]
        )
        said += b"".join(map(bytes, link.frames(RULES, now, 1 << 20)))
        if link.next_offset > link.reported:
            assert link.received(link.next_offset.to_bytes(8), now) == link.next_offset
    # 4.9.7 begins with a sign of life, 5.5.0 does not where there is something to send.
    sign = encode_head(first.physical_offset, 0) if first.body_size else b""
    assert said == sign + recording.from_master


def test_our_slave_says_what_apaches_did(recording: Recording) -> None:
    log = PlainLog(65536)
    if recording.reports[0]:
        log.append(0, bytes(recording.reports[0]))
    now = 0.0
    link = SlaveLink(log, now, overlap=0)
    said = link.begin()
    frames = iter(recording.frames)
    for before, report in pairwise(recording.reports):
        if report == before:
            now += IDLE_S
            said += link.tick(RULES._replace(silence_s_max=1e9), now)
            continue
        raised = b""
        while not raised:
            frame = next(frames)
            piece = recording.from_master[frame.at : frame.at + 12 + frame.body_size]
            link.space()[: len(piece)] = piece
            raised = link.received(len(piece), now)
        said += raised
    assert said == recording.from_slave
    assert log.end == recording.frames[-1].end


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_it_does_not_matter_how_the_bytes_come(recording: Recording, size: int) -> None:
    log, whole = PlainLog(65536), PlainLog(65536)
    for one in (log, whole):
        if recording.reports[0]:
            one.append(0, bytes(recording.reports[0]))
    link = SlaveLink(log, 0.0, overlap=0)
    reports = b""
    for at in range(0, len(recording.from_master), size):
        piece = recording.from_master[at : at + size]
        link.space()[: len(piece)] = piece
        reports += link.received(len(piece), 0.0)
    raised = [b for a, b in pairwise(recording.reports) if a != b]
    assert reports == b"".join(offset.to_bytes(8) for offset in raised)
