"""Several connections' ranges in one call of the send lane: each part is walked as it is alone."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.kernel.values import LaneStop, Record, SendTurn
from gantrymq.limits import FRAME_BYTES_MAX
from support.samples import (
    BORN_HOST,
    IPV6_HOST,
    binary_request,
    inner_message,
    json_request,
    make_lane,
    send_fields,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.kernel.interface import Kernel
    from gantrymq.kernel.lanes import SendLane

LOG_BASE = 1 << 40
NOW = 1700000000123
OTHER_HOST = bytes([10, 0, 0, 2]) + struct.pack(">i", 54321)
BAD = (struct.pack(">i", 3), struct.pack(">iI", 8, 2 << 24), struct.pack(">iI", 8, 5))
POLICY = json_request(310, send_fields(i="DELAY\x013"), b"for policy")


@pytest.fixture
def lane(kernel: Kernel) -> SendLane:
    made = make_lane(kernel)
    made.open_topic(b"TopicTest", [0, 100])
    return made


class Done(NamedTuple):
    """What a turn did, where its parts were, and the log it wrote."""

    turn: SendTurn
    starts: list[int]
    log: bytearray


def send(body: bytes = b"hello", *, opaque: int = 7, flag: int = 0, **changes: object) -> bytes:
    return json_request(310, send_fields(**changes), body, opaque=opaque, flag=flag)


def append(
    lane: SendLane,
    parts: Sequence[bytes],
    hosts: Sequence[bytes] = (),
    *,
    room: int = 100_000,
    gap: int = 3,
) -> Done:
    """Append parts that lie apart from one another, with other bytes between them."""
    buffer, places, log = bytearray(b"\xee" * gap), [], bytearray(room)
    for number, part in enumerate(parts):
        host = hosts[number] if hosts else BORN_HOST
        places.append((len(buffer), len(buffer) + len(part), host))
        buffer += part + b"\xee" * gap
    turn = lane.append_each(buffer, places, log, 0, room, LOG_BASE, NOW)
    return Done(turn, [start for start, _, _ in places], log)


def stored(kernel: Kernel, done: Done) -> list[Record]:
    records, position, end = [], 0, done.turn.log_position
    while position < end:
        record, position = kernel.decode_record(done.log, position, end, True)
        records.append(record)
    assert not any(done.log[end:])
    return records


def opaques(kernel: Kernel, replies: bytes) -> list[int]:
    """Return whom replies are for: of the test's own requests, one after the other."""
    frames, end = kernel.split_frames(replies, 0, len(replies), FRAME_BYTES_MAX)
    assert end == len(replies)
    answers, behind = kernel.split_send_replies(replies, 0, len(replies), FRAME_BYTES_MAX, -1)
    assert (len(answers), behind) == (len(frames), end)
    return [answer.opaque for answer in answers]


def test_parts_are_taken_in_their_order_each_with_its_own_host(
    kernel: Kernel, lane: SendLane
) -> None:
    parts = [
        send(b"a", opaque=1) + send(b"b", opaque=2, e="1"),
        binary_request(310, send_fields(), b"c", opaque=3),
        send(b"d", opaque=4),
    ]
    done = append(lane, parts, [BORN_HOST, IPV6_HOST, OTHER_HOST])
    records = stored(kernel, done)
    assert [record.body for record in records] == [b"a", b"b", b"c", b"d"]
    assert [record.born_host for record in records] == [
        BORN_HOST, BORN_HOST, IPV6_HOST, OTHER_HOST,
    ]  # fmt: skip
    assert [record.sys_flag for record in records] == [0, 0, 0x10, 0]
    assert [record.queue_offset for record in records] == [0, 100, 1, 2]
    assert [record.store_timestamp for record in records] == [NOW] * 4
    ends = [start + len(part) for start, part in zip(done.starts, parts, strict=True)]
    assert [end for end, _ in done.turn.runs] == ends
    assert [opaques(kernel, replies) for _, replies in done.turn.runs] == [[1, 2], [3], [4]]
    assert done.turn[1:] == (done.turn.log_position, 4, 4, LaneStop.DRAINED)
    assert type(done.turn) is SendTurn
    assert type(done.turn.stop) is LaneStop
    assert lane.next_offsets(b"TopicTest") == [3, 101]
    assert lane.take_counts() == [(b"TopicTest", 4, done.turn.log_position)]


def test_the_beginning_of_a_frame_ends_its_part_and_not_the_turn(
    kernel: Kernel, lane: SendLane
) -> None:
    whole = send(b"a")
    for cut in range(len(whole)):
        done = append(lane, [whole + whole[:cut], whole[:cut], send(b"b", opaque=9)], gap=0)
        assert [record.body for record in stored(kernel, done)] == [b"a", b"b"]
        assert [end - start for start, (end, _) in zip(done.starts, done.turn.runs, strict=True)] \
            == [len(whole), 0, len(whole)]  # fmt: skip
        assert done.turn.stop is LaneStop.DRAINED, cut
        assert done.turn.runs[1][1] == b""


@pytest.mark.parametrize("bad", [POLICY, *BAD])
@pytest.mark.parametrize("before", [0, 1, 2])
def test_what_is_not_ordinary_ends_the_turn(
    kernel: Kernel, lane: SendLane, bad: bytes, before: int
) -> None:
    """Parts before it are done, frames of its own part before it, and nothing behind."""
    own = b"".join(send(b"own", opaque=20 + n) for n in range(before))
    done = append(lane, [send(b"a", opaque=1), own + bad + send(b"no"), send(b"not begun")])
    assert [record.body for record in stored(kernel, done)] == [b"a", *[b"own"] * before]
    assert len(done.turn.runs) == 2
    assert done.turn.runs[1][0] == done.starts[1] + len(own)
    assert opaques(kernel, done.turn.runs[1][1]) == list(range(20, 20 + before))
    assert done.turn[2:] == (1 + before, 1 + before, LaneStop.POLICY)
    assert lane.next_offsets(b"TopicTest") == [1 + before, 100]


@pytest.mark.parametrize("bad", [POLICY, *BAD])
def test_the_first_frame_of_all_may_be_the_bad_one(lane: SendLane, bad: bytes) -> None:
    done = append(lane, [bad, send()])
    assert done.turn == SendTurn([(done.starts[0], b"")], 0, 0, 0, LaneStop.POLICY)
    assert not any(done.log)


def test_a_full_log_ends_the_turn_where_it_is_full(kernel: Kernel, lane: SendLane) -> None:
    size = append(lane, [send()]).turn.log_position
    one = send()
    done = append(lane, [one, one + one, one], room=2 * size + 8)
    assert len(stored(kernel, done)) == 2
    assert [end - start for start, (end, _) in zip(done.starts, done.turn.runs, strict=False)] == [
        len(one), len(one),
    ]  # fmt: skip
    assert done.turn[1:] == (2 * size, 2, 2, LaneStop.LOG_FULL)
    first = append(lane, [one, one], room=2 * size + 7)
    assert (len(first.turn.runs), first.turn.stop) == (2, LaneStop.LOG_FULL)
    assert first.turn.runs[1] == (first.starts[1], b"")
    never = append(lane, [one], room=size + 7)
    assert never.turn == SendTurn([(never.starts[0], b"")], 0, 0, 0, LaneStop.POLICY)


def test_no_parts_and_empty_parts(kernel: Kernel, lane: SendLane) -> None:
    assert append(lane, []).turn == SendTurn([], 0, 0, 0, LaneStop.DRAINED)
    empty = append(lane, [b"", b""])
    assert empty.turn == SendTurn(
        [(empty.starts[0], b""), (empty.starts[1], b"")], 0, 0, 0, LaneStop.DRAINED
    )
    done = append(lane, [b"", send(), b""])
    assert len(stored(kernel, done)) == 1
    assert [bool(replies) for _, replies in done.turn.runs] == [False, True, False]


def test_oneway_sends_and_batches(kernel: Kernel, lane: SendLane) -> None:
    fields = send_fields(m="true", i="")
    batch = json_request(320, fields, inner_message(b"x") + inner_message(b"y"), opaque=4)
    done = append(lane, [send(b"a", flag=2), batch, send(b"b", flag=2) + send(b"c", opaque=9)])
    assert [record.body for record in stored(kernel, done)] == [b"a", b"x", b"y", b"b", b"c"]
    assert [opaques(kernel, replies) for _, replies in done.turn.runs] == [[], [4], [9]]
    assert done.turn[2:4] == (4, 5)


def test_one_part_is_one_append(kernel: Kernel) -> None:
    streams = [
        b"", send(), send() + send(flag=2), send() + POLICY, send() + BAD[0], send()[:-1],
        send(e="1") + send(b="Other") + send(), b"".join(send(b"%d" % n) for n in range(40)),
    ]  # fmt: skip
    for stream in streams:
        for room in (100_000, 500, 150, 0):
            one, each = make_lane(kernel), make_lane(kernel)
            for made in (one, each):
                made.open_topic(b"TopicTest", [5, 100])
            log, other = bytearray(room), bytearray(room)
            run = one.append(stream, 0, len(stream), log, 0, room, 7, BORN_HOST, NOW)
            turn = each.append_each(stream, [(0, len(stream), BORN_HOST)], other, 0, room, 7, NOW)
            assert turn == SendTurn([(run.consumed, run.replies)], *run[1:4], run.stop)
            assert log == other
            assert one.take_counts() == each.take_counts()
            assert one.next_offsets(b"TopicTest") == each.next_offsets(b"TopicTest")


def test_parts_may_come_in_any_order_and_overlap(kernel: Kernel, lane: SendLane) -> None:
    raw = send(b"a", opaque=1) + send(b"b", opaque=2)
    cut, log = len(raw) // 2, bytearray(2000)
    parts = [(cut, len(raw), BORN_HOST), (0, cut, OTHER_HOST), (0, len(raw), BORN_HOST)]
    turn = lane.append_each(raw, parts, log, 300, 2000, LOG_BASE, NOW)
    assert [opaques(kernel, replies) for _, replies in turn.runs] == [[2], [1], [1, 2]]
    record, _ = kernel.decode_record(log, 300, 2000, True)
    assert (record.body, record.log_offset) == (b"b", LOG_BASE + 300)
    assert not any(log[:300])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parts": [(0, 5, BORN_HOST), (-1, 5, BORN_HOST)]},
         "range: start=-1 end=5 do not lie within a buffer of 5 bytes"),
        ({"parts": [(0, 6, BORN_HOST)]},
         "range: start=0 end=6 do not lie within a buffer of 5 bytes"),
        ({"parts": [(4, 3, BORN_HOST)]},
         "range: start=4 end=3 do not lie within a buffer of 5 bytes"),
        ({"parts": [(0, 2**70, BORN_HOST)]},
         f"range: start=0 end={2**70} do not lie within a buffer of 5 bytes"),
        ({"parts": [(0, 5, BORN_HOST), (0, 5, b"123")]},
         "lane: born host has 3 bytes, not 8 or 20"),
        ({"limit": 1001}, "range: position=0 limit=1001 do not lie within a buffer of 1000 bytes"),
        ({"position": 9, "limit": 8},
         "range: position=9 limit=8 do not lie within a buffer of 1000 bytes"),
        ({"log_base": -1}, "lane: log_base and now_ms must be between 0 and 2**62"),
        ({"now_ms": 2**62 + 1}, "lane: log_base and now_ms must be between 0 and 2**62"),
    ],
)  # fmt: skip
def test_arguments(lane: SendLane, changes: dict[str, object], message: str) -> None:
    log = bytearray(1000)
    arguments: dict[str, object] = {
        "buffer": bytes(5), "parts": [(0, 5, BORN_HOST)], "log": log, "position": 0, "limit": 1000,
        "log_base": 0, "now_ms": 0,
    } | changes  # fmt: skip
    with pytest.raises(InvalidValue) as caught:
        lane.append_each(**arguments)  # type: ignore[arg-type]
    assert str(caught.value) == message
    assert not any(log)


def test_a_bad_part_at_the_end_means_that_nothing_was_stored(lane: SendLane) -> None:
    raw, log = send(), bytearray(1000)
    parts = [(0, len(raw), BORN_HOST), (0, len(raw) + 1, BORN_HOST)]
    with pytest.raises(InvalidValue):
        lane.append_each(raw, parts, log, 0, 1000, 0, NOW)
    assert not any(log)
    assert lane.next_offsets(b"TopicTest") == [0, 100]
    assert lane.take_counts() == []


def test_nothing_of_the_buffers_is_kept(lane: SendLane) -> None:
    raw, log = bytearray(send()), bytearray(1000)
    lane.append_each(raw, [(0, len(raw), BORN_HOST)] * 2, log, 0, 1000, LOG_BASE, NOW)
    raw.append(0)
    log.append(0)
    assert lane.next_offsets(b"TopicTest") == [2, 100]


def test_a_thousand_parts(kernel: Kernel, lane: SendLane) -> None:
    hosts = [bytes([10, 0]) + n.to_bytes(2) + bytes(4) for n in range(1000)]
    done = append(lane, [send(b"%d" % n, opaque=n) for n in range(1000)], hosts, room=300_000)
    records = stored(kernel, done)
    assert [record.born_host for record in records] == hosts
    assert [opaques(kernel, replies) for _, replies in done.turn.runs] == [[n] for n in range(1000)]
