"""What is fuzzed: for each target a function from bytes to the kind of what happened.

A target lets `ProtocolError` (with `RecordError`) and `InvalidValue` happen and nothing else. It
raises `DisagreementError` when two ways to the same answer differ: the two kernels; a frame taken
whole and in pieces; the kernel's reading of a request and the general codec's; a value and what is
read back after writing it.
"""

from __future__ import annotations

import itertools
import struct
from typing import TYPE_CHECKING, Final

from msgspec.structs import asdict

from fuzz import commands, files, http, services, tls
from fuzz.lanes import known_pulls
from fuzz.twins import DisagreementError, Outcome, agree, outcome, twins
from gantrymq.kernel import kernel
from gantrymq.kernel.values import (
    BINARY_HEADER,
    COLUMN_NAMES,
    JSON_HEADER,
    SCHEDULE_TOPIC,
    UNIT_BYTES,
    Frame,
    LaneStop,
    PullRequest,
    Record,
    SendRequest,
)
from gantrymq.limits import (
    BODY_BYTES_MAX,
    FRAME_BYTES_MAX,
    PROPERTIES_BYTES_MAX,
    TOPIC_BYTES_MAX,
)
from gantrymq.wire import fastjson
from gantrymq.wire.batch import decode_batch, encode_batch
from gantrymq.wire.bodies import BODIES, CONFIG_FILES, RAW, RECORDS
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.command import Command
from gantrymq.wire.frame import FrameParser, decode_frame, encode_frame
from gantrymq.wire.header_codec import decode_header, encode_header
from gantrymq.wire.properties import decode_properties, encode_properties
from gantrymq.wire.record import MessageRecord, decode_records, encode_message
from gantrymq.wire.registry import HEADERS

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel
    from gantrymq.kernel.values import SendRun
    from gantrymq.wire.fields import Header

HOST: Final = bytes([127, 0, 0, 1]) + struct.pack(">i", 10911)
DELAYS_MS: Final = (1000, 5000, 10000)
LOG_BYTES: Final = 1 << 17
NOW_MS: Final = 1_700_000_000_000
TOPIC: Final = b"TopicTest"
RECORD: Final = Record(0, 0, 7, 1000, 0, NOW_MS, HOST, NOW_MS, HOST, 0, 0, b"body", TOPIC, b"")
CODECS: Final = list(
    dict.fromkeys(
        codec
        for codec in (*itertools.chain.from_iterable(BODIES.values()), *CONFIG_FILES.values())
        if codec is not None and codec not in {RAW, RECORDS}
    )
)
"""Every kind of body that is more than bytes, in the order of the tables."""


def frame(data: bytes) -> str:
    """Split, decode, and store: as a connection does, and as the fast lane does."""
    split = twins("split_frames", lambda k: k.split_frames(data, 0, len(data), FRAME_BYTES_MAX))
    kinds = [split.kind]
    topics = set()
    for each in split.value[0] if split.value else []:
        request = _request(data, each)
        kinds.append(type(request).__name__)
        if isinstance(request, SendRequest):
            topics.add(request.topic.encode())
    kinds.append(known_pulls(data, split.value[0] if split.value else []))
    whole = _parsed(data, len(data) + 1)
    if whole != _parsed(data, max(1, len(data) // 3)):
        raise DisagreementError("frames differ when they come in pieces")
    for command in whole[0]:
        _written_again(command)
    kinds += [whole[1], _lane_kind(data, sorted(topics))]
    return " ".join(kinds)


def _request(data: bytes, each: Frame) -> SendRequest | PullRequest | None:
    """Decode a hot request with both kernels; what they understand, the general codec must too."""
    hot = twins("decode_request", lambda k: k.decode_request(data, each)).value
    if hot is not None:
        command = decode_frame(data, each)
        schema = HEADERS[RequestCode(command.code)].request
        typed = outcome(lambda: schema.decode(command.fields) if schema else None)
        # The kernel passes over fields that it does not know, and a bad one may be among them.
        if not (typed.error and hot.extra_fields):
            seen = [getattr(typed.value, name, None) for name in ("topic", "queue_id", "sys_flag")]
            read = [hot.topic, hot.queue_id, hot.sys_flag]
            if [command.opaque, command.is_oneway, *seen] != [hot.opaque, hot.oneway, *read]:
                raise DisagreementError(f"the kernel reads {hot!r}, the general codec {typed!r}")
    return hot


def _parsed(data: bytes, step: int) -> tuple[list[Command], str]:
    """Feed a parser in pieces; return what came out, and the error that closed it."""
    parser = FrameParser()
    commands: list[Command] = []
    for at in range(0, len(data), step):
        commands += parser.feed(data[at : at + step])
        if parser.error is not None:
            return commands, Outcome(None, str(parser.error)).kind
    return commands, ""


def _written_again(command: Command) -> None:
    """Write a command that was read, and read it again."""
    written = outcome(lambda: encode_frame(command))
    if written.value is not None:
        (again,) = FrameParser().feed(written.value)
        if again != command:
            raise DisagreementError(f"written {command!r}, read {again!r}")


def _stored(kernel: Kernel, data: bytes, topics: list[bytes]) -> tuple[SendRun, object]:
    """Take the sends at the front of the data into a log; return all that can be seen of it."""
    lane = kernel.SendLane(
        store_host=HOST,
        cluster=b"DefaultCluster",
        region=b"DefaultRegion",
        trace_on=True,
        version=407,
        body_bytes_max=BODY_BYTES_MAX,
        policy_names=[b"DELAY", b"TRAN_MSG"],
    )
    for topic in topics:
        if 0 < len(topic) <= TOPIC_BYTES_MAX:
            lane.open_topic(topic, [7] * 8)
    log = bytearray(LOG_BYTES)
    run = lane.append(data, 0, len(data), log, 0, LOG_BYTES, 1 << 20, HOST, NOW_MS)
    offsets = [lane.next_offsets(topic) for topic in topics]
    stored = bytes(log[: run.log_position]), lane.take_counts(), offsets
    # The same bytes as parts of a turn, wherever they are cut.
    parts = [(0, len(data) // 2, HOST), (len(data) // 2, len(data), HOST), (0, len(data), HOST)]
    turn = lane.append_each(data, parts, log, 0, LOG_BYTES, 1 << 20, NOW_MS)
    return run, (*stored, turn, bytes(log[: turn.log_position]))


def header(data: bytes) -> str:
    """Read one header: the first byte chooses the serialization. Then its typed form, both ways."""
    kind = BINARY_HEADER if data[:1] and data[0] & 1 else JSON_HEADER
    raw = data[1:]
    whole = struct.pack(">II", 4 + len(raw), kind << 24 | len(raw)) + raw
    _request(whole, Frame(0, 8, len(whole), len(whole), kind))
    read = outcome(lambda: decode_header(raw, kind))
    if read.value is None:
        return read.kind
    command = read.value
    written = outcome(lambda: encode_header(command))
    if written.value is not None:
        agree("header", [read, outcome(lambda: decode_header(written.value or b"", kind))])
    return f"{written.kind} {_typed(command)}"


def _typed(command: Command) -> str:
    """Read the fields by every schema that they could be meant for; write them, and read again."""
    if command.code not in HEADERS:
        return "unknown code"
    schemas = HEADERS[RequestCode(command.code)]
    return " ".join(
        _by_schema(schema, command) for schema in (schemas.request, schemas.response) if schema
    )


def _by_schema(schema: type[Header], command: Command) -> str:
    typed = outcome(lambda: schema.decode(command.fields))
    if typed.value is not None and schema.decode(typed.value.encode()) != typed.value:
        raise DisagreementError(f"{typed.value!r} is not what it is when written and read")
    return f"{schema.__name__} {typed.kind}"


def record(data: bytes) -> str:
    """Take the bytes for a range of the commit log, and for one of a consume queue."""
    end = len(data)
    said = struct.unpack_from(">q", data, 28)[0] if end >= 36 else 0
    kinds = [_walked(data, -1), _walked(data, max(said, 0))]
    kinds += [_built(data, verify_crc=True), _built(data, verify_crc=False)]
    for each in outcome(lambda: decode_records(data)).value or []:
        kinds.append(_typed_record(each))
    hashes = [struct.unpack_from(">i", data, 16)[0]] if end >= UNIT_BYTES else []
    twins(
        "gather_records",
        lambda k: k.gather_records(data, 0, end, data, 0, end, 0, hashes, 100, 1 << 20),
    )
    return " ".join(kinds)


def _typed_record(each: MessageRecord) -> str:
    """Make the model's value of a record, write it and read it; open its body."""
    message = outcome(each.to_message)
    if message.value is not None:
        value = message.value
        written = outcome(lambda: encode_message(value)).value
        if written is not None:
            before, after = asdict(value), asdict(decode_records(written)[0].to_message())
            # A separator at the end of the properties, and entries that do not count, are dropped.
            differ = {name for name in before if before[name] != after[name]} - {"stored_bytes"}
            if differ:
                raise DisagreementError(f"written and read, another {differ}: {value!r}")
    return f"{message.kind} {outcome(each.plain_body).kind}"


def _walked(data: bytes, log_base: int) -> str:
    """Check the range as recovery does; `log_base` is where it is said to lie."""
    end = len(data)
    scan = twins("scan_records", lambda k: k.scan_records(data, 0, end, log_base, True, 100))
    twins("find_record", lambda k: k.find_record(data, 0, end, log_base))
    return f"{scan.kind} {scan.value.stop if scan.value else ''}"


def _built(data: bytes, *, verify_crc: bool) -> str:
    """Build from the range what dispatch and Spark build; read its first record, and write it."""
    end, crc = len(data), verify_crc
    twins("dispatch", lambda k: k.dispatch_records(data, 0, end, -1, crc, 100, DELAYS_MS))
    twins(
        "columns", lambda k: k.scan_columns(data, 0, end, -1, crc, COLUMN_NAMES, (), 100, 1 << 20)
    )
    read = twins("decode_record", lambda k: k.decode_record(data, 0, end, crc))
    if read.value is not None:
        stored, behind = read.value
        again = twins("encode_record", lambda k: _written_and_read(k, stored, behind)).value
        if again not in {None, stored}:
            raise DisagreementError(f"{stored!r} is {again!r} when written and read")
    return read.kind


def _written_and_read(kernel: Kernel, stored: Record, size: int) -> Record:
    """Write a record into a buffer with room for it, and read it."""
    target = bytearray(size + 8)
    end = kernel.encode_record(target, 0, len(target), stored)
    return kernel.decode_record(target, 0, end, True)[0]


def body(data: bytes) -> str:
    """Read one JSON or text body, whose kind the first two bytes choose; write it, and read it."""
    codec = CODECS[int.from_bytes(data[:2]) % len(CODECS)]
    raw = data[2:]
    tree = outcome(lambda: fastjson.parse(raw))
    if not tree.error:
        # Nulls are not written, so what is read again may be less: but only once.
        once = outcome(lambda: fastjson.parse(fastjson.encode(tree.value)))
        _same("JSON", once, outcome(lambda: fastjson.parse(fastjson.encode(once.value))))
    read = outcome(lambda: codec.decode(raw))
    if not read.error:
        _same(repr(codec), read, outcome(lambda: codec.decode(codec.encode(read.value))))
    return f"{codec!r} {read.kind}"


def _same(what: str, read: Outcome[object], again: Outcome[object]) -> None:
    """Compare, also by what is shown: not-a-number is like itself then.

    A value that cannot be written need not be read again.
    """
    if (
        "InvalidValue" in f"{read.error} {again.error}"
        or read == again
        or repr(read) == repr(again)
    ):
        return
    raise DisagreementError(f"{what}: {read!r:.1000} is {again!r:.1000} when written and read")


def properties(data: bytes) -> str:
    """Take the bytes for a property string: as text, as a stored message's, as a producer's."""
    data = data[:PROPERTIES_BYTES_MAX]  # a longer one is refused, and there is no more to see
    read = decode_properties(data)
    if decode_properties(data.decode(errors="replace")) != read:
        raise DisagreementError("properties differ between bytes and text")
    written = outcome(lambda: encode_properties(read))
    if written.value is not None and decode_properties(written.value) != read:
        raise DisagreementError(f"{read!r} is {written.value!r} when written")
    kinds = [written.kind]
    for topic in (b"T", SCHEDULE_TOPIC):
        stored = RECORD._replace(topic=topic, properties=data)
        raw = bytearray(len(stored.properties) + 256)
        end = kernel.encode_record(raw, 0, len(raw), stored)
        kinds.append(_built(bytes(raw[:end]), verify_crc=True))
    sent = outcome(lambda: encode_frame(_send(RequestCode.SEND_MESSAGE_V2, data, b"body")))
    if sent.value is not None:
        kinds.append(_lane_kind(sent.value, [TOPIC]))
    return " ".join(kinds)


def batch(data: bytes) -> str:
    """Take the bytes for the body of a batch: the general codec, and the fast lane beside it."""
    read = outcome(lambda: decode_batch(data))
    messages = read.value or []
    if messages:
        agree("batch", [read, outcome(lambda: decode_batch(encode_batch(messages)))])
    sent = encode_frame(_send(RequestCode.SEND_BATCH_MESSAGE, b"UNIQ_KEY\x01k", data))
    lane = twins("SendLane.append", lambda k: _stored(k, sent, [TOPIC]))
    run = lane.value[0] if lane.value else None
    if run is not None and run.stop != LaneStop.LOG_FULL:
        plain = bool(messages) and all(message.body for message in messages)
        # Stored properties with a NUL are for policy; entries that do not count may have one.
        unsure = plain and run.messages == 0 and any(b"\0" in one.properties for one in messages)
        if run.messages != (len(messages) if plain else 0) and not unsure:
            raise DisagreementError(f"{len(messages)} messages were read, {run.messages} stored")
    return f"{read.kind} {min(len(messages), 3)} {run.stop if run else lane.kind}"


def _send(code: RequestCode, text: bytes, body: bytes) -> Command:
    """Return an ordinary send with these properties and this body."""
    is_batch = code == RequestCode.SEND_BATCH_MESSAGE
    values = ("group", TOPIC.decode(), "TBW102", "4", "1", "0", str(NOW_MS), "0")
    names = dict(zip("abcdefgh", values, strict=True))
    names |= {"i": text.decode(errors="replace"), "m": "true" if is_batch else "false"}
    return Command.request(code, 7, names, body, serialize_type=BINARY_HEADER)


def _lane_kind(data: bytes, topics: list[bytes]) -> str:
    lane = twins("SendLane.append", lambda k: _stored(k, data, topics))
    return str(lane.value[0].stop) if lane.value else lane.kind


TARGETS: Final = {
    "frame": frame,
    "header": header,
    "body": body,
    "properties": properties,
    "batch": batch,
    "record": record,
    **services.TARGETS,
    **commands.TARGETS,
    **files.TARGETS,
    **http.TARGETS,
    **tls.TARGETS,
}
