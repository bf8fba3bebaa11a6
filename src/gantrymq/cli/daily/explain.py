"""`gantrymq explain`: the whole life of a message, the whole state of a group, on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.admin import explaining
from gantrymq.cli.mqadmin.groups import connection_rows, group_data
from gantrymq.cli.mqadmin.messages import message_data, message_lines, track_table
from gantrymq.cli.output import Answer, Cell, Table, moment, span

if TYPE_CHECKING:
    from gantrymq.admin.explaining import GroupLife
    from gantrymq.admin.session import Session
    from gantrymq.admin.traces import Trace
    from gantrymq.cli.given import Given


def trace_table(found: list[Trace]) -> Table:
    """Return what clients traced."""
    return Table(("WHEN", "WHAT", "GROUP", "CLIENT", "TOOK MS", "HOW", "RETRY"), [
        (moment(each.time_ms), each.kind, each.group, each.client_host, each.cost_ms,
         "well" if each.is_success else "failed", each.retry_times)
        for each in found
    ])  # fmt: skip


async def message(session: Session, given: Given) -> Answer:
    """Show where a message is, who had it, why it was retried, and what clients traced."""
    life = await explaining.message_life(session, given.text("ID"), given.maybe("topic"))
    tracks = track_table(life.tracks)
    copies = Table(("GROUP", "AS", "QUEUE", "STORED", "RETRIES"), [
        (each.group, each.kind,
         f"{each.found.record.topic}@{each.found.broker_name}:{each.found.record.queue_id}",
         moment(each.found.record.raw.store_timestamp), each.found.record.raw.reconsume_times)
        for each in life.copies
    ])  # fmt: skip
    traces = trace_table(life.traces)
    record = life.found.record
    parts: list[Table | str] = [
        f"STORED on {life.found.broker_name or record.store_host.text}",
        *message_lines(record), "", "DELIVERED",
        tracks if life.tracks else "  no group reads this topic", "", "RETRIED",
        copies if life.copies else "  never sent back by a group that reads it", "", "TRACED",
        traces if life.traces else "  its clients did not trace it",
    ]  # fmt: skip
    data = {
        "stored": message_data(record, life.found.broker_name), "delivered": tracks.data(),
        "retried": copies.data(), "traced": traces.data(),
    }  # fmt: skip
    return Answer(parts, data, life.problems)


def _progress(life: GroupLife, now_ms: int) -> Table:
    rows = []
    for each in life.progress.queues if life.progress is not None else []:
        name = explaining.queue_key(each)
        oldest = life.waiting.get(name)
        late_s = 0.0 if not each.behind or oldest is None else max(now_ms - oldest, 0) / 1000
        late = Cell(late_s, span(late_s) if late_s else "")
        owner = life.owners.get(name, "nobody")
        rows.append((name, each.broker_offset, each.consumer_offset, each.behind, late, owner))
    heads = ("QUEUE", "NEXT", "IS AT", "BEHIND", "OLDEST WAITS", "READ BY")
    return Table(heads, rows)


async def group(session: Session, given: Given) -> Answer:
    """Show everything about a group."""
    life = await explaining.group_life(session, given.text("GROUP"))
    progress = _progress(life, session.clock.now_ms())
    members = Table(
        ("CLIENT", "ADDRESS", "LANGUAGE", "VERSION"),
        connection_rows(life.members.connections) if life.members else [],
    )
    taken = Table(("TOPIC", "TAKES"), [
        (topic, each.expression)
        for topic, each in (life.members.told.subscription_table if life.members else {}).items()
    ])  # fmt: skip
    findings = Table(("VERDICT", "WHAT", "FOUND", "DO"), [tuple(each) for each in life.findings])
    behind = life.progress.behind if life.progress is not None else 0
    settings = {name: group_data(each) for name, each in life.settings.items()}
    parts: list[Table | str] = [
        (f"GROUP {life.group}: {len(life.members.connections) if life.members else 0} members,"
        f" {behind} messages behind, {life.retries} retries stored,"
        f" {life.dead_letters} dead letters"),
        "", "MEMBERS", members if life.members else "  nobody is online", "", "SUBSCRIPTIONS",
        taken if life.members else "  known when somebody is online", "", "PROGRESS", progress,
        "", "SETTINGS",
        *(f"  {name}: " + ", ".join(f"{k}={v}" for k, v in each.items())
          for name, each in settings.items()),
        "", findings if life.findings else "nothing is wrong with it",
    ]  # fmt: skip
    data = {
        "group": life.group, "behind": behind, "retries": life.retries,
        "deadLetters": life.dead_letters, "members": members.data(),
        "subscriptions": taken.data(), "progress": progress.data(), "settings": settings,
        "findings": findings.data(),
    }  # fmt: skip
    return Answer(parts, data, life.problems)
