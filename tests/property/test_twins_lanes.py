"""The twins agree about the lanes: sends of several connections, and pulls that are known again."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from gantrymq.errors import ProtocolError
from gantrymq.kernel.values import PRE_BLANK_SIZE, Frame, LaneStop
from support.agreement import check_agreement, outcome
from support.kernels import KERNELS
from support.samples import binary_request, frame, json_request, make_lane, pull_fields, whole
from support.strategies import binary_headers, integers, json_headers, send_frames, spoiled

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel
    from gantrymq.kernel.lanes import PullLane, PullWay

NOISE = st.binary(max_size=120)
LOG_BASE = 1 << 33
NOW = 1700000000000

# -- sends of several connections ----------------------------------------------------------------

SENDS = st.lists(send_frames(), max_size=3).map(b"".join)
HOSTS = st.sampled_from([bytes(8), bytes(range(20)), bytes(range(8))])
PARTS = st.lists(st.tuples(SENDS | SENDS | spoiled(SENDS) | NOISE, HOSTS), max_size=5)
FEWER = settings(max_examples=max(20, settings().max_examples // 3))
"""Streams of sends are slow to make."""
ROOMS = st.sampled_from([(0, 4000), (0, 4000), (5, 4000), (0, 900), (0, 300), (3999, 4000)])


@FEWER
@given(PARTS, ROOMS, st.sampled_from([LOG_BASE, 0, 2**62, -1]), st.data())
def test_append_each(
    parts: list[tuple[bytes, bytes]], room: tuple[int, int], log_base: int, data: st.DataObject
) -> None:
    buffer, places = b"", []
    for part, host in parts:
        places.append((len(buffer), len(buffer) + len(part), host))
        buffer += part
    if places and not data.draw(st.integers(0, 9)):
        start, end, host = places[-1]
        places[-1] = data.draw(
            st.sampled_from([(start - 1, end, host), (start, end + 1, host), (start, end, b"123")])
        )

    def act(kernel: Kernel) -> object:
        lane, log = make_lane(kernel), bytearray(4000)
        lane.open_topic(b"TopicTest", [0, 3])
        done = outcome(lambda: lane.append_each(buffer, places, log, *room, log_base, NOW))
        return done, log, lane.next_offsets(b"TopicTest"), lane.take_counts()

    check_agreement(act)


@FEWER
@given(st.lists(send_frames(), max_size=6), st.data())
def test_where_a_stream_is_cut_makes_no_difference(
    frames: list[bytes], data: st.DataObject
) -> None:
    """At the borders of frames; and what each part gives is what it gives alone."""
    stream, borders = b"".join(frames), [0]
    for one_frame in frames:
        borders.append(borders[-1] + len(one_frame))
    inner = st.sampled_from(borders)
    cuts = sorted(data.draw(st.lists(inner, max_size=5)))
    edges = [0, *cuts, len(stream)]
    host = bytes(range(8))
    for kernel in KERNELS.values():
        one, each = make_lane(kernel), make_lane(kernel)
        for lane in (one, each):
            lane.open_topic(b"TopicTest", [0, 3])
        log, other = bytearray(6000), bytearray(6000)
        parts = [(a, b, host) for a, b in pairwise(edges)]
        turn = each.append_each(stream, parts, other, 0, 6000, LOG_BASE, NOW)
        try:
            run = one.append(stream, 0, len(stream), log, 0, 6000, LOG_BASE, host, NOW)
        except ProtocolError:
            assert (turn.requests, turn.stop) == (0, LaneStop.POLICY)
            continue
        assert other == log
        assert turn[1:] == (*run[1:4], run.stop)
        assert b"".join(replies for _, replies in turn.runs) == run.replies
        assert one.take_counts() == each.take_counts()


# -- pulls that are known ------------------------------------------------------------------------

TEXTS = st.sampled_from(["group", "g", "", "*", "A || B", "TopicTest", "\u4e2d", 'a\tb"c\\'])
NUMBERS = st.sampled_from(["0", "1", "-1", "+1", "01", "2147483647", "2147483648", "x", "", 1])
OFFSETS = st.integers(-2, 16) | integers(64)


@st.composite
def pulls(draw: st.DrawFn) -> bytes:
    """Return pulls that are often alike, in either codec."""
    changes: dict[str, Any] = {
        "queueOffset": str(draw(OFFSETS)), "commitOffset": str(draw(OFFSETS)),
    }  # fmt: skip
    for name in draw(
        st.lists(st.sampled_from([*pull_fields(), "maxMsgBytes", "bname", "x"]), max_size=2)
    ):
        is_text = name in {"consumerGroup", "topic", "subscription", "expressionType", "bname", "x"}
        changes[name] = draw((TEXTS if is_text else NUMBERS) | st.none())
    make = draw(st.sampled_from([json_request, binary_request]))
    flag = draw(st.sampled_from([0, 0, 0, 0, 2, 1]))
    return make(11, pull_fields(**changes), opaque=draw(integers(32)), flag=flag)


UNITS = st.builds(
    lambda at, size, tag: struct.pack(">qiq", at, size, tag),
    st.integers(0, 60) | integers(64),
    st.sampled_from([1, 7, 20, 20, PRE_BLANK_SIZE, 0, -1]) | integers(32),
    st.sampled_from([0, 5, -5, 2**32 + 5, -(2**31) - 1]) | integers(64),
)
QUEUES = st.lists(UNITS, max_size=10).map(b"".join)
LIMITS = st.sampled_from([1, 2, 50, 2**31, 2**70, 0])


class Place(NamedTuple):
    """What a way is pointed to."""

    units: bytes
    queue_offset: int
    log: bytes
    log_end: int
    log_base: int
    min_offset: int
    max_offset: int
    until: float


PLACES = st.builds(
    Place,
    QUEUES | spoiled(QUEUES),
    st.integers(-1, 5) | st.sampled_from([2**62, 2**62 + 1]),
    st.binary(min_size=40, max_size=64),
    st.integers(30, 42),
    st.sampled_from([0, 0, 5, -1, 2**62]),
    integers(64) | st.just(0),
    st.integers(0, 2**62 + 1),
    st.sampled_from([1.0, 2.0, 0.0]),
)


class Script(NamedTuple):
    """How a way is made, where it is pointed to, and what is remembered and asked for."""

    hashes: list[int]
    messages_max: int
    bytes_max: int
    version: int
    suggested: int
    places: list[Place]
    remembered: list[bytes]
    asked: list[bytes]


SCRIPTS = st.builds(
    Script,
    st.lists(st.sampled_from([0, 5, -5]) | integers(32), max_size=3),
    LIMITS,
    LIMITS,
    integers(32) | st.just(407),
    integers(64) | st.just(2**63),
    st.lists(PLACES, max_size=2),
    st.lists(pulls(), min_size=1, max_size=3),
    st.lists(pulls() | spoiled(pulls()) | NOISE, max_size=5),
)


def played(kernel: Kernel, script: Script) -> list[object]:
    """Play a script; return all that was answered, ways by their names."""
    lane, ways = kernel.PullLane(2), {}
    seen: list[object] = []

    def remember(number: int, raw: bytes) -> object:
        way = kernel.PullWay(*script[:5], number)
        ways[number] = way
        seen.extend(outcome(lambda p=place: way.point(*p)) for place in script.places)  # type: ignore[misc]
        return lane.remember(raw, whole(raw), way), len(lane)

    for number, raw in enumerate(script.remembered):
        seen.append(outcome(lambda n=number, raw=raw: remember(n, raw)))  # type: ignore[misc]
    asked = (*script.remembered, *script.asked)
    seen.extend(outcome(lambda raw=raw: taken(lane, raw)) for raw in asked)  # type: ignore[misc]
    lane.forget()
    seen.append(outcome(lambda: taken(lane, script.remembered[0])))
    return seen


def taken(lane: PullLane, raw: bytes) -> object:
    found = lane.take(raw, 0, len(raw), 1.5)
    if found is None:
        return None
    way: PullWay = found.way
    return way.note, type(found).__name__, found[1:]


@given(SCRIPTS)
def test_pull_lane(script: Script) -> None:
    check_agreement(lambda kernel: played(kernel, script))


@given(st.sampled_from([0, 1]), st.data())
def test_a_pull_is_known_when_it_decodes_to_the_same(kind: int, data: st.DataObject) -> None:
    """As `decode_request` sees it, except for what may differ; whatever the header's bytes are."""
    headers = json_headers(4) if kind == 0 else binary_headers(4)
    one, other = (data.draw(pulls() | headers.map(lambda h: frame(h, b"", kind))) for _ in "ab")
    for kernel in KERNELS.values():
        lane = kernel.PullLane(1)
        keys = []
        for raw in (one, other):
            request = kernel.decode_request(raw, whole(raw))
            usable = type(request).__name__ == "PullRequest" and not (
                request.oneway or request.extra_fields  # type: ignore[union-attr]
            )
            keys.append(
                request._replace(opaque=0, queue_offset=0, commit_offset=0)  # type: ignore[union-attr, call-arg]
                if usable
                else None
            )
        way = kernel.PullWay((), 1, 1, 0, 0, None)
        assert lane.remember(one, whole(one), way) is (keys[0] is not None)
        found = lane.take(other, 0, len(other), 0.0)
        assert (found is not None) is (keys[0] is not None and keys[0] == keys[1])


@given(NOISE | pulls(), st.data())
def test_frames_that_do_not_lie_where_they_are_said_to(raw: bytes, data: st.DataObject) -> None:
    where = st.integers(-2, len(raw) + 2)
    start, header, body, end = (data.draw(where) for _ in range(4))
    place = Frame(start, header, body, end, data.draw(st.integers(0, 2)))

    def act(kernel: Kernel) -> object:
        lane = kernel.PullLane(1)
        return lane.remember(raw, place, kernel.PullWay((), 1, 1, 0, 0, None)), len(lane)

    check_agreement(act)
