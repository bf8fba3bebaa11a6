"""Sub-commands that find messages."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from gantrymq.admin import explaining, messages
from gantrymq.cli.output import Answer, Cell, Table, moment
from gantrymq.errors import InvalidValue
from gantrymq.model.message import OffsetId
from gantrymq.wire.message_id import UniqueKey
from gantrymq.wire.response_errors import NoMessage

if TYPE_CHECKING:
    from gantrymq.admin.messages import Found, Track
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given
    from gantrymq.wire.record import MessageRecord

BODY_SHOWN_MAX = 4096


def shown_body(record: MessageRecord, characters_max: int = BODY_SHOWN_MAX) -> str:
    """Return a body as text, or as hexadecimal where it is none."""
    body = messages.readable_body(record)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = "0x" + body[: characters_max // 2].hex()
    return text if len(text) <= characters_max else f"{text[:characters_max]}… ({len(body)} bytes)"


def message_data(record: MessageRecord, broker_name: str = "") -> dict[str, object]:
    """Return a message for JSON; a body that is no text is Base64."""
    body = messages.readable_body(record)
    data: dict[str, object] = {
        "messageId": record.unique_key or record.offset_id,
        "offsetId": record.offset_id,
        "topic": record.topic,
        "brokerName": broker_name or None,
        "tags": record.tags,
        "keys": list(record.keys),
        "queueId": int(record.queue_id),
        "queueOffset": int(record.queue_offset),
        "commitLogOffset": int(record.log_offset),
        "reconsumeTimes": record.raw.reconsume_times,
        "bornTimestamp": record.raw.born_timestamp,
        "storeTimestamp": record.raw.store_timestamp,
        "bornHost": record.born_host.text,
        "storeHost": record.store_host.text,
        "systemFlag": record.raw.sys_flag,
        "properties": dict(record.properties),
    }
    try:
        data["body"] = body.decode()
    except UnicodeDecodeError:
        data["bodyBase64"] = base64.b64encode(body).decode()
    return data


def message_lines(record: MessageRecord) -> list[str]:
    """Return a message as mqadmin shows it; the body follows, where mqadmin writes a file."""
    properties = ", ".join(f"{name}={value}" for name, value in record.properties.items())
    pairs = (
        ("OffsetID", record.offset_id),
        ("Topic", record.topic),
        ("Tags", f"[{record.tags if record.tags is not None else 'null'}]"),
        ("Keys", f"[{' '.join(record.keys) or 'null'}]"),
        ("Queue ID", record.queue_id),
        ("Queue Offset", record.queue_offset),
        ("CommitLog Offset", record.log_offset),
        ("Reconsume Times", record.raw.reconsume_times),
        ("Born Timestamp", moment(record.raw.born_timestamp).text),
        ("Store Timestamp", moment(record.raw.store_timestamp).text),
        ("Born Host", record.born_host.text),
        ("Store Host", record.store_host.text),
        ("System Flag", record.raw.sys_flag),
        ("Properties", f"{{{properties}}}"),
        ("Message Body", shown_body(record)),
    )
    return [f"{name + ':':<20} {value}" for name, value in pairs]


def track_table(found: list[Track]) -> Table:
    """Return what became of a message, by group."""
    rows = [(each.group, each.kind.value, each.why) for each in found]
    return Table(("#Consumer Group", "#Track", "#Why"), rows)


async def _with_tracks(session: Session, found: Found) -> Answer:
    tracks = await messages.tracks(session, found.record)
    data = message_data(found.record, found.broker_name)
    table = track_table(tracks)
    data["tracks"] = table.data()
    parts: list[Table | str] = [*message_lines(found.record), ""]
    parts.append(table if tracks else "no group reads this topic")
    return Answer(parts, data)


async def _consume(session: Session, given: Given, record: MessageRecord) -> Answer:
    """Have a member take a message now."""
    group, client_id = given.text("consumerGroup"), given.text("clientId")
    address = await explaining.broker_address(session, messages.Found(record, ""))
    result = await messages.consume_directly(session, address, group, client_id, record)
    name = result.consume_result.name if result.consume_result is not None else "unknown"
    text = (
        f"ConsumeMessageDirectlyResult [order={str(result.order).lower()},"
        f" autoCommit={str(result.auto_commit).lower()}, consumeResult={name},"
        f" remark={result.remark}, spentTimeMills={result.spent_time_mills}]"
    )
    data = {"consumeResult": name, "remark": result.remark, "ms": result.spent_time_mills}
    return Answer([text], data, status=0 if name == "CR_SUCCESS" else 1)


async def query_msg_by_id(session: Session, given: Given) -> Answer:
    """Find a message by its offset id; or by its unique key, if a topic is given."""
    answers = []
    for offset_id in given.words("msgId"):
        record = await _by_either_id(session, offset_id, given.maybe("topic"))
        if given.maybe("consumerGroup") and given.maybe("clientId"):
            answers.append(await _consume(session, given, record))
        elif given.yes("sendMessage"):
            answers.append(await _resend(session, record))
        else:
            answers.append(await _with_tracks(session, messages.Found(record, "")))
    if len(answers) == 1:
        return answers[0]
    parts = [part for answer in answers for part in answer.parts]
    return Answer(parts, [answer.data for answer in answers])


async def _by_either_id(session: Session, text: str, topic: str | None) -> MessageRecord:
    try:
        return await messages.view(session, text, topic)
    except (InvalidValue, NoMessage):
        if topic is None:
            raise
    found = messages.surely_found_in(await messages.query(session, topic, text, unique=True))
    if not found:
        raise NoMessage(f"topic {topic} has no message with the id {text}")
    return found[0].record


async def _resend(session: Session, record: MessageRecord) -> Answer:
    from gantrymq.admin.sending import resend  # noqa: PLC0415

    sent = await resend(session, record)
    text = f"prepare resend msg. originalMsgId={record.offset_id} SendResult: {sent.status.name}"
    data = {"originalMessageId": record.offset_id, "messageId": sent.message_id,
            "status": sent.status.name}  # fmt: skip
    return Answer([text, f"messageId={sent.message_id}"], data)


async def query_msg_by_key(session: Session, given: Given) -> Answer:
    """List the messages with a key."""
    answers = await messages.query(
        session,
        given.text("topic"),
        given.text("msgKey"),
        count=given.number("maxNum", messages.KEY_MATCHES_MAX),
        begin_ms=given.time("beginTimestamp", 0) or 0,
        end_ms=given.time("endTimestamp", messages.FOREVER_MS) or 0,
        cluster=given.maybe("cluster"),
    )
    found = messages.found_in(answers)
    if not found and not answers.problems:
        raise NoMessage(f"topic {given.text('topic')} has no message with that key")
    rows = [
        (each.record.unique_key or each.record.offset_id, int(each.record.queue_id),
         int(each.record.queue_offset))
        for each in found
    ]  # fmt: skip
    table = Table(("#Message ID", "#QID", "#Offset"), rows)
    data = [message_data(each.record, each.broker_name) for each in found]
    return Answer([table], data, answers.complaints)


async def query_msg_by_unique_key(session: Session, given: Given) -> Answer:
    """Find a message by the id that its client gave it."""
    topic, key = given.text("topic"), given.text("msgId")
    cluster = given.maybe("cluster")
    answers = await messages.query(session, topic, key, unique=True, cluster=cluster)
    found = messages.surely_found_in(answers)
    if not found:
        raise NoMessage(f"topic {topic} has no message with the id {key}")
    if given.maybe("consumerGroup") and given.maybe("clientId"):
        return await _consume(session, given, found[0].record)
    if not given.yes("showAll"):
        return await _with_tracks(session, found[0])
    shown = [await _with_tracks(session, each) for each in found]
    return Answer([part for each in shown for part in each.parts], [each.data for each in shown])


async def query_msg_by_offset(session: Session, given: Given) -> Answer:
    """Find the message at a place."""
    found = await messages.at_offset(
        session,
        given.text("topic"),
        given.text("brokerName"),
        given.number("queueId"),
        given.number("offset"),
    )
    return await _with_tracks(session, found)


async def decode_message_id(session: Session, given: Given) -> Answer:
    """Say what is in a message id, of a broker or of a client."""
    text = given.text("messageId")
    key = UniqueKey.parse(text)
    now_ms = session.clock.now_ms()
    made = moment(key.made_at_ms(now_ms))
    place = OffsetId.parse(text)
    rows: list[tuple[object, ...]] = [
        ("as a client's id", f"ip {key.address}, pid {key.pid}", made, f"count {key.count}"),
        ("as an offset id", f"broker {place.host.text}", Cell(None, ""),
         f"log offset {place.log_offset}"),
    ]  # fmt: skip
    data = {
        "ip": key.address, "pid": key.pid, "timestamp": made.value, "count": key.count,
        "asOffsetId": {"broker": place.host.text, "logOffset": int(place.log_offset)},
    }  # fmt: skip
    return Answer([Table(("#Reading", "#Who", "#When", "#What"), rows)], data)
