"""`gantrymq dlq redrive`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gantrymq.admin import redrive as redriving
from gantrymq.cli.daily.messages import condition_of
from gantrymq.cli.output import Answer, Table
from gantrymq.errors import InvalidValue
from gantrymq.model.names import check_group

if TYPE_CHECKING:
    from gantrymq.admin.redrive import Progress
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given


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
