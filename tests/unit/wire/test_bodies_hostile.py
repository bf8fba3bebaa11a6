"""Whatever a peer sends as a body, the outcome is a value, or a `ProtocolError` with the field."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final

import pytest

from gantrymq.errors import ProtocolError
from gantrymq.model.offsets import DataVersion
from gantrymq.model.queue import MessageQueue, QueueId, QueueOffset
from gantrymq.wire import fastjson
from gantrymq.wire.bodies import BODIES, RAW, RECORDS, TEXT
from gantrymq.wire.bodies.offsets import TIMER_CHECKPOINT, TimerCheckpoint
from gantrymq.wire.bodies.reset import RESET_OFFSETS, ResetOffsets
from gantrymq.wire.codes import RequestCode
from support.body_samples import JSON_CODECS, kind_of, sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gantrymq.wire.bodies import JsonBody

STRANGE: Final[list[object]] = [
    "x",
    "",
    -1,
    0.5,
    True,
    None,
    [],
    {},
    [[]],
    {"x": {}},
    2**31,
    2**63,
    10**30,
    "9" * 1000,
    fastjson.ObjectKeyed((({"a": 1}, 2),)),
]


def changed(tree: object, strange: object) -> Iterator[object]:
    """Return the tree with one node after the other replaced."""
    yield strange
    if isinstance(tree, dict):
        for key, item in tree.items():
            for other in changed(item, strange):
                yield {**tree, key: other}
    elif isinstance(tree, list):
        for index, item in enumerate(tree):
            for other in changed(item, strange):
                yield [*tree[:index], other, *tree[index + 1 :]]
    elif isinstance(tree, fastjson.ObjectKeyed):
        ((key, item), *_) = tree.pairs
        for other in changed(item, strange):
            yield fastjson.ObjectKeyed(((key, other),))
        for other in changed(key, strange):
            yield fastjson.ObjectKeyed(((other if isinstance(other, dict) else {}, item),))


def refusal(codec: JsonBody[object], body: bytes) -> ProtocolError | None:
    """Return why a body is refused, or None if it is not."""
    try:
        codec.decode(body)
    except ProtocolError as error:
        return error
    return None


@pytest.fixture(params=JSON_CODECS)
def codec(request: pytest.FixtureRequest) -> JsonBody[object]:
    """Return every JSON codec in turn."""
    return JSON_CODECS[request.param]


def test_a_full_value_comes_back(codec: JsonBody[object]) -> None:
    value = sample(kind_of(codec))
    body = codec.encode(value)
    assert codec.decode(body) == value
    assert codec.encode(codec.decode(body)) == body
    assert b" " not in body


def test_every_cut_is_refused(codec: JsonBody[object]) -> None:
    body = codec.encode(sample(kind_of(codec)))
    for end in range(len(body)):
        with pytest.raises(ProtocolError) as caught:
            codec.decode(body[:end])
        assert caught.value.field.startswith("body")


def test_strange_values_anywhere(codec: JsonBody[object]) -> None:
    tree = fastjson.parse(codec.encode(sample(kind_of(codec))))
    for strange in STRANGE:
        for other in changed(tree, strange):
            error = refusal(codec, fastjson.encode(other))
            if error is not None:
                assert error.field.startswith("body")
                assert len(str(error)) < 500


def test_depth_and_bad_bytes_anywhere(codec: JsonBody[object]) -> None:
    body = codec.encode(sample(kind_of(codec)))
    begun = time.process_time()
    for hostile in (b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"9" * 100_000):
        for at in (0, len(body) // 2, len(body)):
            with contextlib.suppress(ProtocolError):
                codec.decode(body[:at] + hostile + body[at:])
    assert time.process_time() - begun < 5


def test_every_code_is_a_request_with_at_least_one_body() -> None:
    for code, bodies in BODIES.items():
        assert RequestCode(code)
        assert bodies != (None, None)


def test_opaque_bodies_are_handed_on() -> None:
    for codec in (RAW, RECORDS):
        assert codec.decode(b"\x00") == codec.encode(b"\x00") == b"\x00"
    assert (repr(RAW), repr(RECORDS)) == ("RAW", "RECORDS")


def test_text_bodies() -> None:
    assert TEXT.decode(TEXT.encode("组")) == "组"
    with pytest.raises(ProtocolError, match="not UTF-8 at byte 1"):
        TEXT.decode(b"a\xff")


def test_timer_check_points_of_both_lengths() -> None:
    value = TimerCheckpoint(
        last_read_time_ms=1,
        timer_log_flush_position=2,
        timer_queue_offset=3,
        master_timer_queue_offset=4,
        data_version=DataVersion(5, 6, 7),
    )
    body = TIMER_CHECKPOINT.encode(value)
    assert len(body) == 56
    assert TIMER_CHECKPOINT.decode(body) == value
    assert TIMER_CHECKPOINT.decode(body + bytes(4040)) == value
    assert TIMER_CHECKPOINT.decode(body[:32]).data_version == DataVersion()
    for length in (0, 31, 33, 55):
        with pytest.raises(ProtocolError, match=f"not {length}"):
            TIMER_CHECKPOINT.decode(body[:length])


def test_offsets_to_reset_in_both_forms() -> None:
    queues = [MessageQueue("t", "b", QueueId(number)) for number in (10, 9)]
    value = ResetOffsets(offset_table={queue: QueueOffset(queue.queue_id) for queue in queues})
    for_cpp = RESET_OFFSETS.encode_for_cpp(value)
    assert for_cpp == (
        b'{"offsetTable":[{"brokerName":"b","offset":9,"queueId":9,"topic":"t"},'
        b'{"brokerName":"b","offset":10,"queueId":10,"topic":"t"}]}'
    )
    assert RESET_OFFSETS.encode(value) == (
        b'{"offsetTable":{{"brokerName":"b","queueId":9,"topic":"t"}:9,'
        b'{"brokerName":"b","queueId":10,"topic":"t"}:10}}'
    )
    assert (
        RESET_OFFSETS.decode(for_cpp) == RESET_OFFSETS.decode(RESET_OFFSETS.encode(value)) == value
    )
    with pytest.raises(ProtocolError) as caught:
        RESET_OFFSETS.decode(b'{"offsetTable":[{"topic":"t"}]}')
    assert caught.value.field == "body.offsetTable[0].brokerName"
