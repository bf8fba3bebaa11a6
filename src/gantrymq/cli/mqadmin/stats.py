"""`statsAll`: rates of topics and their groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.admin import brokers, groups, topics
from gantrymq.cli.output import Answer, Cell, Table
from gantrymq.model.names import DLQ_PREFIX, RETRY_PREFIX
from gantrymq.wire.response_errors import ResponseError

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given

HEADS = (
    "#Topic", "#Consumer Group", "#Accumulation", "#InTPS", "#OutTPS", "#InMsg24Hour",
    "#OutMsg24Hour",
)  # fmt: skip


async def _rate(session: Session, addresses: list[str], name: str, key: str) -> tuple[float, int]:
    """Return a counter's rate of the last minute and its sum of the last day, over brokers."""
    tps, total = 0.0, 0
    for address in addresses:
        found = await brokers.counter(session, address, name, key)
        if found is not None:
            tps += found.stats_minute.tps
            # As Apache does: the day's sum is there once an hour has passed.
            total += found.stats_day.sum or found.stats_hour.sum or found.stats_minute.sum
    return tps, total


async def _behind(session: Session, group: str, topic: str) -> int | None:
    try:
        return (await groups.progress(session, group, topic)).behind
    except ResponseError:
        return None


async def stats_all(session: Session, given: Given) -> Answer:
    """Say how fast topics are written and read, and by whom."""
    wanted, active = given.maybe("topic"), given.yes("activeTopic")
    names = [
        name
        for name in await topics.topic_names(session)
        if (wanted is None and not name.startswith((RETRY_PREFIX, DLQ_PREFIX))) or name == wanted
    ]

    async def look(topic: str) -> list[tuple[object, ...]]:
        addresses = list((await session.masters_of_topic(topic)).values())
        came, came_day = await _rate(session, addresses, "TOPIC_PUT_NUMS", topic)
        told = await topics.consumers_of(session, topic)
        told.check()
        rows: list[tuple[object, ...]] = []
        for group in sorted({each for found in told.found.values() for each in found}):
            went, went_day = await _rate(session, addresses, "GROUP_GET_NUMS", f"{topic}@{group}")
            behind = await _behind(session, group, topic)
            if not active or came_day or went_day:
                rows.append((topic, group, behind, _tps(came), _tps(went), came_day, went_day))
        if not rows and (not active or came_day):
            rows.append(
                (topic, "", 0, _tps(came), Cell(None, ""), came_day, Cell(None, "NO_CONSUMER"))
            )
        return rows

    answers = await session.gather(names, look)
    rows = [row for found in answers.found.values() for row in found]
    return Answer([Table(HEADS, rows)], problems=answers.complaints)


def _tps(value: float) -> Cell:
    return Cell(value, f"{value:.2f}")
