"""What a caller or a peer may not do to the kernel: each is refused, in the same words by both."""

from __future__ import annotations

import struct
import tracemalloc
from time import process_time
from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.kernel import LaneStop
from support.samples import (
    BORN_HOST,
    GOLDEN_RECORD,
    inner_message,
    json_request,
    log_of,
    make_lane,
    send_fields,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.kernel.interface import Kernel

NEEDED = "range: a buffer of consecutive bytes is needed, and a writable one where it is written to"


class TestBuffers:
    """A buffer is bytes, one behind the other."""

    @pytest.mark.parametrize(
        "buffer",
        [memoryview(bytes(64)).cast("I"), memoryview(bytes(64))[::2]],
        ids=["not bytes", "with gaps"],
    )
    def test_only_bytes_are_read(self, kernel: Kernel, buffer: memoryview) -> None:
        with pytest.raises(InvalidValue, match=NEEDED):
            kernel.scan_records(buffer, 0, 4, 0, True, 1)

    @pytest.mark.parametrize(
        "write",
        [
            lambda kernel, target: kernel.encode_record(target, 0, 64, GOLDEN_RECORD),
            lambda kernel, target: kernel.encode_blank(target, 0, 64),
            lambda kernel, target: kernel.insert_keys(target, 1, 1, b"", 0),
        ],
        ids=["record", "blank", "index"],
    )
    def test_what_is_written_to_must_be_writable(
        self, kernel: Kernel, write: Callable[[Kernel, memoryview], object]
    ) -> None:
        with pytest.raises(InvalidValue, match=NEEDED):
            write(kernel, memoryview(bytes(64)))


class TestNumbers:
    """Numbers that would wrap are refused before they do."""

    @pytest.mark.parametrize("log_base", [-2, 2**62 + 1, 2**63 - 1, 2**70])
    def test_log_base(self, kernel: Kernel, log_base: int) -> None:
        log = log_of([GOLDEN_RECORD])
        calls: list[Callable[[], object]] = [
            lambda: kernel.scan_records(log, 0, len(log), log_base, True, 1),
            lambda: kernel.find_record(log, 0, len(log), log_base),
            lambda: kernel.dispatch_records(log, 0, len(log), log_base, True, 1, []),
            lambda: kernel.scan_columns(log, 0, len(log), log_base, True, [], [], 1, 1),
        ]
        for call in calls:
            with pytest.raises(InvalidValue) as raised:
                call()
            assert str(raised.value) == f"range: log_base={log_base} is not between -1 and 2**62"

    @pytest.mark.parametrize("delay", [-1, 2**62 + 1, 2**63])
    def test_delays(self, kernel: Kernel, delay: int) -> None:
        with pytest.raises(InvalidValue, match=r"dispatch: delays must be between 0 and 2\*\*62"):
            kernel.dispatch_records(b"", 0, 0, 0, True, 1, [1000, delay])

    @pytest.mark.parametrize("most", [7, 2**31, 2**63])
    def test_frame_limit(self, kernel: Kernel, most: int) -> None:
        with pytest.raises(InvalidValue, match="frame_bytes_max must be between 8 and 2147483647"):
            kernel.split_frames(b"", 0, 0, most)

    @pytest.mark.parametrize("serialize_type", [0, 1])
    def test_a_header_has_24_bits_of_length(self, kernel: Kernel, serialize_type: int) -> None:
        ids = b"A" * (1 << 24)
        with pytest.raises(InvalidValue, match=r"reply: a header of \d+ bytes is over 16777215"):
            kernel.encode_send_reply(1, serialize_type, 407, 0, 0, ids, b"R", True)


class TestWork:
    """No input costs more than its size explains."""

    def test_queue_ids_that_fall_into_one_place(self, kernel: Kernel) -> None:
        def seconds(ids: list[int]) -> float:
            log = log_of([GOLDEN_RECORD._replace(queue_id=each) for each in ids])
            began = process_time()
            found = kernel.dispatch_records(log, 0, len(log), -1, False, len(ids), [])
            assert len(found.runs) == len(ids)
            return process_time() - began

        plain = min(seconds(list(range(8192))) for _ in range(3))
        chosen = min(seconds([each << 17 for each in range(8192)]) for _ in range(3))
        assert chosen < 5 * plain + 0.01

    def test_a_batch_does_not_multiply_what_its_messages_share(self, kernel: Kernel) -> None:
        lane = make_lane(kernel, body_bytes_max=4 << 20)
        lane.open_topic(b"TopicTest", [0])
        body = inner_message(b"x") * 2000
        shared = "k\x01" + "v" * 1022
        log = bytearray(64 << 20)

        def stop(properties: str, room: int) -> LaneStop:
            raw = json_request(320, send_fields(m="true", i=properties), body)
            return lane.append(raw, 0, len(raw), log, 0, room, 0, BORN_HOST, 1).stop

        assert stop(shared, len(log)) is LaneStop.DRAINED
        assert stop(shared + "v", len(log)) is LaneStop.POLICY
        tracemalloc.start()
        try:
            assert stop(shared, 1 << 20) is LaneStop.POLICY  # never fits: rolling cannot help
            _now, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 32 << 20

    def test_extra_fields_go_to_python_where_access_is_checked(self, kernel: Kernel) -> None:
        signed = json_request(310, {**send_fields(), "AccessKey": "ak", "Signature": "no"}, b"body")
        plain = json_request(310, send_fields(), b"body")
        log = bytearray(4096)
        for refuses, taken in ((False, 1), (True, 0)):
            lane = make_lane(kernel, refuses_extra_fields=refuses)
            lane.open_topic(b"TopicTest", [0])
            run = lane.append(signed, 0, len(signed), log, 0, 4096, 0, BORN_HOST, 1)
            assert run.requests == taken
            run = lane.append(plain, 0, len(plain), log, 0, 4096, 0, BORN_HOST, 1)
            assert run.requests == 1

    def test_a_topic_list_that_lies_about_its_length(self, kernel: Kernel) -> None:
        class Liar(list[bytes]):
            def __len__(self) -> int:
                return 1000

        log = log_of([GOLDEN_RECORD])
        found = kernel.scan_columns(log, 0, len(log), -1, True, ["body"], Liar([b"none"]), 1, 1)
        assert (found.rows, found.scanned) == (0, 1)

    def test_lengths_of_a_frame_are_those_of_its_bytes(self, kernel: Kernel) -> None:
        frame = struct.pack(">II", 2**31 - 1, 0)
        with pytest.raises(Exception, match=r"frame\.length: 2147483647 is not between"):
            kernel.split_frames(frame, 0, len(frame), 2**24)
