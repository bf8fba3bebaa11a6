"""The twins agree: the same bytes give the same result, or the same error in the same words.

With one kernel only, it is compared with itself: the strategies are tried out, and the head of the
run says what is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from hypothesis import example, given
from hypothesis import strategies as st

from gantrymq.kernel.values import COLUMN_NAMES, Frame, Record
from gantrymq.limits import FRAME_BYTES_MAX
from support.agreement import check_agreement, outcome
from support.golden import WIRE_FILES, wire_entries
from support.kernels import KERNELS
from support.samples import GOLDEN_RECORD, frame, whole
from support.strategies import (
    TEXTS,
    binary_headers,
    integers,
    json_headers,
    logs,
    ranges,
    records,
    send_frames,
    spoiled,
    wild_integers,
    wild_records,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.kernel.interface import Kernel
    from gantrymq.kernel.lanes import SendLane

NOISE = st.binary(max_size=200)
LOG_BASE = 1 << 33


def logs_spoiled_or_not() -> st.SearchStrategy[bytes]:
    return logs(LOG_BASE) | spoiled(logs(LOG_BASE)) | NOISE


# -- frames --------------------------------------------------------------------------------------

STREAMS = st.lists(
    st.builds(frame, st.binary(max_size=9), st.binary(max_size=9), st.sampled_from([0, 1])),
    max_size=4,
).map(b"".join)
FRAME_MAX = st.sampled_from([FRAME_BYTES_MAX, 8, 16, 30, 0, -5])


@given(STREAMS | spoiled(STREAMS) | NOISE, st.data(), FRAME_MAX)
def test_split_frames(stream: bytes, data: st.DataObject, frame_bytes_max: int) -> None:
    start, end = data.draw(ranges(len(stream)))
    check_agreement(lambda kernel: kernel.split_frames(stream, start, end, frame_bytes_max))


def decode(header: bytes, serialize_type: int) -> None:
    raw = frame(header, b"body", serialize_type)
    check_agreement(lambda kernel: kernel.decode_request(raw, whole(raw)))


@given(json_headers(0) | json_headers(1) | json_headers(4))
def test_decode_request_from_json(header: bytes) -> None:
    decode(header, 0)


@given(binary_headers(0) | binary_headers(4))
def test_decode_request_from_binary(header: bytes) -> None:
    decode(header, 1)


@given(spoiled(json_headers(1)) | NOISE)
def test_decode_request_from_spoiled_json(header: bytes) -> None:
    decode(header, 0)


@given(spoiled(binary_headers(1)) | NOISE)
def test_decode_request_from_spoiled_binary(header: bytes) -> None:
    decode(header, 1)


HOT_FRAMES = sorted({
    entry.frame
    for path in WIRE_FILES
    for entry in wire_entries(path)
    if entry.is_request and entry.code in {10, 11, 310, 320} and len(entry.frame) < 4096
})  # fmt: skip


@given(st.sampled_from(HOT_FRAMES), st.data())
def test_decode_request_of_real_clients_spoiled(raw: bytes, data: st.DataObject) -> None:
    place = whole(raw)
    header = data.draw(spoiled(st.just(raw[place.header : place.body])))
    decode(header, place.serialize_type)


@given(
    NOISE,
    st.integers(-2, 12),
    st.integers(-2, 12),
    st.integers(-2, 12),
    st.integers(-2, 12),
    st.integers(0, 1),
)
def test_decode_request_of_any_frame(
    buffer: bytes, start: int, header: int, body: int, end: int, serialize_type: int
) -> None:
    place = Frame(start, header, body, end, serialize_type)
    check_agreement(lambda kernel: kernel.decode_request(buffer, place))


PRINTABLE = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40).map(str.encode)
SERIALIZE_TYPES = st.sampled_from([0, 0, 1, 1, 2, -1])


@given(
    wild_integers(32), SERIALIZE_TYPES, wild_integers(32), wild_integers(32), wild_integers(64),
    PRINTABLE | TEXTS, PRINTABLE | TEXTS, st.booleans(),
)  # fmt: skip
def test_encode_send_reply(
    opaque: int,
    serialize_type: int,
    version: int,
    queue_id: int,
    queue_offset: int,
    ids: bytes,
    region: bytes,
    trace_on: bool,
) -> None:
    check_agreement(
        lambda kernel: kernel.encode_send_reply(
            opaque, serialize_type, version, queue_id, queue_offset, ids, region, trace_on
        )
    )


@given(
    SERIALIZE_TYPES,
    st.tuples(*[wild_integers(32)] * 3),
    PRINTABLE | TEXTS,
    st.tuples(*[wild_integers(64)] * 4),
    st.integers(-1, 2**31) | st.sampled_from([0, 2**31 - 1, 2**70]),
)
def test_encode_pull_reply(
    serialize_type: int,
    small: tuple[int, ...],
    remark: bytes,
    large: tuple[int, ...],
    body_bytes: int,
) -> None:
    check_agreement(
        lambda kernel: kernel.encode_pull_reply(
            small[0],
            serialize_type,
            small[1],
            small[2],
            remark,
            large[0],
            large[1],
            large[2],
            large[3],
            body_bytes,
        )
    )


# -- records -------------------------------------------------------------------------------------


@given(st.binary(max_size=300))
def test_crc32(data: bytes) -> None:
    check_agreement(lambda kernel: kernel.crc32(data))
    check_agreement(lambda kernel: kernel.crc32(memoryview(data)[len(data) // 3 :]))


@given(TEXTS | NOISE)
def test_string_hash(text: bytes) -> None:
    check_agreement(lambda kernel: kernel.string_hash(text))


@given(records() | wild_records(), st.integers(-1, 1200), st.integers(-1, 1200))
@example(GOLDEN_RECORD, 5, 135)
def test_encode_record(record: Record, position: int, limit: int) -> None:
    def act(kernel: Kernel) -> object:
        target = bytearray(b"\xaa" * 1000)
        return kernel.encode_record(target, position, limit, record), target

    check_agreement(act)
    check_agreement(lambda kernel: kernel.record_bytes(record))


@given(records())
def test_what_is_encoded_is_decoded(record: Record) -> None:
    for kernel in KERNELS.values():
        target = bytearray(kernel.record_bytes(record) + 8)
        end = kernel.encode_record(target, 0, len(target), record)
        assert end == len(target) - 8
        assert kernel.decode_record(target, 0, end, True) == (record, end)


@given(st.integers(-1, 60), st.integers(-1, 60))
def test_encode_blank(position: int, limit: int) -> None:
    def act(kernel: Kernel) -> object:
        target = bytearray(b"\xaa" * 50)
        kernel.encode_blank(target, position, limit)
        return target

    check_agreement(act)


@given(logs_spoiled_or_not(), st.data(), st.booleans())
def test_decode_record(log: bytes, data: st.DataObject, verify_crc: bool) -> None:
    start, end = data.draw(ranges(len(log)))
    check_agreement(lambda kernel: kernel.decode_record(log, start, end, verify_crc))


LOG_BASES = st.sampled_from([LOG_BASE, LOG_BASE, LOG_BASE, -1, 0, LOG_BASE + 1])
COUNTS = st.sampled_from([1, 2, 3, 1000, 2**62, 0, -1])


@given(logs_spoiled_or_not(), st.data(), LOG_BASES, st.booleans(), COUNTS)
def test_scan_records(
    log: bytes, data: st.DataObject, log_base: int, verify_crc: bool, records_max: int
) -> None:
    start, end = data.draw(ranges(len(log)))
    check_agreement(
        lambda kernel: kernel.scan_records(log, start, end, log_base, verify_crc, records_max)
    )


@given(logs_spoiled_or_not(), st.data(), LOG_BASES)
def test_find_record(log: bytes, data: st.DataObject, log_base: int) -> None:
    start, end = data.draw(ranges(len(log)) | st.tuples(st.integers(0, 300), st.just(len(log))))
    check_agreement(lambda kernel: kernel.find_record(log, start, end, log_base))


ZEROS = st.tuples(st.integers(0, 400), st.integers(0, 200))


@given(logs_spoiled_or_not(), st.data(), st.lists(ZEROS, max_size=2), st.sampled_from([1, 16, 512]))
def test_find_torn(
    log: bytes, data: st.DataObject, zeros: list[tuple[int, int]], sector_bytes: int
) -> None:
    torn = bytearray(log)
    for position, count in zeros:
        torn[position : position + count] = bytes(len(torn[position : position + count]))
    start, end = data.draw(ranges(len(torn)) | st.just((0, len(torn))))
    check_agreement(lambda kernel: kernel.find_torn(torn, start, end, sector_bytes))


@given(st.binary(max_size=300), st.data(), st.sampled_from([1, 7, 4096, 2**70, 0, -1]))
def test_touch_pages(content: bytes, data: st.DataObject, step: int) -> None:
    start, end = data.draw(ranges(len(content)))

    def act(kernel: Kernel) -> object:
        target = bytearray(content)
        kernel.touch_pages(target, start, end, step)
        return target

    check_agreement(act)


# -- what is built from records ------------------------------------------------------------------


@given(
    logs_spoiled_or_not(),
    st.data(),
    LOG_BASES,
    st.booleans(),
    COUNTS,
    st.lists(integers(64), max_size=3),
)
def test_dispatch_records(
    log: bytes,
    data: st.DataObject,
    log_base: int,
    verify_crc: bool,
    records_max: int,
    delays_ms: list[int],
) -> None:
    start, end = data.draw(ranges(len(log)))
    check_agreement(
        lambda kernel: kernel.dispatch_records(
            log, start, end, log_base, verify_crc, records_max, delays_ms
        )
    )


@given(logs_spoiled_or_not(), st.data(), LOG_BASES, COUNTS, st.lists(integers(64), max_size=3))
def test_audit_records(
    log: bytes, data: st.DataObject, log_base: int, records_max: int, delays_ms: list[int]
) -> None:
    start, end = data.draw(ranges(len(log)))
    check_agreement(
        lambda kernel: kernel.audit_records(log, start, end, log_base, records_max, delays_ms)
    )


def unit(log_offset: int, size: int, tags_code: int) -> bytes:
    return (
        log_offset.to_bytes(8, signed=True)
        + size.to_bytes(4, signed=True)
        + tags_code.to_bytes(8, signed=True)
    )


TAGS_CODES = st.sampled_from(
    [0, 5, -5, 2112, 2**32 + 5, -(2**31), -(2**31) - 1, -(2**63)]
) | integers(64)
UNITS = st.builds(
    unit, integers(64), st.sampled_from([100, 100, 100, 0, 2**31 - 1, -1]), TAGS_CODES
)
QUEUES = st.lists(UNITS, max_size=12).map(b"".join)


@given(
    logs_spoiled_or_not(),
    st.data(),
    LOG_BASES,
    st.booleans(),
    st.lists(st.sampled_from(COLUMN_NAMES), max_size=6)
    | st.just(list(COLUMN_NAMES))
    | st.just(["body", "x'\n"]),
    st.lists(st.sampled_from([b"T", b"t" * 127, b"", b"t" * 128]), max_size=2),
    COUNTS,
    st.sampled_from([2**29, 1, 150, 300, 0, -1, 2**29 + 1, 2**62]),
)
def test_scan_columns(
    log: bytes,
    data: st.DataObject,
    log_base: int,
    verify_crc: bool,
    names: list[str],
    topics: list[bytes],
    rows_max: int,
    bytes_max: int,
) -> None:
    start, end = data.draw(ranges(len(log)))
    check_agreement(
        lambda kernel: kernel.scan_columns(
            log, start, end, log_base, verify_crc, names, topics, rows_max, bytes_max
        )
    )


# -- the send lane -------------------------------------------------------------------------------

SENDS = st.lists(send_frames(), max_size=4).map(b"".join)
Step: TypeAlias = "Callable[[SendLane], object]"


def open_topic(topic: bytes, offsets: list[int]) -> Step:
    return lambda lane: lane.open_topic(topic, offsets)


def close_topic(topic: bytes) -> Step:
    return lambda lane: lane.close_topic(topic)


def next_offsets(topic: bytes) -> Step:
    return lambda lane: lane.next_offsets(topic)


def advance(topic: bytes, queue_id: int, count: int) -> Step:
    return lambda lane: lane.advance(topic, queue_id, count)


def take_counts() -> Step:
    return lambda lane: lane.take_counts()


def append(
    stream: bytes,
    cut: tuple[int, int],
    room: tuple[int, int],
    log_base: int,
    born_host: bytes,
    now_ms: int,
) -> Step:
    def act(lane: SendLane) -> object:
        log = bytearray(2000)
        run = lane.append(
            stream,
            cut[0],
            len(stream) - cut[1],
            log,
            room[0],
            2000 - room[1],
            log_base,
            born_host,
            now_ms,
        )
        return run, log

    return act


TOPICS = st.sampled_from([b"TopicTest", b"TopicTest", b"Other", b"", b"t" * 128])
OFFSETS = st.lists(st.sampled_from([0, 5, 2**62, -1, 2**62 + 1, 7]), max_size=3)
HOSTS = st.sampled_from([bytes(8), bytes(range(20)), bytes(8), b"123"])
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(open_topic, TOPICS, OFFSETS | st.just([0, 0])),
    st.builds(close_topic, TOPICS),
    st.builds(next_offsets, TOPICS),
    st.builds(
        advance, TOPICS, st.integers(-1, 2), st.sampled_from([0, 1, 9, -1, 2**31, 2**31 + 1])
    ),
    st.builds(take_counts),
    *[
        st.builds(
            append,
            SENDS | spoiled(SENDS) | NOISE,
            st.tuples(st.just(0), st.sampled_from([0, 0, 0, 1, 7])),
            st.sampled_from([(0, 0), (0, 0), (5, 0), (0, 1200), (0, 1700), (1999, 0), (2000, 1)]),
            st.sampled_from([LOG_BASE, 0, 2**62, -1]),
            HOSTS,
            st.sampled_from([1700000000000, 0, -1]),
        )
    ]
    * 3,
)
POLICY_NAMES = st.lists(
    st.sampled_from([b"DELAY", b"TRAN_MSG", b"", b"KEYS", b"n" * 70]), max_size=3
)


@given(
    HOSTS,
    st.sampled_from([b"DefaultCluster", b"c", b"", b"a\x01b", "\u4e2d".encode()]),
    st.sampled_from([b"DefaultRegion", b"", b'"']),
    st.booleans(),
    st.sampled_from([407, 0, 32767, 32768, -1]),
    st.sampled_from([1000, 20, 0, 2**70]),
    POLICY_NAMES,
    st.lists(STEPS, max_size=6),
)
def test_send_lane(
    store_host: bytes,
    cluster: bytes,
    region: bytes,
    trace_on: bool,
    version: int,
    body_bytes_max: int,
    policy_names: list[bytes],
    steps: list[Step],
) -> None:
    def act(kernel: Kernel) -> object:
        lane = kernel.SendLane(
            store_host=store_host,
            cluster=cluster,
            region=region,
            trace_on=trace_on,
            version=version,
            body_bytes_max=body_bytes_max,
            policy_names=policy_names,
        )
        lane.open_topic(b"TopicTest", [0, 3])
        lane.open_topic(b"Other", [2**40])
        return [outcome(lambda step=step: step(lane)) for step in (*steps, take_counts())]  # type: ignore[misc]

    check_agreement(act)


NEAR_UNITS = st.builds(
    unit,
    st.integers(-2, 60) | integers(64),
    st.sampled_from([1, 7, 40, 0, 2**31 - 1, -1]),
    TAGS_CODES,
)
NEAR_QUEUES = st.lists(NEAR_UNITS, max_size=12).map(b"".join)


@given(
    NEAR_QUEUES | spoiled(NEAR_QUEUES),
    st.binary(max_size=64),
    st.data(),
    st.sampled_from([0, 0, 5, 1 << 40, -1, 2**62 + 1]),
    st.lists(st.sampled_from([0, 5, -5, 2112]) | integers(32), max_size=4),
    COUNTS,
    st.sampled_from([1, 50, 1 << 20, 0, -1, 2**62]),
)
def test_gather_records(
    queue: bytes,
    log: bytes,
    data: st.DataObject,
    log_base: int,
    hashes: list[int],
    messages_max: int,
    bytes_max: int,
) -> None:
    start, end = data.draw(ranges(len(queue)))
    log_start, log_end = data.draw(ranges(len(log)))
    check_agreement(
        lambda kernel: kernel.gather_records(
            queue, start, end, log, log_start, log_end, log_base, hashes, messages_max, bytes_max
        )
    )
