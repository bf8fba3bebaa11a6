"""`gantrymq dlq`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.admin import topics
from gantrymq.admin.reading import dead_letter_queues
from gantrymq.admin.redrive_plan import TIMES
from gantrymq.admin.search import search
from gantrymq.cli.daily.messages import condition_of, message_table
from gantrymq.cli.mqadmin.messages import message_data
from gantrymq.cli.output import Answer, Table, moment
from gantrymq.model.names import DLQ_PREFIX, check_group, dlq_topic

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given

SHOWN_MAX = 50


async def list_groups(session: Session, _given: Given) -> Answer:
    """List the groups that have dead letters."""
    names = [name for name in await topics.topic_names(session) if name.startswith(DLQ_PREFIX)]

    silent: list[str] = []

    async def look(name: str) -> tuple[object, ...]:
        status = await topics.topic_status(session, name)
        silent.extend(status.answers.complaints)
        count = sum(each.max_offset - each.min_offset for each in status.queues)
        last = max((each.updated_ms for each in status.queues), default=0)
        return name.removeprefix(DLQ_PREFIX), count, moment(last, "never")

    answers = await session.gather(names, look)
    heads = ("GROUP", "DEAD LETTERS", "LAST ONE")
    problems = [*dict.fromkeys(silent), *answers.complaints]
    return Answer([Table(heads, list(answers.found.values()))], problems=problems)


async def show(session: Session, given: Given) -> Answer:
    """Show a group's dead letters: where they came from, and how often they were tried."""
    group = check_group(given.text("GROUP"))
    await dead_letter_queues(session, group)
    condition = condition_of(given)
    told = await search(
        session, dlq_topic(group), condition, found_max=given.number("max", SHOWN_MAX)
    )
    table = message_table(told.found)
    rows = [
        (*row, record.properties.get("RETRY_TOPIC"), record.raw.reconsume_times,
         record.properties.get(TIMES, "0"))
        for row, (record, _broker) in zip(list(table.rows), told.found, strict=True)
    ]  # fmt: skip
    heads = (*table.heads, "CAME FROM", "RETRIES", "REDRIVEN")
    data = [message_data(each.record, each.broker_name) for each in told.found]
    said = f"{len(rows)} shown, {told.looked_at} of {told.total} looked at"
    return Answer([Table(heads, rows), said], data)
