"""`gantrymq dlq`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gantrymq.admin import redrive as redriving
from gantrymq.admin import topics
from gantrymq.admin.search import search
from gantrymq.cli.daily.messages import condition_of, message_table
from gantrymq.cli.mqadmin.messages import message_data
from gantrymq.cli.output import Answer, Table, moment
from gantrymq.errors import InvalidValue
from gantrymq.model.names import DLQ_PREFIX, check_group, dlq_topic

if TYPE_CHECKING:
    from gantrymq.admin.redrive import Progress
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
    await redriving.dead_letter_queues(session, group)
    condition = condition_of(given)
    told = await search(
        session, dlq_topic(group), condition, found_max=given.number("max", SHOWN_MAX)
    )
    table = message_table(told.found)
    rows = [
        (*row, record.properties.get("RETRY_TOPIC"), record.raw.reconsume_times,
         record.properties.get(redriving.TIMES, "0"))
        for row, (record, _broker) in zip(list(table.rows), told.found, strict=True)
    ]  # fmt: skip
    heads = (*table.heads, "CAME FROM", "RETRIES", "REDRIVEN")
    data = [message_data(each.record, each.broker_name) for each in told.found]
    said = f"{len(rows)} shown, {told.looked_at} of {told.total} looked at"
    return Answer([Table(heads, rows), said], data)


class _Bar:
    """Says on a terminal how far a job is, and nothing anywhere else."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()

    def __call__(self, told: Progress) -> None:
        if self._is_shown:
            sys.stderr.write(f"\r{told.done} of {told.total}: {_counts(told)} ")
            sys.stderr.flush()

    def end(self) -> None:
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")


def _counts(told: Progress) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(told.outcomes.items())) or "none"


async def redrive(session: Session, given: Given) -> Answer:
    """Send dead letters again, as a job."""
    group = check_group(given.text("GROUP"))
    condition = condition_of(given)
    order = redriving.Order(
        group=group,
        to=given.maybe("to") or redriving.TO_GROUP,
        condition=None if condition.is_empty else condition,
        rate=_positive(given, "rate", 0),
        loops_max=_positive(given, "loops", 3),
        count_max=_positive(given, "count", 0),
        dry_run=given.yes("dry-run"),
    )
    safe = "".join(each if each.isalnum() or each in "-_" else "_" for each in group)
    path = Path(given.maybe("job") or f"redrive-{safe}.jsonl")
    watch = _Bar()
    try:
        told = await redriving.run(session, order, None if order.dry_run else path, watch)
    finally:
        watch.end()
    rows = sorted(told.outcomes.items())
    data = {
        "group": group, "to": order.to, "total": told.total, "outcomes": dict(rows),
        "recovered": told.recovered, "dryRun": order.dry_run,
        "job": None if order.dry_run else str(path),
    }  # fmt: skip
    lines = [f"{told.done} of {told.total} dead letters have an outcome"]
    if told.recovered:
        lines.append(f"{told.recovered} had been sent by a run that was ended: not sent again")
    if not order.dry_run:
        lines.append(f"each outcome is in {path}; run it again to go on")
    problems = [f"not sent: {example}" for example in told.examples]
    return Answer([Table(("OUTCOME", "MESSAGES"), rows), *lines], data, problems)


def _positive(given: Given, name: str, default: int) -> int:
    value = given.number(name, default)
    if value < 0:
        raise InvalidValue(f"--{name} is {value}: give 0 or more")
    return value
