"""Who is told what: closed connections, answered requests, and values that are never written."""

from __future__ import annotations

import copy
import struct
import zlib
from time import process_time
from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import ContentError, InvalidValue, ProtocolError, RecordError, shown
from gantrymq.kernel import available
from gantrymq.limits import (
    ERROR_TEXT_CHARACTERS_MAX,
    JSON_ENTRIES_MAX,
    JSON_LOOSE_BYTES_MAX,
    JSON_LOOSE_ENTRIES_MAX,
    PROPERTIES_BYTES_MAX,
    REGISTRATION_MAPPINGS_MAX,
    REGISTRATION_TOPICS_MAX,
    SHOWN_CHARACTERS_MAX,
)
from gantrymq.model.offsets import DataVersion
from gantrymq.model.topic import TopicConfig
from gantrymq.wire import fastjson
from gantrymq.wire.bodies.offsets import CONSUMER_OFFSETS, TIMER_CHECKPOINT, TimerCheckpoint
from gantrymq.wire.bodies.registration import REGISTRATION, Registration
from gantrymq.wire.bodies.topic import TopicTable
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.command import BINARY_HEADER, JSON_HEADER, Command
from gantrymq.wire.fields import Header, Int32, Int64
from gantrymq.wire.frame import FrameParser, encode_frame
from gantrymq.wire.header_codec import decode_header
from gantrymq.wire.headers.admin import SwitchTimerEngineRequest
from gantrymq.wire.properties import decode_properties, encode_properties
from gantrymq.wire.registry import HEADERS
from gantrymq.wire.sysflag import compression

if TYPE_CHECKING:
    from collections.abc import Callable

LONG = "k" * 100_000


class Sample(Header, frozen=True, kw_only=True):
    """One field of each type."""

    name: str
    number: Int32
    offset: Int64
    flag: bool


def sized(*parts: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(part)) + part for part in parts)


def counted(count: int) -> bytes:
    return struct.pack(">i", count)


def json_frame(header: bytes) -> bytes:
    return struct.pack(">II", 4 + len(header), len(header)) + header


@pytest.mark.parametrize(
    "decode",
    [
        lambda: compression(0x701),
        lambda: REGISTRATION.decode(b"x is not zlib"),
        lambda: REGISTRATION.decode(REGISTRATION.encode_compressed(Registration()) + b"junk"),
        lambda: TIMER_CHECKPOINT.decode(b"short"),
        lambda: decode_properties(b"k\x01" + b"v" * PROPERTIES_BYTES_MAX),
        lambda: CONSUMER_OFFSETS.decode(b'{"offsetTable":5}'),
    ],
)
def test_what_is_wrong_inside_a_frame_is_answered(decode: Callable[[], object]) -> None:
    with pytest.raises(ContentError):
        decode()


@pytest.mark.parametrize(
    ("header", "kind"), [(b"{}", JSON_HEADER), (b"short", BINARY_HEADER), (b"", 7)]
)
def test_a_frame_that_cannot_be_read_closes_the_connection(header: bytes, kind: int) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_header(header, kind)
    assert type(caught.value) is ProtocolError


class TestErrorTexts:
    """A peer's words are repeated in part."""

    def test_a_text_is_cut_once(self) -> None:
        assert shown("short") == "short"
        assert len(shown(LONG)) == SHOWN_CHARACTERS_MAX
        assert shown(shown(LONG)) == shown(LONG)

    @pytest.mark.parametrize("kind", [ProtocolError, ContentError, RecordError])
    def test_no_error_is_long(self, kind: type[ProtocolError]) -> None:
        error = kind(LONG, LONG)
        assert len(error.field) == len(error.problem) == ERROR_TEXT_CHARACTERS_MAX
        again = copy.copy(error)  # as pickle does it
        assert (type(again), str(again)) == (kind, str(error))

    @pytest.mark.parametrize(
        "decode",
        [
            lambda: decode_header(
                f'{{"code":1,"opaque":2,"extFields":{{"{LONG}":[]}}}}'.encode(), 0
            ),
            lambda: decode_header(f'{{"code":"{LONG}","opaque":2}}'.encode(), 0),
            lambda: decode_header(
                bytes(17) + struct.pack(">ih", 32006, 32000) + b"k" * 32000 + counted(9), 1
            ),
            lambda: CONSUMER_OFFSETS.decode(f'{{"offsetTable":{{"{LONG}":[]}}}}'.encode()),
            lambda: CONSUMER_OFFSETS.decode(f'{{"offsetTable":{{"t":{{"{LONG}":1}}}}}}'.encode()),
            lambda: fastjson.parse(f"{{a:{{{LONG}:{{{LONG}:{LONG}}}}}}}".encode()),
            lambda: REGISTRATION.decode(
                zlib.compress(sized(b"{}") + counted(1) + sized(f"t 1 1 6 {LONG}".encode()))
            ),
            lambda: REGISTRATION.decode(
                zlib.compress(sized(b"{}") + counted(1) + sized(f"t {LONG} 1 6 X".encode()))
            ),
            lambda: encode_properties({LONG: "\x01"}),
            lambda: encode_properties({"k": LONG + "\x02"}),
        ],
    )
    def test_long_keys_and_values_are_cut(self, decode: Callable[[], object]) -> None:
        with pytest.raises((ProtocolError, InvalidValue)) as caught:
            decode()
        assert len(str(caught.value)) < 300


class TestJsonHeaders:
    """What the general codec reads, and the kernel beside it."""

    @pytest.mark.parametrize(
        ("key", "value"), [("flag", "null"), ("version", "null"), ("flag", '"2"'), ("code", '"11"')]
    )
    def test_the_kernel_reads_nothing_else(self, key: str, value: str) -> None:
        numbers = {"code": "11", "flag": "0", "opaque": "7", "version": "5", key: value}
        ext = {
            "consumerGroup": "g", "topic": "t", "queueId": "0", "queueOffset": "0",
            "maxMsgNums": "1", "sysFlag": "0", "commitOffset": "0", "suspendTimeoutMillis": "0",
            "subVersion": "0",
        }  # fmt: skip
        fields = ",".join(f'"{name}":"{text}"' for name, text in ext.items())
        others = ",".join(f'"{name}":{number}' for name, number in numbers.items())
        frame = json_frame(f'{{{others},"extFields":{{{fields}}}}}'.encode())
        (command,) = FrameParser().feed(frame)
        assert (command.code, command.opaque, command.fields) == (11, 7, ext)
        for kernel in available():
            (found,), _ = kernel.split_frames(frame, 0, len(frame), 1 << 20)
            request = kernel.decode_request(frame, found)
            if value == "null":
                assert request is not None
                assert (request.opaque, request.oneway) == (7, command.is_oneway)
            else:
                assert request is None

    def test_numbers_as_text(self) -> None:
        command = decode_header(b'{"code":"310","opaque":"-7","flag":"2","version":"+5"}', 0)
        assert (command.code, command.opaque, command.flag, command.version) == (310, -7, 2, 5)


class TestJsonBodies:
    """Bounds of what is parsed."""

    def test_a_masters_offsets_are_read(self) -> None:
        queues = b",".join(b"%d:%d" % (queue, 10**8 + queue) for queue in range(8))
        tables = b",".join(b'"topic%d@g":{%b}' % (number, queues) for number in range(40_000))
        body = b'{"offsetTable":{' + tables + b"}}"
        assert len(body) > JSON_LOOSE_BYTES_MAX
        began = process_time()
        offsets = CONSUMER_OFFSETS.decode(body)
        assert process_time() - began < 20
        assert offsets.offset_table["topic7@g"][7] == 10**8 + 7  # type: ignore[index]
        assert sum(map(len, offsets.offset_table.values())) == 320_000

    @pytest.mark.parametrize(
        ("text", "tree"),
        [
            (b'{"a\\\\":{0:"{1:2}"}}', {"a\\": {"0": "{1:2}"}}),
            (b'{2 :{ -3:"\\",4:5"}}', {"2": {"-3": '",4:5'}}),
            (b'{0:1,"0":2}', {"0": 2}),
            (b'{"a":[{1:2},{3:"x,4:"}]\n,\t5:6}', {"a": [{"1": 2}, {"3": "x,4:"}], "5": 6}),
        ],
    )  # fmt: skip
    def test_integers_as_keys_beside_texts(self, text: bytes, tree: object) -> None:
        assert fastjson.parse(text) == tree

    @pytest.mark.parametrize(
        "text", [b"[1,2:3]", b'{0:1,"a', b'{0:1,"a\\', b"{0:1}{0:", b"{0:1}{0:2}"]
    )
    def test_what_quotes_do_not_mend(self, text: bytes) -> None:
        with pytest.raises(ContentError, match="at character"):
            fastjson.parse(text)

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            (b"[" + b"{}," * JSON_ENTRIES_MAX + b"{}]", f"at most {JSON_ENTRIES_MAX} are read"),
            (b"['a'," + b"1," * JSON_LOOSE_ENTRIES_MAX, f"at most {JSON_LOOSE_ENTRIES_MAX} are"),
            (b"['" + b"a" * JSON_LOOSE_BYTES_MAX, f"at most {JSON_LOOSE_BYTES_MAX} are read"),
            (b"{0:1," + b'""' * 4_000_000, f"at most {JSON_LOOSE_BYTES_MAX} are read"),
            (b'{0:1,"' + b"\\" * 8_000_001, f"at most {JSON_LOOSE_BYTES_MAX} are read"),
            (b"{0:1," + b"1" * 8_000_000, f"at most {JSON_LOOSE_BYTES_MAX} are read"),
        ],
        ids=["entries", "loose entries", "loose bytes", "quotes", "backslashes", "digits"],
    )
    def test_too_much_is_refused_at_once(self, text: bytes, problem: str) -> None:
        began = process_time()
        with pytest.raises(ContentError, match=problem):
            fastjson.parse(text)
        assert process_time() - began < 5

    def test_no_integer_of_thousands_of_digits_is_written(self) -> None:
        with pytest.raises(InvalidValue):
            fastjson.encode({"a": 10**5000})
        with pytest.raises(InvalidValue):
            encode_frame(Command(code=1, opaque=2, language=10**5000))


class TestRegistrations:
    """The compressed form."""

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            (counted(REGISTRATION_TOPICS_MAX + 1) + bytes(400_008), "body.topicConfigTable"),
            (
                counted(0) + sized(b"[]") + counted(REGISTRATION_MAPPINGS_MAX + 1) + bytes(80_008),
                "body.topicQueueMappingInfoMap",
            ),
            (
                counted(0) + sized(b"[]") + counted(1) + sized(b'{"topic":"a"},{"topic":"b"}'),
                "body.topicQueueMappingInfoMap",
            ),
        ],
        ids=["topics", "mappings", "more than said"],
    )
    def test_counts_are_bounded_and_hold(self, body: bytes, field: str) -> None:
        with pytest.raises(ContentError) as caught:
            REGISTRATION.decode(zlib.compress(sized(b"{}") + body))
        assert caught.value.field == field

    def test_as_many_topics_as_there_may_be(self) -> None:
        line = sized(b"t 4 8 6 SINGLE_TAG {'a':[" + b"1," * 80)
        plain = sized(b"{}") + counted(REGISTRATION_TOPICS_MAX)
        body = zlib.compress(plain + line * REGISTRATION_TOPICS_MAX + sized(b"[]"))
        began = process_time()
        table = REGISTRATION.decode(body).topic_config_serialize_wrapper
        assert process_time() - began < 10
        assert table.topic_config_table == {"t": TopicConfig("t", 4, 8)}

    @pytest.mark.parametrize("name", ["", "a b", "\ud800"])
    def test_a_name_that_a_line_cannot_hold(self, name: str) -> None:
        table = TopicTable(topic_config_table={name: TopicConfig(name)})
        with pytest.raises(InvalidValue, match="topic"):
            REGISTRATION.encode_compressed(Registration(topic_config_serialize_wrapper=table))


@pytest.mark.parametrize("kind", [JSON_HEADER, BINARY_HEADER])
@pytest.mark.parametrize(
    "changes",
    [{name: value} for name in ("code", "opaque", "flag", "version")
     for value in (2**31, -(2**31) - 1, True, None, "1", 1.0)]
    + [{"remark": 5}, {"remark": "\ud800"}, {"fields": {"a": None}}, {"fields": {"a": 5}},
       {"fields": {5: "a"}}, {"fields": {"a": "\ud800"}}, {"fields": {"\ud800": "a"}},
       {"wire_pairs": (("a", 5),)}],
)  # fmt: skip
def test_a_command_that_nobody_could_read(changes: dict[str, object], kind: int) -> None:
    values: dict[str, object] = {"code": 1, "opaque": 2, "serialize_type": kind}
    with pytest.raises(InvalidValue):
        encode_frame(Command(**(values | changes)))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [JSON_HEADER, BINARY_HEADER])
def test_a_header_over_24_bits(kind: int) -> None:
    command = Command.request(1, 2, {"a": "v" * (1 << 24)}, serialize_type=kind)
    with pytest.raises(InvalidValue, match="a header of"):
        encode_frame(command, 1 << 30)


@pytest.mark.parametrize(
    "changes",
    [{"number": "5"}, {"number": 1.5}, {"number": True}, {"number": 2**31}, {"offset": 2**63},
     {"name": 5}, {"name": b"x"}, {"flag": "true"}, {"flag": 1}],
)  # fmt: skip
def test_a_header_field_of_another_type(changes: dict[str, object]) -> None:
    values: dict[str, object] = {"name": "n", "number": 1, "offset": 2, "flag": True}
    header = Sample(**(values | changes))  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match=next(iter(changes))):
        header.encode()


def test_a_check_point_beyond_64_bits() -> None:
    value = TimerCheckpoint(
        last_read_time_ms=2**63,
        timer_log_flush_position=0,
        timer_queue_offset=0,
        master_timer_queue_offset=0,
        data_version=DataVersion(),
    )
    with pytest.raises(InvalidValue, match="timer check point"):
        TIMER_CHECKPOINT.encode(value)


@pytest.mark.parametrize("text", ["k\x01" + "v" * 32765, b"k\x01" + b"\xff" * 32765])
def test_the_longest_properties(text: str | bytes) -> None:
    assert len(decode_properties(text)["k"]) == 32765
    unit = "characters" if isinstance(text, str) else "bytes"
    with pytest.raises(RecordError, match=f"32768 {unit}; at most 32767"):
        decode_properties(text + text[:1])  # type: ignore[operator]


def test_the_timer_engine() -> None:
    assert HEADERS[RequestCode.SWITCH_TIMER_ENGINE].request is SwitchTimerEngineRequest
    assert SwitchTimerEngineRequest.decode({"E_T": "R"}).encode() == {"E_T": "R"}
