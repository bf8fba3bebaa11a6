"""The send lane: what it takes, what it writes, what it answers, and where it stops."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, NamedTuple

import pytest

from gantrymq.errors import InvalidValue, ProtocolError
from gantrymq.kernel.values import LaneStop, Record, SendRun
from gantrymq.limits import FRAME_BYTES_MAX
from support.samples import (
    BODY_MAX,
    BORN_HOST,
    IPV6_HOST,
    LONG_NAMES,
    STORE_HOST,
    binary_request,
    frame,
    inner_message,
    json_request,
    make_lane,
    properties,
    pull_fields,
    send_fields,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.kernel.interface import Kernel
    from gantrymq.kernel.lanes import SendLane

LOG_BASE = 1 << 40
NOW = 1700000000123


@pytest.fixture
def lane(kernel: Kernel) -> SendLane:
    made = make_lane(kernel)
    made.open_topic(b"TopicTest", [0, 100])
    return made


class Done(NamedTuple):
    """What a run did, and the log it wrote."""

    run: SendRun
    log: bytearray


def append(
    lane: SendLane, raw: bytes, *, room: int = 100_000, born_host: bytes = BORN_HOST
) -> Done:
    log = bytearray(room)
    return Done(lane.append(raw, 0, len(raw), log, 0, room, LOG_BASE, born_host, NOW), log)


def stored(kernel: Kernel, done: Done) -> list[Record]:
    records = []
    position = 0
    while position < done.run.log_position:
        record, position = kernel.decode_record(done.log, position, done.run.log_position, True)
        records.append(record)
    assert not any(done.log[done.run.log_position :])
    return records


def replies(kernel: Kernel, done: Done) -> list[dict[str, object]]:
    frames, end = kernel.split_frames(done.run.replies, 0, len(done.run.replies), FRAME_BYTES_MAX)
    assert end == len(done.run.replies)
    return [json.loads(done.run.replies[each.header : each.body]) for each in frames]


def send(body: bytes = b"hello", *, opaque: int = 7, flag: int = 0, **changes: object) -> bytes:
    return json_request(310, send_fields(**changes), body, opaque=opaque, flag=flag)


def batch(*messages: bytes, **changes: object) -> bytes:
    fields = send_fields(**({"m": "true", "i": "WAIT\x01true\x02"} | changes))
    return json_request(320, fields, b"".join(messages))


class TestSingleSends:
    """One message a request."""

    def test_the_record_and_the_reply(self, kernel: Kernel, lane: SendLane) -> None:
        raw = send(e="1", h="5", j="2", f="257")
        done = append(lane, raw)
        size = kernel.record_bytes(stored(kernel, done)[0])
        assert done.run[:4] == (len(raw), size, 1, 1)
        assert done.run.stop is LaneStop.DRAINED
        assert type(done.run) is SendRun
        assert stored(kernel, done) == [
            Record(
                1, 5, 100, LOG_BASE, 257, 1700000000000, BORN_HOST, NOW, STORE_HOST, 2, 0, b"hello",
                b"TopicTest", b"KEYS\x01k1\x02TAGS\x01TagA\x02CLUSTER\x01DefaultCluster",
            )
        ]  # fmt: skip
        message_id = f"7F00000100002A9F{LOG_BASE:016X}".encode()
        assert done.run.replies == kernel.encode_send_reply(
            7, 0, 407, 1, 100, message_id, b"DefaultRegion", True
        )
        assert lane.next_offsets(b"TopicTest") == [0, 101]

    @pytest.mark.parametrize("code", [10, 310, 320])
    def test_every_send_code(self, kernel: Kernel, lane: SendLane, code: int) -> None:
        fields = send_fields()
        if code == 10:
            fields = {LONG_NAMES[name]: value for name, value in fields.items()}
        done = append(lane, json_request(code, fields, b"x"))
        assert [record.body for record in stored(kernel, done)] == [b"x"]

    def test_a_binary_request_gets_a_binary_reply(self, kernel: Kernel, lane: SendLane) -> None:
        done = append(lane, binary_request(310, send_fields(), b"hello"))
        message_id = f"7F00000100002A9F{LOG_BASE:016X}".encode()
        assert done.run.replies == kernel.encode_send_reply(
            7, 1, 407, 0, 0, message_id, b"DefaultRegion", True
        )

    def test_a_run_of_many(self, kernel: Kernel, lane: SendLane) -> None:
        raw = b"".join(send(b"%d" % n, opaque=n, e=str(n % 2)) for n in range(50))
        done = append(lane, raw)
        records = stored(kernel, done)
        assert [record.body for record in records] == [b"%d" % n for n in range(50)]
        assert [record.queue_offset for record in records[:4]] == [0, 100, 1, 101]
        answers = replies(kernel, done)
        assert [answer["opaque"] for answer in answers] == list(range(50))
        assert done.run[2:4] == (50, 50)
        assert (
            kernel.scan_records(done.log, 0, done.run.log_position, LOG_BASE, True, 99).records
            == 50
        )

    def test_oneway_is_stored_and_not_answered(self, kernel: Kernel, lane: SendLane) -> None:
        done = append(lane, send(flag=2) + send(opaque=9))
        assert len(stored(kernel, done)) == 2
        assert [answer["opaque"] for answer in replies(kernel, done)] == [9]

    def test_positions_in_both_buffers(self, kernel: Kernel, lane: SendLane) -> None:
        raw = b"junk" + send() + b"junk"
        log = bytearray(1000)
        run = lane.append(raw, 4, len(raw) - 4, log, 300, 800, LOG_BASE, BORN_HOST, NOW)
        record, end = kernel.decode_record(log, 300, 1000, True)
        assert (run.consumed, run.log_position) == (len(raw) - 4, end)
        assert record.log_offset == LOG_BASE + 300
        assert not any(log[:300])

    @pytest.mark.parametrize("born", [BORN_HOST, IPV6_HOST])
    @pytest.mark.parametrize("store", [STORE_HOST, IPV6_HOST])
    def test_ipv6(self, kernel: Kernel, born: bytes, store: bytes) -> None:
        lane = make_lane(kernel, store_host=store)
        lane.open_topic(b"TopicTest", [0])
        done = append(lane, send(f="1"), born_host=born)
        (record,) = stored(kernel, done)
        expected = 1 | (0x10 if len(born) == 20 else 0) | (0x20 if len(store) == 20 else 0)
        assert (record.sys_flag, record.born_host, record.store_host) == (expected, born, store)
        (answer,) = replies(kernel, done)
        assert answer["extFields"] == {
            "msgId": f"{store.hex().upper()}{LOG_BASE:016X}", "queueId": "0", "queueOffset": "0",
            "TRACE_ON": "true", "MSG_REGION": "DefaultRegion",
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            ("", ""),
            ("\x02\x02", ""),
            ("WAIT\x01TRUE", ""),
            ("CLUSTER\x01other", ""),
            ("a\x01b\x02", "a\x01b\x02"),
            ("a\x01b", "a\x01b\x02"),
            ("a\x01\x02c\x01d\x02\x01e", "c\x01d\x02"),
            ("a\x01b\x02WAIT\x01true\x02a\x01c", "a\x01b\x02a\x01c\x02"),
            ("a\x01b\x01c", "a\x01b\x01c\x02"),
            ("\u4e2d\x01\U0001f600", "\u4e2d\x01\U0001f600\x02"),
            ("x", ""),
            ("WAIT\x01", ""),
            ("DELAY\x01", ""),
        ],
    )
    def test_stored_properties(self, kernel: Kernel, lane: SendLane, given: str, kept: str) -> None:
        (record,) = stored(kernel, append(lane, send(i=given)))
        assert record.properties == f"{kept}CLUSTER\x01DefaultCluster".encode()

    def test_without_properties(self, kernel: Kernel, lane: SendLane) -> None:
        (record,) = stored(kernel, append(lane, send(i=None)))
        assert record.properties == b"CLUSTER\x01DefaultCluster"

    def test_properties_of_the_largest_size(self, kernel: Kernel, lane: SendLane) -> None:
        room = 32767 - len(b"\x02CLUSTER\x01DefaultCluster") - 2
        (record,) = stored(kernel, append(lane, send(i="a\x01" + "v" * room)))
        assert len(record.properties) == 32767
        assert append(lane, send(i="a\x01" + "v" * (room + 1))).run.stop is LaneStop.POLICY

    def test_a_body_of_the_largest_size(self, kernel: Kernel, lane: SendLane) -> None:
        (record,) = stored(kernel, append(lane, send(b"b" * BODY_MAX)))
        assert len(record.body) == BODY_MAX

    def test_fields_beyond_the_known_do_not_matter(self, kernel: Kernel, lane: SendLane) -> None:
        assert len(stored(kernel, append(lane, send(AccessKey="a", Signature="b", n="x")))) == 1


NOT_ORDINARY = {
    "pull": json_request(11, pull_fields()),
    "another request": json_request(34, {}),
    "a response": send(flag=1),
    "no header": frame(b"", b"body"),
    "unknown topic": send(b="Other"),
    "topic in another case": send(b="topictest"),
    "queue below": send(e="-1"),
    "queue above": send(e="2"),
    "prepared": send(f="4"),
    "multi tags": send(f="2"),
    "IPv6 bit": send(f="16"),
    "negative sysFlag": send(f="-1"),
    "no body": send(b""),
    "body too large": send(b"b" * (BODY_MAX + 1)),
    "a name of policy": send(i="a\x01b\x02DELAY\x013"),
    "another name of policy": send(i="TRAN_MSG\x01true"),
    "properties with a zero": send(i="a\x01b\0c"),
    "batch with a zero in its own properties": batch(inner_message(b"a", b"k\x01\0")),
    "batch with a zero in those of its request": batch(inner_message(b"a"), i="k\x01v\0v"),
    "WAIT is false": send(i="WAIT\x01false"),
    "one WAIT is false": send(i="WAIT\x01false\x02WAIT\x01true"),
    "a number that is none": send(e="x"),
    "batch cut": batch(inner_message(b"a")[:-1]),
    "batch longer": batch(inner_message(b"a") + b"\0"),
    "batch with an empty body": batch(inner_message(b"a"), inner_message(b"")),
    "batch total": batch(struct.pack(">i", 24) + inner_message(b"a")[4:]),
    "batch body length": batch(inner_message(b"a")[:16] + struct.pack(">i", -1) + b"a\0\0"),
    "batch body length too large": batch(
        inner_message(b"a")[:16] + struct.pack(">i", 99) + b"a\0\0"
    ),
    "batch properties length": batch(inner_message(b"a")[:-2] + b"\xff\xff"),
    "batch with a name of policy": batch(inner_message(b"a"), i="DELAY\x011"),
    "batch that need not wait": batch(inner_message(b"a"), i="WAIT\x01no"),
    "batch with 17 properties": batch(
        inner_message(b"a"), i="".join(f"p{n}\x01v\x02" for n in range(17))
    ),
    "plain body said to be a batch": send(b"hello", m="true"),
}


class TestStops:
    """Where a run ends, and that nothing of the frame there has happened."""

    @pytest.mark.parametrize("raw", NOT_ORDINARY.values(), ids=NOT_ORDINARY.keys())
    def test_what_is_not_ordinary_is_left_to_python(
        self, kernel: Kernel, lane: SendLane, raw: bytes
    ) -> None:
        first = send()
        done = append(lane, first + raw + send())
        assert (done.run.consumed, done.run.requests) == (len(first), 1)
        assert done.run.stop is LaneStop.POLICY
        assert len(stored(kernel, done)) == len(replies(kernel, done)) == 1
        assert lane.next_offsets(b"TopicTest") == [1, 100]
        alone = append(lane, raw)
        assert alone.run == SendRun(0, 0, 0, 0, b"", LaneStop.POLICY)

    def test_part_of_a_frame_drains_the_run(self, kernel: Kernel, lane: SendLane) -> None:
        whole = send()
        for cut in range(len(whole)):
            done = append(lane, whole + whole[:cut])
            assert (done.run.consumed, done.run.stop) == (len(whole), LaneStop.DRAINED)
        assert append(lane, b"").run == SendRun(0, 0, 0, 0, b"", LaneStop.DRAINED)

    @pytest.mark.parametrize(
        "bad", [struct.pack(">i", 3), struct.pack(">iI", 8, 2 << 24), struct.pack(">iI", 8, 5)]
    )
    def test_bytes_that_are_no_frame(self, lane: SendLane, bad: bytes) -> None:
        with pytest.raises(ProtocolError):
            append(lane, bad)
        done = append(lane, send() + bad)
        assert (done.run.requests, done.run.stop) == (1, LaneStop.POLICY)

    def test_the_frame_limit_is_the_common_one(self, lane: SendLane) -> None:
        message = (
            f"^frame.length: {FRAME_BYTES_MAX - 3} is not between 4 and {FRAME_BYTES_MAX - 4}$"
        )
        with pytest.raises(ProtocolError, match=message):
            append(lane, struct.pack(">i", FRAME_BYTES_MAX - 3))

    def test_a_full_log(self, kernel: Kernel, lane: SendLane) -> None:
        size = append(lane, send()).run.log_position
        fits = append(lane, send(), room=size + 8)
        assert fits.run.stop is LaneStop.DRAINED
        never = append(lane, send(), room=size + 7)
        assert never.run == SendRun(0, 0, 0, 0, b"", LaneStop.POLICY)  # rolling would not help
        assert not any(never.log)
        second = append(lane, send() + send(), room=2 * size + 7)
        assert (second.run.requests, second.run.stop) == (1, LaneStop.LOG_FULL)
        assert lane.next_offsets(b"TopicTest") == [3, 100]
        assert len(stored(kernel, second)) == 1

    def test_no_room_at_all(self, lane: SendLane) -> None:
        assert append(lane, send(), room=0).run.stop is LaneStop.POLICY

    def test_policy_comes_before_a_full_log(self, lane: SendLane) -> None:
        assert append(lane, send(i="DELAY\x011"), room=5).run.stop is LaneStop.POLICY


class TestBatches:
    """Many messages in a request."""

    def test_records_and_reply(self, kernel: Kernel, lane: SendLane) -> None:
        raw = batch(
            inner_message(b"one", b"KEYS\x01k1\x02", flag=5, magic=9, crc=9),
            inner_message(b"two", b"", flag=-1),
            e="1", f="1", j="3",
        )  # fmt: skip
        done = append(lane, raw)
        first, second = stored(kernel, done)
        assert (first.body, first.flag, first.queue_offset) == (b"one", 5, 100)
        assert (second.body, second.flag, second.queue_offset) == (b"two", -1, 101)
        assert first.properties == b"KEYS\x01k1\x02WAIT\x01true\x02CLUSTER\x01DefaultCluster"
        assert second.properties == b"WAIT\x01true\x02CLUSTER\x01DefaultCluster"
        assert (first.reconsume_times, first.sys_flag, first.queue_id) == (3, 1, 1)
        at = LOG_BASE + kernel.record_bytes(first)
        assert second.log_offset == at
        ids = f"7F00000100002A9F{LOG_BASE:016X},7F00000100002A9F{at:016X}".encode()
        assert done.run.replies == kernel.encode_send_reply(
            7, 0, 407, 1, 100, ids, b"DefaultRegion", True
        )
        assert (done.run.requests, done.run.messages) == (1, 2)
        assert lane.next_offsets(b"TopicTest") == [0, 102]

    def test_the_field_decides_not_the_code(self, kernel: Kernel, lane: SendLane) -> None:
        body = inner_message(b"a")
        (plain,) = stored(kernel, append(lane, json_request(320, send_fields(), body)))
        assert plain.body == body
        (inner,) = stored(kernel, append(lane, json_request(310, send_fields(m="TRUE"), body)))
        assert inner.body == b"a"

    @pytest.mark.parametrize(
        ("own", "given", "expected"),
        [
            ("", "", "CLUSTER\x01DefaultCluster"),
            ("CLUSTER\x01own", "", "CLUSTER\x01own"),
            ("CLUSTER\x01own", "CLUSTER\x01given", "CLUSTER\x01own"),
            ("", "CLUSTER\x01given", "CLUSTER\x01DefaultCluster"),
            ("a\x011", "a\x012\x02b\x013", "a\x011\x02b\x013\x02CLUSTER\x01DefaultCluster"),
            ("a\x011\x02a\x012\x02", "", "a\x011\x02a\x012\x02CLUSTER\x01DefaultCluster"),
            ("a\x01\x02", "a\x012\x02a\x013", "a\x012\x02a\x013\x02CLUSTER\x01DefaultCluster"),
            (
                "WAIT\x01false\x02DELAY\x013",
                "",
                "WAIT\x01false\x02DELAY\x013\x02CLUSTER\x01DefaultCluster",
            ),
            ("WAIT\x01false", "WAIT\x01true", "WAIT\x01false\x02CLUSTER\x01DefaultCluster"),
        ],
    )
    def test_stored_properties(
        self, kernel: Kernel, lane: SendLane, own: str, given: str, expected: str
    ) -> None:
        raw = batch(inner_message(b"x", own.encode()), i=given)
        (record,) = stored(kernel, append(lane, raw))
        assert record.properties == expected.encode()

    def test_sixteen_shared_properties_are_allowed(self, kernel: Kernel, lane: SendLane) -> None:
        given = "".join(f"p{n}\x01v\x02" for n in range(16)) + "\x02empty\x01"
        assert len(stored(kernel, append(lane, batch(inner_message(b"x"), i=given)))) == 1

    def test_properties_over_the_limit_are_policy(self, lane: SendLane) -> None:
        own = b"a\x01" + b"v" * 200
        given = "b\x01" + "v" * 32600
        assert append(lane, batch(inner_message(b"x", own), i=given)).run.stop is LaneStop.POLICY

    def test_it_is_stored_whole_or_not_at_all(self, kernel: Kernel, lane: SendLane) -> None:
        raw = batch(*[inner_message(b"%d" % n) for n in range(10)])
        size = append(lane, raw).run.log_position
        assert append(lane, raw, room=size + 8).run.messages == 10
        never = append(lane, raw, room=size + 7)
        assert never.run == SendRun(0, 0, 0, 0, b"", LaneStop.POLICY)
        assert not any(never.log)
        full = append(lane, send() + raw, room=size + 100)
        assert (full.run.requests, full.run.stop) == (1, LaneStop.LOG_FULL)
        assert len(stored(kernel, full)) == 1

    def test_a_bad_end_spoils_the_whole(self, lane: SendLane) -> None:
        done = append(lane, batch(inner_message(b"a"), inner_message(b"b")[:-1]))
        assert done.run == SendRun(0, 0, 0, 0, b"", LaneStop.POLICY)
        assert not any(done.log)

    def test_oneway(self, kernel: Kernel, lane: SendLane) -> None:
        fields = send_fields(m="true")
        done = append(lane, json_request(320, fields, inner_message(b"a") * 3, flag=2))
        assert (len(stored(kernel, done)), done.run.replies) == (3, b"")

    def test_the_number_of_messages_has_a_bound(self, kernel: Kernel) -> None:
        lane = make_lane(kernel, body_bytes_max=4 << 20)
        lane.open_topic(b"TopicTest", [0])
        most = append(lane, batch(inner_message(b"x") * 65536), room=16 << 20)
        assert most.run.messages == 65536
        assert (
            append(lane, batch(inner_message(b"x") * 65537), room=16 << 20).run.stop
            is LaneStop.POLICY
        )


class TestTopics:
    """Opening, closing, counting."""

    def test_open_close_and_open_again(self, lane: SendLane) -> None:
        assert lane.next_offsets(b"Other") is None
        lane.open_topic(b"Other", (5, 2**62))
        assert lane.next_offsets(b"Other") == [5, 2**62]
        lane.open_topic(b"Other", [1])
        assert lane.next_offsets(b"Other") == [1]
        lane.close_topic(b"Other")
        lane.close_topic(b"Other")
        assert lane.next_offsets(b"Other") is None
        assert append(lane, send(b="Other")).run.stop is LaneStop.POLICY
        assert lane.next_offsets(b"TopicTest") == [0, 100]

    def test_what_is_returned_is_a_copy(self, lane: SendLane) -> None:
        offsets = lane.next_offsets(b"TopicTest")
        assert offsets is not None
        offsets[0] = 77
        assert lane.next_offsets(b"TopicTest") == [0, 100]

    def test_many_topics(self, lane: SendLane) -> None:
        names = [b"topic-%d" % n for n in range(500)]
        for n, name in enumerate(names):
            lane.open_topic(name, [n])
        for name in names[::2]:
            lane.close_topic(name)
        for n, name in enumerate(names):
            assert lane.next_offsets(name) == (None if n % 2 == 0 else [n])
        for n, name in enumerate(names[:100]):
            lane.open_topic(name, [n, n])
        assert lane.next_offsets(names[99]) == [99, 99]

    def test_a_topic_of_127_bytes(self, kernel: Kernel, lane: SendLane) -> None:
        lane.open_topic(b"t" * 127, [0])
        (record,) = stored(kernel, append(lane, send(b="t" * 127)))
        assert record.topic == b"t" * 127

    def test_a_topic_outside_ascii(self, kernel: Kernel, lane: SendLane) -> None:
        lane.open_topic("\u4e2d".encode(), [0])
        (record,) = stored(kernel, append(lane, send(b="\u4e2d")))
        assert record.topic == "\u4e2d".encode()

    def test_advance(self, kernel: Kernel, lane: SendLane) -> None:
        assert lane.advance(b"TopicTest", 1, 5) == 100
        assert lane.advance(b"TopicTest", 1, 0) == 105
        assert lane.advance(b"TopicTest", 0, 2**31) == 0
        (record,) = stored(kernel, append(lane, send()))
        assert record.queue_offset == 2**31

    def test_counts(self, lane: SendLane) -> None:
        assert lane.take_counts() == []
        lane.open_topic(b"Another", [0])
        size = append(lane, send(e="0") + send(e="1")).run.log_position
        other = append(
            lane, json_request(320, send_fields(b="Another", m="true"), inner_message(b"a") * 3)
        )
        lane.close_topic(b"TopicTest")
        lane.open_topic(b"TopicTest", [0])
        again = append(lane, send()).run.log_position
        assert lane.take_counts() == [
            (b"Another", 3, other.run.log_position),
            (b"TopicTest", 3, size + again),
        ]
        assert lane.take_counts() == []

    def test_a_lane_keeps_nothing_of_the_buffers(self, lane: SendLane) -> None:
        raw = bytearray(send())
        log = bytearray(1000)
        lane.append(raw, 0, len(raw), log, 0, 1000, LOG_BASE, BORN_HOST, NOW)
        raw.append(0)
        log.append(0)
        assert lane.next_offsets(b"TopicTest") == [1, 100]


class TestArguments:
    """What a caller may not ask for."""

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"store_host": b"1234567"}, "lane: store host has 7 bytes, not 8 or 20"),
            ({"cluster": b""}, "lane: the cluster name must be plain text"),
            ({"cluster": b"a\x01"}, "lane: the cluster name must be plain text"),
            ({"cluster": b"a\x02b"}, "lane: the cluster name must be plain text"),
            ({"region": b'"'}, "reply: region must be printable ASCII without quotes"),
            ({"version": -1}, "lane: version must be between 0 and 32767"),
            ({"version": 32768}, "lane: version must be between 0 and 32767"),
            ({"body_bytes_max": 0}, "lane: body_bytes_max must be positive"),
        ],
    )  # fmt: skip
    def test_making_one(self, kernel: Kernel, changes: dict[str, object], message: str) -> None:
        with pytest.raises(InvalidValue) as caught:
            make_lane(kernel, **changes)
        assert str(caught.value) == message

    def test_no_bound_but_the_frame(self, kernel: Kernel) -> None:
        lane = make_lane(kernel, body_bytes_max=2**70, policy_names=())
        lane.open_topic(b"TopicTest", [0])
        assert append(lane, send(i="DELAY\x011")).run.requests == 1

    @pytest.mark.parametrize("topic", [b"", b"t" * 128])
    def test_topics_have_1_to_127_bytes(self, lane: SendLane, topic: bytes) -> None:
        with pytest.raises(
            InvalidValue, match=f"^lane: topic of {len(topic)} bytes, not 1 to 127$"
        ):
            lane.open_topic(topic, [0])

    @pytest.mark.parametrize("offsets", [[], [-1], [0, 2**62 + 1], [2**100], [0] * 65537])
    def test_next_offsets(self, lane: SendLane, offsets: Sequence[int]) -> None:
        with pytest.raises(InvalidValue) as caught:
            lane.open_topic(b"TopicTest", offsets)
        message = "lane: next offsets must be 1 to 65536 numbers from 0 to 2**62"
        assert str(caught.value) == message
        assert lane.next_offsets(b"TopicTest") == [0, 100]

    @pytest.mark.parametrize(
        ("topic", "queue_id", "count", "message"),
        [
            (b"Other", 0, -1, "lane: topic b'Other' is not open"),
            (b"TopicTest", -1, -1, "lane: topic b'TopicTest' has no queue -1"),
            (b"TopicTest", 2, 1, "lane: topic b'TopicTest' has no queue 2"),
            (b"TopicTest", 2**70, 1, f"lane: topic b'TopicTest' has no queue {2**70}"),
            (b"TopicTest", 0, -1, "lane: count must be between 0 and 2147483648"),
            (b"TopicTest", 0, 2**31 + 1, "lane: count must be between 0 and 2147483648"),
        ],
    )
    def test_advance(
        self, lane: SendLane, topic: bytes, queue_id: int, count: int, message: str
    ) -> None:
        with pytest.raises(InvalidValue) as caught:
            lane.advance(topic, queue_id, count)
        assert str(caught.value) == message
        assert lane.next_offsets(b"TopicTest") == [0, 100]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"start": -1}, "range: start=-1 end=5 do not lie within a buffer of 5 bytes"),
            ({"end": 6, "limit": 99}, "range: start=0 end=6 do not lie within a buffer of 5 bytes"),
            (
                {"limit": 11, "born_host": b""},
                "range: position=0 limit=11 do not lie within a buffer of 10 bytes",
            ),
            (
                {"position": 9, "limit": 8},
                "range: position=9 limit=8 do not lie within a buffer of 10 bytes",
            ),
            ({"born_host": b"123456789", "now_ms": -1}, "lane: born host has 9 bytes, not 8 or 20"),
            ({"log_base": -1}, "lane: log_base and now_ms must be between 0 and 2**62"),
            ({"now_ms": -1}, "lane: log_base and now_ms must be between 0 and 2**62"),
        ],
    )
    def test_append(self, lane: SendLane, changes: dict[str, object], message: str) -> None:
        arguments: dict[str, object] = {
            "buffer": bytes(5),
            "start": 0,
            "end": 5,
            "log": bytearray(10),
            "position": 0,
            "limit": 10,
            "log_base": 0,
            "born_host": BORN_HOST,
            "now_ms": 0,
        } | changes
        with pytest.raises(InvalidValue) as caught:
            lane.append(**arguments)  # type: ignore[arg-type]
        assert str(caught.value) == message


def test_properties_are_those_of_the_wire() -> None:
    assert properties({"a": "b", "c": "d"}) == b"a\x01b\x02c\x01d"


def test_the_largest_body_may_change(lane: SendLane) -> None:
    def send(size: int) -> int:
        return append(lane, json_request(310, send_fields(), b"x" * size)).run.requests

    assert send(200) == 1
    lane.limit_bodies(100)
    assert (send(100), send(101)) == (1, 0)
    lane.limit_bodies(BODY_MAX)
    assert send(BODY_MAX) == 1
    with pytest.raises(InvalidValue, match="positive"):
        lane.limit_bodies(0)
    assert send(BODY_MAX) == 1
