"""Messages: found by id, key or time; one of them with its body, its life, and sent again."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Final

from gantrymq.admin import explaining, messages
from gantrymq.admin.reading import Breaths
from gantrymq.admin.search import Condition, search
from gantrymq.admin.sending import resend
from gantrymq.dashboard.calls import Download, Endpoint, plain, problem_data
from gantrymq.errors import InvalidValue
from gantrymq.model.names import TRACE_TOPIC
from gantrymq.model.roles import Role
from gantrymq.wire.sysflag import compression

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.admin.explaining import MessageLife
    from gantrymq.admin.messages import Found
    from gantrymq.dashboard.calls import Call
    from gantrymq.wire.record import MessageRecord

BODY_BYTES_MAX: Final = 64 * 1024
"""Of a body that a page shows; a larger one is cut there, and can be had as a file."""
PREVIEW_CHARACTERS: Final = 120
FOUND_MAX: Final = 50
LOOKED_AT_MAX: Final = 20_000
LOOKED_AT_BYTES_MAX: Final = 32 << 20
MEASURED_BYTES_MAX: Final = 256 * 1024
"""Of a body in a list: to say how large a compressed one is, it has to be decompressed."""


async def rows_of(
    call: Call, found: list[Found], make: Callable[[Found], dict[str, object]]
) -> list[dict[str, object]]:
    """Return messages as lists have them; others have the loop in between."""
    rows, breaths = [], Breaths(call.session.clock)
    for each in found:
        rows.append(make(each))
        await breaths.take()
    return rows


def row_data(found: Found) -> dict[str, object]:
    """Return a message as lists have it; a large compressed body is `isLarger` than it says."""
    record = found.record
    body = messages.readable_start(record, MEASURED_BYTES_MAX)
    is_packed = compression(record.raw.sys_flag) is not None
    size = len(body) if is_packed else len(record.body)
    return {
        "id": record.unique_key or record.offset_id, "offsetId": record.offset_id,
        "topic": record.topic, "broker": found.broker_name, "queue": record.queue_id,
        "offset": record.queue_offset, "storedMs": record.raw.store_timestamp,
        "tag": record.tags or "", "keys": list(record.keys), "bytes": size,
        "isLarger": is_packed and size >= MEASURED_BYTES_MAX,
        "preview": preview_of(body), "retries": record.raw.reconsume_times,
    }  # fmt: skip


def preview_of(body: bytes) -> str:
    """Return the beginning of a body as one line of text; what is no text is marked."""
    text = body[: PREVIEW_CHARACTERS * 4].decode(errors="replace")[:PREVIEW_CHARACTERS]
    return "".join(each if each.isprintable() else "·" for each in text)


def condition_of(call: Call) -> Condition:
    """Return what a message must have."""
    return Condition(
        key=call.maybe("key"), tag=call.maybe("tag"), body=call.maybe("body"),
        topic=call.maybe("from"),
    )  # fmt: skip


async def find(call: Call) -> object:
    """Return messages of a topic: by key through the index, else by reading a span of time."""
    topic, key = call.text("topic"), call.maybe("key")
    begin_ms, end_ms = call.maybe_number("beginMs"), call.maybe_number("endMs")
    if begin_ms is not None and end_ms is not None and end_ms < begin_ms:
        raise InvalidValue("the span of time ends before it begins")
    if key is not None:
        answers = await messages.query(
            call.session, topic, key, begin_ms=begin_ms or 0, end_ms=end_ms or messages.FOREVER_MS
        )
        found = messages.found_in(answers)
        return {
            "rows": await rows_of(call, found, row_data), "lookedAt": len(found),
            "total": len(found), "next": None,
            "isCut": len(found) >= messages.KEY_MATCHES_MAX,
            **problem_data(answers.complaints),
        }  # fmt: skip
    told = await search(
        call.session, topic, condition_of(call), begin_ms=begin_ms, end_ms=end_ms,
        position=call.maybe("position"), looked_at_max=LOOKED_AT_MAX,
        bytes_max=LOOKED_AT_BYTES_MAX,
        found_max=call.number("rows", FOUND_MAX, least=1, most=200),
    )  # fmt: skip
    return {
        "rows": await rows_of(call, told.found, row_data), "lookedAt": told.looked_at,
        "total": told.total, "next": told.next_position, "isCut": told.next_position is not None,
        **problem_data([]),
    }  # fmt: skip


async def show(call: Call) -> object:
    """Return a message by either of its ids, with its body."""
    found = await _found(call)
    record = found.record
    body = await _whole_body(call, record)
    shown = body[:BODY_BYTES_MAX]
    return {
        **row_data(found), "bytes": len(body), "isLarger": False,
        "uniqueKey": record.unique_key or "", "properties": record.properties,
        "bornMs": record.raw.born_timestamp, "bornHost": record.born_host.text,
        "storeHost": record.store_host.text, "logOffset": record.log_offset,
        "storedBytes": record.stored_bytes, "isCut": len(shown) < len(body),
        "body": base64.b64encode(shown).decode(),
    }  # fmt: skip


async def _whole_body(call: Call, record: MessageRecord) -> bytes:
    """Return all of a body; a few bytes can become many, so few at once and on a thread."""
    async with call.session.searches:
        return await asyncio.to_thread(messages.readable_body, record)


async def _found(call: Call) -> Found:
    return await explaining.find_message(call.session, call.text("id"), call.maybe("topic"))


async def life(call: Call) -> object:
    """Return what became of a message: who had it, copies, and what clients traced."""
    told: MessageLife = await explaining.message_life(
        call.session, call.text("id"), call.maybe("topic")
    )
    return {
        "tracks": [
            {"group": each.group, "kind": each.kind.value, "why": each.why or ""}
            for each in told.tracks
        ],
        "copies": [
            {"group": each.group, "kind": each.kind, **row_data(each.found)} for each in told.copies
        ],
        "traces": [each._asdict() for each in told.traces],
        "traceTopic": TRACE_TOPIC,
        **problem_data(told.problems),
    }


async def body_file(call: Call) -> object:
    """Return a body as it was sent, as a file."""
    record: MessageRecord = (await _found(call)).record
    return Download(await _whole_body(call, record), f"{record.unique_key or record.offset_id}.bin")


async def send_again(call: Call) -> object:
    """Send a copy of a message to its topic, or have one member of a group take it now."""
    found = await _found(call)
    group, client = call.maybe("group"), call.maybe("client")
    call.target = f"message {plain(found.record.unique_key or found.record.offset_id)}"
    if group is None:
        result = await resend(call.session, found.record)
        call.detail = f"to topic {result.queue.topic} as {result.message_id}"
        return {"id": result.message_id, "topic": result.queue.topic, "status": result.status.name}
    if client is None:
        raise InvalidValue("name the member of the group that is to take it")
    call.detail = f"to {client} of group {group}"
    address = await explaining.broker_address(call.session, found)
    taken = await messages.consume_directly(call.session, address, group, client, found.record)
    said = taken.consume_result.name if taken.consume_result is not None else "UNKNOWN"
    return {"result": said, "remark": taken.remark or "", "tookMs": taken.spent_time_mills}


ENDPOINTS: Final = (
    Endpoint("GET", "/api/messages", Role.VIEWER, find),
    Endpoint("GET", "/api/message", Role.VIEWER, show),
    Endpoint("GET", "/api/message/life", Role.VIEWER, life),
    Endpoint("GET", "/api/message/body", Role.VIEWER, body_file),
    Endpoint("POST", "/api/message/resend", Role.OPERATOR, send_again, "send a message again",
             about=("id", "topic", "group", "client")),
)  # fmt: skip
