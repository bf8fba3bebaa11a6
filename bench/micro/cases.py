"""The cases: each makes its input once and returns a round of work and its number of messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from bench.micro.input import (
    BATCH,
    BORN_HOST,
    DELAYS_MS,
    NOW_MS,
    batch_sends,
    binary_sends,
    json_pull,
    make_lane,
    single_sends,
    stored_log,
)

from gantrymq.kernel import UNIT_BYTES
from gantrymq.limits import FRAME_BYTES_MAX

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel

COUNT = 512
"""Messages a round: about what a busy connection has in its receive buffer."""
MANY = 10**9
BYTES_MAX = 2**29
DEFAULT_COLUMNS = (
    "topic", "queue_id", "queue_offset", "store_timestamp", "born_timestamp", "tags", "keys",
    "body", "properties",
)  # fmt: skip
NARROW_COLUMNS = ("body", "queue_offset")


class Work(NamedTuple):
    """One round and what it handles."""

    run: Callable[[], object]
    messages: int


Case: TypeAlias = Callable[["Kernel"], Work]


def _append(kernel: Kernel, stream: bytes, messages: int) -> Work:
    lane = make_lane(kernel)
    log = bytearray(400 * messages + 8)

    def run() -> None:
        done = lane.append(stream, 0, len(stream), log, 0, len(log), 0, BORN_HOST, NOW_MS)
        if done.messages != messages:
            raise RuntimeError(f"the lane stopped early: {done.stop!r}")

    return Work(run, messages)


def append_json(kernel: Kernel) -> Work:
    """Decode, store and answer single sends with JSON headers."""
    return _append(kernel, single_sends(COUNT), COUNT)


def append_binary(kernel: Kernel) -> Work:
    """The same with binary headers."""
    return _append(kernel, binary_sends(COUNT), COUNT)


def append_batch(kernel: Kernel) -> Work:
    """The same with batches of 32."""
    return _append(kernel, batch_sends(COUNT // BATCH), COUNT)


def append_each(kernel: Kernel) -> Work:
    """Single sends with JSON headers, one on each of as many connections, in one call."""
    stream = single_sends(COUNT)
    frames, _end = kernel.split_frames(stream, 0, len(stream), FRAME_BYTES_MAX)
    parts = [(frame.start, frame.end, BORN_HOST) for frame in frames]
    lane = make_lane(kernel)
    log = bytearray(400 * COUNT + 8)

    def run() -> None:
        done = lane.append_each(stream, parts, log, 0, len(log), 0, NOW_MS)
        if done.messages != COUNT:
            raise RuntimeError(f"the lane stopped early: {done.stop!r}")

    return Work(run, COUNT)


def split_frames(kernel: Kernel) -> Work:
    """Find the frames in a receive buffer."""
    stream = single_sends(COUNT)
    return Work(lambda: kernel.split_frames(stream, 0, len(stream), FRAME_BYTES_MAX), COUNT)


def _decode(kernel: Kernel, stream: bytes) -> Work:
    frames, _end = kernel.split_frames(stream, 0, len(stream), FRAME_BYTES_MAX)

    def run() -> None:
        for frame in frames:
            kernel.decode_request(stream, frame)

    return Work(run, len(frames))


def decode_request_json(kernel: Kernel) -> Work:
    """Decode requests one by one, into values."""
    return _decode(kernel, single_sends(COUNT))


def decode_request_binary(kernel: Kernel) -> Work:
    """The same with binary headers."""
    return _decode(kernel, binary_sends(COUNT))


def encode_record(kernel: Kernel) -> Work:
    """Write records one by one, from values."""
    log = stored_log(kernel, 1)
    record, size = kernel.decode_record(log, 0, len(log), True)
    target = bytearray((size + 8) * COUNT)

    def run() -> None:
        position = 0
        for _ in range(COUNT):
            position = kernel.encode_record(target, position, len(target), record)

    return Work(run, COUNT)


def dispatch(kernel: Kernel) -> Work:
    """Build consume queue units and index keys."""
    log = stored_log(kernel, COUNT)
    return Work(lambda: kernel.dispatch_records(log, 0, len(log), 0, False, MANY, DELAYS_MS), COUNT)


def audit(kernel: Kernel) -> Work:
    """Check every body, build units and count keys."""
    log = stored_log(kernel, COUNT)
    return Work(lambda: kernel.audit_records(log, 0, len(log), 0, MANY, DELAYS_MS), COUNT)


def scan_without_crc(kernel: Kernel) -> Work:
    """Walk over the log."""
    log = stored_log(kernel, COUNT)
    return Work(lambda: kernel.scan_records(log, 0, len(log), 0, False, MANY), COUNT)


def scan_with_crc(kernel: Kernel) -> Work:
    """Walk over the log and check every body."""
    log = stored_log(kernel, COUNT)
    return Work(lambda: kernel.scan_records(log, 0, len(log), 0, True, MANY), COUNT)


def _columns(kernel: Kernel, names: tuple[str, ...]) -> Work:
    log = stored_log(kernel, COUNT)
    return Work(
        lambda: kernel.scan_columns(log, 0, len(log), 0, False, names, (), MANY, BYTES_MAX), COUNT
    )


def columns_default(kernel: Kernel) -> Work:
    """The columns that a table has when nobody chooses."""
    return _columns(kernel, DEFAULT_COLUMNS)


def columns_narrow(kernel: Kernel) -> Work:
    """Bodies and queue offsets only."""
    return _columns(kernel, NARROW_COLUMNS)


def scan_units(kernel: Kernel) -> Work:
    """Walk over a consume queue, as recovery does."""
    log = stored_log(kernel, COUNT)
    runs = kernel.dispatch_records(log, 0, len(log), 0, False, MANY, DELAYS_MS).runs
    return Work(
        lambda: [kernel.scan_units(run.units, 0, len(run.units), 0, len(log)) for run in runs],
        COUNT,
    )


def insert_keys(kernel: Kernel) -> Work:
    """Insert the keys of the log into an empty index file."""
    log = stored_log(kernel, COUNT)
    keys = kernel.dispatch_records(log, 0, len(log), 0, False, MANY, DELAYS_MS).keys
    slots, entries = 4096, len(keys) // 20 + 2
    file = bytearray(40 + 4 * slots + 20 * entries)

    def run() -> None:
        file[:40] = bytes(40)
        kernel.insert_keys(file, slots, entries, keys, 0)

    return Work(run, COUNT)


def find_record(kernel: Kernel) -> Work:
    """Find the next record from each byte behind the start of one."""
    log = stored_log(kernel, 8)
    return Work(lambda: [kernel.find_record(log, at, len(log), 0) for at in range(1, 9)], 8)


def decode_record(kernel: Kernel) -> Work:
    """Read records one by one, into values."""
    log = stored_log(kernel, COUNT)

    def run() -> None:
        position = 0
        while position < len(log):
            _record, position = kernel.decode_record(log, position, len(log), False)

    return Work(run, COUNT)


def encode_replies(kernel: Kernel) -> Work:
    """Answer a send and a pull."""

    def run() -> None:
        kernel.encode_send_reply(1, 0, 407, 1, 2, b"7F00000100002A9F00000000000003E8", b"R", True)
        kernel.encode_pull_reply(1, 0, 407, 0, b"FOUND", 0, 1, 0, 1, 4096)

    return Work(run, 2)


def split_send_replies(kernel: Kernel) -> Work:
    """Read the answers to sends that a client got in one read."""
    answer = kernel.encode_send_reply(
        1, 1, 407, 1, 2, b"7F00000100002A9F00000000000003E8", b"DefaultRegion", True
    )
    data = answer * COUNT
    return Work(lambda: kernel.split_send_replies(data, 0, len(data), FRAME_BYTES_MAX, 0), COUNT)


def take_known_pull(kernel: Kernel) -> Work:
    """Answer a pull that is known again, with 32 messages."""
    log = stored_log(kernel, COUNT)
    queue = kernel.dispatch_records(log, 0, len(log), 0, False, MANY, DELAYS_MS).runs[0].units
    way = kernel.PullWay((), BATCH, BYTES_MAX, 407, 0, None)
    way.point(queue, 0, log, len(log), 0, 0, len(queue) // UNIT_BYTES, 1.0)
    request = json_pull(0)
    frames, _end = kernel.split_frames(request, 0, len(request), FRAME_BYTES_MAX)
    lane = kernel.PullLane(1)
    lane.remember(request, frames[0], way)

    def run() -> None:
        found = lane.take(request, 0, len(request), 0.0)
        if found is None or found.messages != BATCH:
            raise RuntimeError("the pull is not known")

    return Work(run, BATCH)


def hashes(kernel: Kernel) -> Work:
    """CRC of a body, and the hash of a key."""
    body, key = bytes(128), b"TopicTest#7F00000100002A139A55000000000001"

    def run() -> None:
        kernel.crc32(body)
        kernel.string_hash(key)

    return Work(run, 1)


def touch_pages(kernel: Kernel) -> Work:
    """Touch the pages of a file that is to be written to; a message is a page."""
    pages = bytearray(4096 * COUNT)
    return Work(lambda: kernel.touch_pages(pages, 0, len(pages), 4096), COUNT)


def find_torn(kernel: Kernel) -> Work:
    """Look for torn records where there are none."""
    log = stored_log(kernel, COUNT)
    return Work(lambda: kernel.find_torn(log, 0, len(log), 512), COUNT)


CASES: dict[str, Case] = {
    case.__name__: case
    for case in (
        append_json, append_binary, append_batch, append_each, split_frames, decode_request_json,
        decode_request_binary, encode_record, dispatch, audit, scan_without_crc, scan_with_crc,
        columns_default, columns_narrow, scan_units, insert_keys, find_record,
        decode_record, encode_replies, split_send_replies, take_known_pull, hashes,
        touch_pages, find_torn,
    )
}  # fmt: skip
