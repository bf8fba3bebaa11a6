"""The pull lane: which pulls are alike, what the answer to a known one is, and what is held."""

from __future__ import annotations

import gc
import json
import mmap
import struct
import sys
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.kernel.values import PRE_BLANK_SIZE, KnownPull
from support.samples import (
    binary_header,
    binary_request,
    frame,
    json_request,
    pull_fields,
    send_fields,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.kernel.interface import Kernel
    from gantrymq.kernel.lanes import PullLane, PullWay

LOG = bytes(range(100))
BASE = 1000
FIRST = 10
"""Queue offset of the first unit."""
LEAST, MOST = 2, 77
NOW, UNTIL = 5.0, 6.0
VERSION, SUGGESTED = 407, 1
ALL = 1 << 20


def units(*parts: tuple[int, int, int]) -> bytes:
    return b"".join(struct.pack(">qiq", BASE + at, size, tag) for at, size, tag in parts)


QUEUE = units((0, 10, 1), (20, 5, 2), (40, 10, 1), (70, 30, 3))


def make_way(
    kernel: Kernel,
    *,
    hashes: tuple[int, ...] = (),
    messages_max: int = 32,
    bytes_max: int = ALL,
    note: object = "note",
) -> PullWay:
    return kernel.PullWay(hashes, messages_max, bytes_max, VERSION, SUGGESTED, note)


def point(way: PullWay, queue: Any = QUEUE, log: Any = LOG, **changes: Any) -> None:  # noqa: ANN401
    numbers: dict[str, Any] = {
        "queue_offset": FIRST, "log_end": len(log), "log_base": BASE, "min_offset": LEAST,
        "max_offset": MOST, "until": UNTIL,
    } | changes  # fmt: skip
    way.point(
        queue, numbers["queue_offset"], log, numbers["log_end"], numbers["log_base"],
        numbers["min_offset"], numbers["max_offset"], numbers["until"],
    )  # fmt: skip


def json_pull(offset: int = FIRST, *, opaque: int = 7, **changes: object) -> bytes:
    return json_request(11, pull_fields(queueOffset=str(offset), **changes), opaque=opaque)


def binary_pull(offset: int = FIRST, *, opaque: int = 7, **changes: object) -> bytes:
    return binary_request(11, pull_fields(queueOffset=str(offset), **changes), opaque=opaque)


CODECS = [json_pull, binary_pull]
EITHER = pytest.mark.parametrize("make", CODECS, ids=["JSON", "binary"])


def known_lane(kernel: Kernel, raw: bytes, way: PullWay, ways_max: int = 8) -> PullLane:
    lane = kernel.PullLane(ways_max)
    assert lane.remember(raw, whole(raw), way)
    return lane


def take(lane: PullLane, raw: bytes, now: float = NOW) -> KnownPull | None:
    return lane.take(raw, 0, len(raw), now)


class TestKnowing:
    """Which pulls are found again."""

    @EITHER
    def test_what_differs_between_pulls_that_are_alike(
        self, kernel: Kernel, make: Callable[..., bytes]
    ) -> None:
        way = make_way(kernel, note=("a", 1))
        lane = known_lane(kernel, make(5, opaque=1, commitOffset="5"), way)
        raw = make(2**40, opaque=-9, commitOffset="-1")
        found = take(lane, raw)
        assert found == KnownPull(way, len(raw), 2**40, -1, b"", 0, 0)
        assert type(found) is KnownPull
        assert found.way is way
        assert found.way.note == ("a", 1)

    @EITHER
    @pytest.mark.parametrize(
        "changes",
        [
            {"consumerGroup": "other"}, {"consumerGroup": "Group"}, {"topic": "Other"},
            {"queueId": "2"}, {"maxMsgNums": "31"}, {"sysFlag": "4"},
            {"suspendTimeoutMillis": "14999"}, {"subscription": "A"}, {"subscription": None},
            {"subVersion": "6"}, {"expressionType": "SQL92"}, {"expressionType": None},
            {"maxMsgBytes": "0"}, {"maxMsgBytes": "100"}, {"maxMsgBytes": "-1"},
            {"bname": "b"},
        ],
        ids=str,
    )  # fmt: skip
    def test_every_other_field_makes_another_pull(
        self, kernel: Kernel, make: Callable[..., bytes], changes: dict[str, object]
    ) -> None:
        one, other = make_way(kernel), make_way(kernel)
        lane = known_lane(kernel, make(), one)
        assert take(lane, make(**changes)) is None
        raw = make(**changes)
        assert lane.remember(raw, whole(raw), other)
        assert len(lane) == 2
        again, first = take(lane, make(99, **changes)), take(lane, make(98))
        assert again is not None
        assert first is not None
        assert again.way is other
        assert first.way is one

    def test_the_codec_and_the_version_count(self, kernel: Kernel) -> None:
        lane = known_lane(kernel, json_pull(), make_way(kernel))
        assert take(lane, binary_pull()) is None
        header = json.loads(json_pull()[8:])
        newer = frame(json.dumps(header | {"version": 400}).encode())
        assert take(lane, newer) is None
        same = frame(json.dumps(header | {"version": 399, "language": "CPP"}, indent=1).encode())
        assert take(lane, same) is not None, "it is the values that count, not their bytes"

    def test_numbers_are_compared_as_numbers(self, kernel: Kernel) -> None:
        lane = known_lane(kernel, json_pull(), make_way(kernel))
        assert take(lane, json_pull(queueId="+01", maxMsgNums=32)) is not None

    @EITHER
    def test_an_absent_field_is_not_an_empty_one(
        self, kernel: Kernel, make: Callable[..., bytes]
    ) -> None:
        lane = known_lane(kernel, make(subscription=None), make_way(kernel))
        alike = take(lane, make(subscription=""))
        # A binary header has no empty values: they are null.
        assert (alike is not None) is (make is binary_pull)

    def test_lengths_keep_fields_apart(self, kernel: Kernel) -> None:
        lane = known_lane(kernel, json_pull(consumerGroup="ab", topic="c"), make_way(kernel))
        assert take(lane, json_pull(consumerGroup="a", topic="bc")) is None

    @EITHER
    def test_oneway_and_fields_of_nobody(self, kernel: Kernel, make: Callable[..., bytes]) -> None:
        lane = known_lane(kernel, make(), make_way(kernel))
        request = json_request if make is json_pull else binary_request
        for raw in (
            request(11, pull_fields(), flag=2),
            make(AccessKey="a"),
            make(queueOffset2="1"),
            request(11, pull_fields(), flag=1),
            request(361, pull_fields()),
            request(310, send_fields(), b"x"),
            make(queueId="x"),
            make(topic=None),
            make(commitOffset=None),
        ):
            assert not lane.remember(raw, whole(raw), make_way(kernel))
            assert take(lane, raw) is None
        assert len(lane) == 1

    def test_frames_that_are_none(self, kernel: Kernel) -> None:
        raw = json_pull()
        lane = known_lane(kernel, raw, make_way(kernel))
        for end in range(len(raw)):
            assert lane.take(raw, 0, end, NOW) is None
        for bad in (
            b"\xff" * 40, struct.pack(">i", 3), struct.pack(">iI", 8, 2 << 24) + bytes(8),
            frame(b"{{{{"), frame(b""), frame(binary_header(11, [])[:-1], b"", 1),
        ):  # fmt: skip
            assert take(lane, bad) is None

    def test_only_the_front_of_a_range_is_looked_at(self, kernel: Kernel) -> None:
        raw = json_pull()
        lane = known_lane(kernel, raw, make_way(kernel))
        buffer = bytearray(b"junk" + raw + raw)
        found = lane.take(memoryview(buffer), 4, len(buffer), NOW)
        assert found is not None
        assert found.end == 4 + len(raw)
        assert lane.take(buffer, 0, len(buffer), NOW) is None

    def test_a_frame_with_a_body_is_a_pull_too(self, kernel: Kernel) -> None:
        header = json_pull()[8:]
        raw = frame(header, b"ignored")
        lane = known_lane(kernel, json_pull(), make_way(kernel))
        found = take(lane, raw)
        assert found is not None
        assert found.end == len(raw)

    def test_remembering_again_replaces(self, kernel: Kernel) -> None:
        one, other, raw = make_way(kernel), make_way(kernel), json_pull()
        lane = known_lane(kernel, raw, one)
        assert lane.remember(raw, whole(raw), other)
        found = take(lane, raw)
        assert (len(lane), found is not None and found.way is other) == (1, True)

    def test_as_many_as_it_may_remember(self, kernel: Kernel) -> None:
        lane = kernel.PullLane(3)
        for number in range(3):
            raw = json_pull(queueId=str(number))
            assert lane.remember(raw, whole(raw), make_way(kernel))
            assert len(lane) == number + 1
        raw = json_pull(queueId="1")
        assert lane.remember(raw, whole(raw), make_way(kernel))
        assert len(lane) == 3, "it was there already"
        raw = json_pull(queueId="3")
        assert lane.remember(raw, whole(raw), make_way(kernel))
        assert len(lane) == 1, "one more, and all are forgotten"
        assert take(lane, json_pull(queueId="1")) is None
        assert take(lane, raw) is not None

    def test_forgetting(self, kernel: Kernel) -> None:
        raw = json_pull()
        lane = known_lane(kernel, raw, make_way(kernel))
        lane.forget()
        assert (len(lane), take(lane, raw)) == (0, None)
        lane.forget()
        assert lane.remember(raw, whole(raw), make_way(kernel))
        assert take(lane, raw) is not None

    def test_what_is_no_way_is_not_remembered(self, kernel: Kernel) -> None:
        raw = json_pull()
        lane = kernel.PullLane(1)
        for no_way in (None, "way", object()):
            with pytest.raises(TypeError):
                lane.remember(raw, whole(raw), no_way)  # type: ignore[arg-type]
        assert len(lane) == 0


def expected(kernel: Kernel, serialize_type: int, offset: int, start: int, **limits: Any) -> bytes:  # noqa: ANN401
    """Return the answer as its two parts make it."""
    queue = limits.get("queue", QUEUE)
    found = kernel.gather_records(
        queue, start, len(queue), LOG, 0, limits.get("log_end", len(LOG)), BASE,
        limits.get("hashes", ()), limits.get("messages_max", 32), limits.get("bytes_max", ALL),
    )  # fmt: skip
    head = kernel.encode_pull_reply(
        7, serialize_type, VERSION, 0, b"FOUND", SUGGESTED, offset + (found.end - start) // 20,
        LEAST, MOST, len(found.records),
    )  # fmt: skip
    return head + found.records


class TestAnswers:
    """What is answered, and when nothing is."""

    @pytest.mark.parametrize(("make", "kind"), list(zip(CODECS, (0, 1), strict=True)))
    @pytest.mark.parametrize(
        "limits",
        [
            {}, {"hashes": (1,)}, {"hashes": (2, 3)}, {"messages_max": 1}, {"messages_max": 3},
            {"bytes_max": 1}, {"bytes_max": 15}, {"bytes_max": 14}, {"bytes_max": 2**70},
            {"messages_max": 2**70},
        ],
        ids=str,
    )  # fmt: skip
    def test_it_is_the_header_and_what_gather_finds(
        self, kernel: Kernel, make: Callable[..., bytes], kind: int, limits: dict[str, Any]
    ) -> None:
        way = make_way(kernel, **limits)
        point(way)
        lane = known_lane(kernel, make(), way)
        for offset in range(FIRST, FIRST + 3):
            start = 20 * (offset - FIRST)
            found = take(lane, make(offset))
            assert found is not None
            gathered = kernel.gather_records(
                QUEUE, start, len(QUEUE), LOG, 0, len(LOG), BASE, limits.get("hashes", ()),
                limits.get("messages_max", 32), limits.get("bytes_max", ALL),
            )  # fmt: skip
            if gathered.messages:
                assert found.answer == expected(kernel, kind, offset, start, **limits)
            else:
                assert found.answer == b""
            assert (found.messages, found.record_bytes) == (
                gathered.messages, len(gathered.records),
            )  # fmt: skip

    def test_the_records_in_plain_bytes(self, kernel: Kernel) -> None:
        way = make_way(kernel, hashes=(1,))
        point(way)
        found = take(known_lane(kernel, json_pull(), way), json_pull(opaque=-3))
        assert found is not None
        total, length = struct.unpack(">ii", found.answer[:8])
        header = json.loads(found.answer[8 : 8 + length])
        assert total == len(found.answer) - 4
        assert found.answer[8 + length :] == LOG[0:10] + LOG[40:50]
        assert (header["code"], header["opaque"], header["remark"]) == (0, -3, "FOUND")
        assert header["extFields"] == {
            "suggestWhichBrokerId": "1", "nextBeginOffset": str(FIRST + 4), "minOffset": "2",
            "maxOffset": "77",
        }  # fmt: skip

    @EITHER
    @pytest.mark.parametrize("offset", [FIRST - 1, FIRST + 4, -1, 2**63 - 1, -(2**63), 0])
    def test_offsets_outside_the_units(
        self, kernel: Kernel, make: Callable[..., bytes], offset: int
    ) -> None:
        way = make_way(kernel)
        point(way)
        raw = make(offset)
        found = take(known_lane(kernel, raw, way), raw)
        assert found == KnownPull(way, len(raw), offset, 11, b"", 0, 0)

    def test_a_way_that_was_not_pointed_and_one_whose_time_is_over(self, kernel: Kernel) -> None:
        way, raw = make_way(kernel), json_pull()
        lane = known_lane(kernel, raw, way)
        assert answer(lane, raw, NOW) == b""
        point(way, until=NOW)
        assert answer(lane, raw, NOW) != b""
        assert answer(lane, raw, NOW + 0.001) == b""
        point(way, until=NOW + 1)
        assert answer(lane, raw, NOW + 0.001) != b""

    def test_units_that_hold_no_message(self, kernel: Kernel) -> None:
        queue = units((0, PRE_BLANK_SIZE, 0), (0, PRE_BLANK_SIZE, 0), (20, 5, 2), (40, 10, 1))
        way = make_way(kernel, hashes=(1,))
        point(way, queue)
        found = take(known_lane(kernel, json_pull(), way), json_pull())
        assert found is not None
        assert (found.messages, found.record_bytes) == (1, 10)
        assert found.answer == expected(kernel, 0, FIRST, 0, queue=queue, hashes=(1,))
        assert b'"nextBeginOffset":"14"' in found.answer

    @pytest.mark.parametrize(
        "queue",
        [
            units((-1, 10, 1)),                     # before the part of the log
            units((95, 6, 1)),                      # behind it
            units((0, 2**31 - 2, 1)),
            struct.pack(">qiq", 2**63 - 1, 10, 1),
            struct.pack(">qiq", -(2**63), 10, 1),
            struct.pack(">qiq", BASE, 0, 1),        # not written
            struct.pack(">qiq", BASE, -1, 1),
            QUEUE[:19],
            b"",
        ],
    )  # fmt: skip
    def test_nothing_to_find_is_no_answer(self, kernel: Kernel, queue: bytes) -> None:
        way = make_way(kernel)
        point(way, queue)
        raw = json_pull()
        assert answer(known_lane(kernel, raw, way), raw, NOW) == b""

    def test_it_stops_at_the_end_of_the_log_part(self, kernel: Kernel) -> None:
        way = make_way(kernel)
        point(way, log_end=99)
        found = take(known_lane(kernel, json_pull(), way), json_pull())
        assert found is not None
        assert found.answer == expected(kernel, 0, FIRST, 0, log_end=99)
        assert found.messages == 3

    def test_an_extension_is_for_somebody_else(self, kernel: Kernel) -> None:
        queue = units((0, 10, 1), (20, 5, -(2**31) - 1), (40, 10, 1))
        way = make_way(kernel, hashes=(1,))
        point(way, queue)
        lane = known_lane(kernel, json_pull(), way)
        found = take(lane, json_pull())
        assert (found and found.messages) == 1
        assert answer(lane, json_pull(FIRST + 1), NOW) == b""

    def test_a_large_answer(self, kernel: Kernel) -> None:
        """More than what is copied without giving up the interpreter's lock."""
        log = bytes(range(256)) * 4096
        queue = units(*((n * 1024, 1024, n) for n in range(1024)))
        way = make_way(kernel, messages_max=2000, bytes_max=1 << 21)
        point(way, queue, log)
        found = take(known_lane(kernel, binary_pull(), way), binary_pull())
        assert found is not None
        assert (found.messages, found.record_bytes) == (1024, 1 << 20)
        assert found.answer.endswith(log)

    def test_many_pulls_share_a_way(self, kernel: Kernel) -> None:
        way, lane = make_way(kernel), kernel.PullLane(2)
        point(way)
        for make in CODECS:
            raw = make()
            assert lane.remember(raw, whole(raw), way)
        assert len(lane) == 2
        assert answer(lane, json_pull(), NOW) == expected(kernel, 0, FIRST, 0)
        assert answer(lane, binary_pull(), NOW) == expected(kernel, 1, FIRST, 0)


def answer(lane: PullLane, raw: bytes, now: float) -> bytes:
    found = take(lane, raw, now)
    assert found is not None
    return found.answer


class TestArguments:
    """What a caller may not ask for."""

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (((), 0, 1, 0, 0, None), "gather: messages_max must be positive"),
            (((), 1, 0, 0, 0, None), "gather: bytes_max must be positive"),
            (((2**31,), 1, 1, 0, 0, None), "gather: hashes must be 32-bit numbers"),
            (((), 1, 1, 2**31, 0, None), "reply: a number is out of range"),
            (((), 1, 1, 0, 2**63, None), "reply: a number is out of range"),
        ],
    )
    def test_making_a_way(self, kernel: Kernel, arguments: Any, message: str) -> None:  # noqa: ANN401
        with pytest.raises(InvalidValue) as caught:
            kernel.PullWay(*arguments)
        assert str(caught.value) == message

    @pytest.mark.parametrize("ways_max", [0, -1, -(2**70)])
    def test_making_a_lane(self, kernel: Kernel, ways_max: int) -> None:
        with pytest.raises(InvalidValue, match=r"^lane: ways_max must be positive$"):
            kernel.PullLane(ways_max)
        assert len(kernel.PullLane(2**70)) == 0

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"queue_offset": -1}, "way: -1 is not between 0 and 2**62"),
            ({"log_base": -1}, "way: -1 is not between 0 and 2**62"),
            ({"min_offset": 2**62 + 1}, f"way: {2**62 + 1} is not between 0 and 2**62"),
            ({"max_offset": 2**80}, f"way: {2**80} is not between 0 and 2**62"),
            ({"log_end": 101}, "range: start=0 end=101 do not lie within a buffer of 100 bytes"),
            ({"log_end": -1}, "range: start=0 end=-1 do not lie within a buffer of 100 bytes"),
        ],
    )
    def test_pointing(self, kernel: Kernel, changes: dict[str, Any], message: str) -> None:
        way, raw = make_way(kernel), json_pull()
        point(way)
        with pytest.raises(InvalidValue) as caught:
            point(way, QUEUE[:20], LOG[:100], **changes)
        assert str(caught.value) == message
        lane = known_lane(kernel, raw, way)
        assert answer(lane, raw, NOW) == expected(kernel, 0, FIRST, 0), "it leads where it led"

    def test_ranges(self, kernel: Kernel) -> None:
        lane = kernel.PullLane(1)
        for start, end in ((-1, 2), (0, 6), (3, 2), (0, 2**70)):
            with pytest.raises(InvalidValue, match="do not lie within a buffer of 5 bytes"):
                lane.take(bytes(5), start, end, NOW)


class Note:
    """Something that can be seen to go."""


class TestHolding:
    """Buffers are held while they are needed, and no longer."""

    def test_no_buffer_is_held_after_forgetting(self, kernel: Kernel) -> None:
        raw, held = json_pull(), mmap.mmap(-1, 4096)
        queue = bytearray(QUEUE)
        lane = kernel.PullLane(8)
        way = make_way(kernel)
        point(way, queue, memoryview(held), log_end=100)
        assert lane.remember(raw, whole(raw), way)
        with pytest.raises(BufferError):
            held.close()
        assert take(lane, raw) is not None
        del way
        lane.forget()
        gc.collect()
        held.close()
        queue.append(0)

    def test_no_buffer_is_held_after_pointing_elsewhere(self, kernel: Kernel) -> None:
        held, way = mmap.mmap(-1, 4096), make_way(kernel)
        view = memoryview(held)
        point(way, QUEUE, view, log_end=100)
        point(way)
        view.release()
        held.close()
        raw = json_pull()
        assert answer(known_lane(kernel, raw, way), raw, NOW) == expected(kernel, 0, FIRST, 0)

    def test_an_answer_is_a_copy(self, kernel: Kernel) -> None:
        log, way, raw = bytearray(LOG), make_way(kernel), json_pull()
        point(way, QUEUE, log)
        lane = known_lane(kernel, raw, way)
        found = answer(lane, raw, NOW)
        log[:] = bytes(100)
        assert found == expected(kernel, 0, FIRST, 0)
        point(way)
        log.append(0)

    def test_a_replaced_way_and_a_dropped_lane_let_go(self, kernel: Kernel) -> None:
        raw, notes = json_pull(), [Note() for _ in range(3)]
        seen = [weakref.ref(note) for note in notes]
        lane = kernel.PullLane(1)
        assert lane.remember(raw, whole(raw), make_way(kernel, note=notes[0]))
        assert lane.remember(raw, whole(raw), make_way(kernel, note=notes[1]))
        other = json_pull(topic="other")
        notes.clear()
        gc.collect()
        assert [each() is None for each in seen[:2]] == [True, False]
        assert lane.remember(other, whole(other), make_way(kernel, note=None))
        gc.collect()
        assert [each() is None for each in seen[:2]] == [True, True]

    def test_many_rounds_leave_nothing_behind(self, kernel: Kernel) -> None:
        raw, queue, log, note = json_pull(), bytearray(QUEUE), bytearray(LOG), Note()
        bad = json_pull(subscription="x" * 5000)

        def rounds(count: int) -> None:
            lane = kernel.PullLane(4)
            for number in range(count):
                way = make_way(kernel, hashes=(1, 2), note=note)
                point(way, queue, log)
                point(way, queue, log)
                assert lane.remember(raw, whole(raw), way)
                assert answer(lane, raw, NOW)
                assert take(lane, bad) is None
                if number % 7 == 0:
                    lane.forget()

        rounds(20)
        gc.collect()
        watched = (note, queue, log, raw)
        before = [sys.getrefcount(each) for each in watched]
        grown = []
        for _ in range(5):  # other threads of the process take and give memory meanwhile
            blocks = sys.getallocatedblocks()
            rounds(300)
            gc.collect()
            grown.append(sys.getallocatedblocks() - blocks)
        assert [sys.getrefcount(each) for each in watched] == before
        assert min(grown) < 100
        queue.append(0)
        log.append(0)
