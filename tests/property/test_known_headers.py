"""Whatever headers came before, in whatever order: a lane reads the next one as a new lane does."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from gantrymq.errors import ProtocolError
from support.agreement import check_agreement, outcome
from support.samples import BORN_HOST, frame, json_request, make_lane, send_fields
from support.strategies import json_headers, send_frames, spoiled

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel

NOW = 1700000000000
ROOM = 4000
FEWER = settings(max_examples=max(30, settings().max_examples // 2))

ORDINARY = json_request(310, send_fields(), b"body")
HEADER = ORDINARY[8 : 8 + int.from_bytes(ORDINARY[5:8])]
HEADERS = spoiled(st.just(HEADER)) | spoiled(st.just(HEADER)) | json_headers()
FRAMES = st.one_of(
    HEADERS.map(lambda header: frame(header, b"body")), send_frames(), st.just(ORDINARY)
)


@FEWER
@given(st.lists(FRAMES, max_size=4), FRAMES)
def test_headers_are_read_by_themselves(before: list[bytes], raw: bytes) -> None:
    def say(kernel: Kernel, earlier: list[bytes]) -> object:
        lane, log = make_lane(kernel), bytearray(ROOM)
        lane.open_topic(b"TopicTest", [0, 3])
        for one in earlier:
            # What is no header closes the connection; the lane serves the others.
            with suppress(ProtocolError):
                lane.append(one, 0, len(one), bytearray(ROOM), 0, ROOM, 0, BORN_HOST, NOW)
        lane.close_topic(b"TopicTest")
        lane.open_topic(b"TopicTest", [0, 3])
        done = outcome(lambda: lane.append(raw, 0, len(raw), log, 0, ROOM, 0, BORN_HOST, NOW))
        return done, log, lane.next_offsets(b"TopicTest")

    def act(kernel: Kernel) -> object:
        told = say(kernel, before)
        assert told == say(kernel, []), before
        return told

    check_agreement(act)
