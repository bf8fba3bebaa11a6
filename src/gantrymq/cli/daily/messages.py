"""`gantrymq message`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from gantrymq.admin import explaining, messages
from gantrymq.admin.search import FOUND_MAX, LOOKED_AT_MAX, Condition
from gantrymq.admin.search import search as search_topic
from gantrymq.cli.mqadmin.messages import message_data, message_lines, shown_body, track_table
from gantrymq.cli.output import Answer, Table, moment
from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from gantrymq.admin.messages import Found
    from gantrymq.admin.search import Search
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given

HEADS = ("ID", "QUEUE", "OFFSET", "STORED", "TAG", "KEYS", "BODY")
BODY_SHOWN = 60


def properties_of(given: Given) -> dict[str, str]:
    """Return what `--property NAME=VALUE` says.

    Raises:
        InvalidValue: it has another form.
    """
    found = {}
    for pair in given.many("property"):
        name, mark, value = pair.partition("=")
        if not (name and mark):
            raise InvalidValue(f"--property is {pair!r}: give NAME=VALUE")
        found[name] = value
    return found


def condition_of(given: Given) -> Condition:
    """Return what a message must have."""
    return Condition(
        key=given.maybe("key"),
        tag=given.maybe("tag"),
        properties=properties_of(given),
        body=given.raw("body"),
        topic=given.maybe("topic"),
    )


def message_table(found: list[Found]) -> Table:
    """Return messages, one in a line."""
    return Table(HEADS, [
        (
            each.record.unique_key or each.record.offset_id,
            f"{each.broker_name}:{each.record.queue_id}", int(each.record.queue_offset),
            moment(each.record.raw.store_timestamp), each.record.tags,
            " ".join(each.record.keys), shown_body(each.record, BODY_SHOWN).replace("\n", " "),
        )
        for each in found
    ])  # fmt: skip


async def get(session: Session, given: Given) -> Answer:
    """Show a message and what became of it in each group."""
    found = await explaining.find_message(session, given.text("ID"), given.maybe("topic"))
    tracks = track_table(await messages.tracks(session, found.record))
    data = {**message_data(found.record, found.broker_name), "tracks": tracks.data()}
    return Answer([*message_lines(found.record), "", tracks], data)


async def search(session: Session, given: Given) -> Answer:
    """Look for messages; by id or key through the index, else by reading, within a bound."""
    topic, condition = given.text("TOPIC"), condition_of(given)
    begin_ms, end_ms = given.time("from"), given.time("until")
    by_id = given.maybe("id")
    if by_id is not None or (condition.key is not None and not given.maybe("resume")):
        return await _by_index(session, topic, condition, by_id, begin_ms, end_ms)
    watch = _Bar()
    told = await search_topic(
        session, topic, condition, begin_ms=begin_ms, end_ms=end_ms,
        position=given.maybe("resume"),
        looked_at_max=given.number("look-at", LOOKED_AT_MAX),
        found_max=given.number("max", FOUND_MAX), watch=watch,
    )  # fmt: skip
    watch.end()
    said = f"{len(told.found)} found, {told.looked_at} of {told.total} messages looked at"
    parts: list[Table | str] = [message_table(told.found), said]
    if told.next_position is not None:
        parts.append(f"there is more: go on with --resume {told.next_position}")
    data = {
        "messages": [message_data(each.record, each.broker_name) for each in told.found],
        "lookedAt": told.looked_at, "inWindow": told.total, "resume": told.next_position,
    }  # fmt: skip
    return Answer(parts, data)


async def _by_index(
    session: Session, topic: str, condition: Condition, by_id: str | None,
    begin_ms: int | None, end_ms: int | None,
) -> Answer:  # fmt: skip
    if by_id is not None:
        found = [await explaining.find_message(session, by_id, topic)]
        complaints: list[str] = []
    else:
        answers = await messages.query(
            session, topic, condition.key or "", begin_ms=begin_ms or 0,
            end_ms=end_ms or messages.FOREVER_MS,
        )  # fmt: skip
        found, complaints = messages.found_in(answers), answers.complaints
    found = [each for each in found if condition.holds(each.record)]
    data = {"messages": [message_data(each.record, each.broker_name) for each in found],
            "resume": None}  # fmt: skip
    return Answer([message_table(found), f"{len(found)} found, by the index"], data, complaints)


class _Bar:
    """Says on a terminal how far a search is, and nothing anywhere else."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()

    def __call__(self, told: Search) -> None:
        if self._is_shown:
            text = f"\r{told.looked_at} of {told.total} looked at, {len(told.found)} found"
            sys.stderr.write(text)
            sys.stderr.flush()

    def end(self) -> None:
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")


async def send(session: Session, given: Given) -> Answer:
    """Send a message."""
    from gantrymq.admin.sending import producer_for  # noqa: PLC0415

    async with producer_for(session) as producer:
        sent = await producer.send(
            given.text("TOPIC"),
            os.fsencode(given.raw("BODY") or ""),  # the bytes as they were typed
            tags=given.maybe("tag"),
            keys=given.maybe("key") or (),
            properties=properties_of(given) or None,
            delay_level=given.number("delay", 0),
        )
    data = {
        "messageId": sent.message_id, "offsetId": sent.offset_id, "status": sent.status.name,
        "queue": f"{sent.queue.broker_name}:{sent.queue.queue_id}", "offset": sent.offset,
    }  # fmt: skip
    return Answer([f"{data['status']} {sent.message_id} in {data['queue']} at {sent.offset}"], data)


async def resend(session: Session, given: Given) -> Answer:
    """Send a message once more."""
    from gantrymq.admin.sending import resend as send_again  # noqa: PLC0415

    found = await explaining.find_message(session, given.text("ID"), given.maybe("topic"))
    sent = await send_again(session, found.record)
    data = {"messageId": sent.message_id, "status": sent.status.name}
    return Answer([f"{sent.status.name} {sent.message_id}"], data)


async def trace(session: Session, given: Given) -> Answer:
    """Show what clients traced of a message."""
    from gantrymq.admin.traces import traces_of  # noqa: PLC0415
    from gantrymq.cli.daily.explain import trace_table  # noqa: PLC0415
    from gantrymq.model.names import TRACE_TOPIC  # noqa: PLC0415

    topic = given.maybe("trace-topic") or TRACE_TOPIC
    problems: list[str] = []
    found = await traces_of(session, given.text("ID"), topic, problems=problems)
    said = f"{topic} has no trace of it" if not problems else "nothing was found of it"
    return Answer([trace_table(found) if found else said], trace_table(found).data(), problems)
