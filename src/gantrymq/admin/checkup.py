"""The way from a name server to a broker, walked step by step: what is well, what is wrong.

Each step says what it found and, if that is not well, what to do. A step that cannot be made
because one before it failed is left out; none stands for another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.admin import brokers as brokers_of
from gantrymq.admin import groups as groups_of
from gantrymq.admin import topics as topics_of
from gantrymq.errors import GantryError
from gantrymq.model.names import DLQ_PREFIX
from gantrymq.wire.bodies.route import CLUSTER_INFO
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.response_errors import ConsumerNotOnline

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.wire.bodies.route import ClusterInfo

GOOD: Final = "ok"
WARNING: Final = "warning"
WRONG: Final = "wrong"
DISK_RATIO_MAX: Final = 0.85
BEHIND_MAX: Final = 100_000
CLOCKS_MS_MAX: Final = 10_000
GROUPS_MAX: Final = 200


class Finding(NamedTuple):
    """One step."""

    verdict: str
    what: str
    told: str
    advice: str = ""


async def examine(session: Session) -> list[Finding]:
    """Walk the whole way."""
    findings: list[Finding] = []
    info = await _name_servers(session, findings)
    if info is None:
        return findings
    if not info.broker_addr_table:
        findings.append(Finding(
            WRONG, "brokers", "the name servers know no broker",
            "start one with this name server's address (-n), or see why it cannot reach it",
        ))  # fmt: skip
        return findings
    for name, broker in sorted(info.broker_addr_table.items()):
        if broker.master is None:
            findings.append(Finding(
                WRONG, f"broker {name}", "it has no master: nothing can be sent to it",
                "start its master, or let a slave take over",
            ))  # fmt: skip
        for broker_id, address in sorted(broker.addresses.items()):
            await _broker(session, name, broker_id, address, findings)
    await _names(session, findings)
    return findings


async def _name_servers(session: Session, findings: list[Finding]) -> ClusterInfo | None:
    answers = await session.tell_name_servers(RequestCode.GET_BROKER_CLUSTER_INFO)
    for address, error in answers.problems.items():
        findings.append(Finding(
            WRONG, f"name server {address}", str(error),
            "is it started, is the address right, does a firewall stand between?",
        ))  # fmt: skip
    tables = {address: CLUSTER_INFO.decode(reply.body) for address, reply in answers.found.items()}
    for address, table in tables.items():
        count = len(table.broker_addr_table)
        findings.append(Finding(GOOD, f"name server {address}", f"knows {count} broker groups"))
    known = {address: set(table.broker_addr_table) for address, table in tables.items()}
    if len({frozenset(names) for names in known.values()}) > 1:
        everyone = set().union(*known.values())
        told = "; ".join(
            f"{address} lacks {', '.join(sorted(everyone - names))}"
            for address, names in known.items()
            if everyone - names
        )
        findings.append(Finding(
            WRONG, "name servers", f"they do not know the same brokers: {told}",
            "give every broker all name servers (namesrvAddr)",
        ))  # fmt: skip
    return next(iter(tables.values()), None)


async def _broker(
    session: Session, name: str, broker_id: int, address: str, findings: list[Finding]
) -> None:
    what = f"broker {name}:{broker_id} at {address}"
    try:
        figures = await brokers_of.runtime_info(session, address)
        settings = await brokers_of.broker_settings(session, address)
    except GantryError as error:
        findings.append(Finding(
            WRONG, what, str(error),
            "the name server gives this address (brokerIP1): can it be reached from here?",
        ))  # fmt: skip
        return
    findings.append(Finding(GOOD, what, f"answers, {figures.get('brokerVersionDesc', '?')}"))
    for key in ("commitLogDiskRatio", "consumeQueueDiskRatio"):
        ratio = _number(figures.get(key))
        if ratio > DISK_RATIO_MAX:
            findings.append(Finding(
                WRONG, what, f"its disk is {ratio:.0%} full ({key})",
                "make room: lower fileReservedTime, or give it another disk",
            ))  # fmt: skip
    behind = _number(figures.get("dispatchBehindBytes"))
    if behind > 64 << 20:
        findings.append(Finding(
            WARNING, what, f"its queues are {behind / (1 << 20):.0f} MiB behind its log",
            "wait; if it does not shrink, its disk is too slow",
        ))  # fmt: skip
    failed = _number(figures.get("putMessageFailedTimes"))
    if failed:
        findings.append(Finding(
            WARNING, what, f"{failed:.0f} messages could not be stored since it started",
            "its log says why",
        ))  # fmt: skip
    if settings.get("autoCreateTopicEnable", "").lower() == "true":
        findings.append(Finding(
            WARNING, what, "a send to a misspelt topic makes that topic",
            "set autoCreateTopicEnable=false once the topics are made",
        ))  # fmt: skip


def _number(text: str | None) -> float:
    try:
        return float((text or "0").split()[0])
    except (ValueError, IndexError):
        return 0.0


async def _names(session: Session, findings: list[Finding]) -> None:
    """Look at topics and groups: who is behind, whose members disagree, what nobody takes."""
    names = await topics_of.topic_names(session)
    findings.append(Finding(GOOD, "topics", f"{len(names)} are known"))
    listed = groups_of.groups_in(names)
    if len(listed) > GROUPS_MAX:
        findings.append(Finding(
            WARNING, "groups", f"only the first {GROUPS_MAX} of {len(listed)} were looked at",
            "`gantrymq explain group NAME` looks at one",
        ))  # fmt: skip
    for group in listed[:GROUPS_MAX]:
        findings += await group_findings(session, group)
    for topic in names:
        if not topic.startswith(DLQ_PREFIX):
            continue
        group = topic.removeprefix(DLQ_PREFIX)
        try:
            status = await topics_of.topic_status(session, topic)
        except GantryError as error:
            text = f"its dead letters are not known: {error}"
            findings.append(Finding(WRONG, f"group {group}", text, "see its brokers"))
            continue
        count = sum(each.max_offset - each.min_offset for each in status.queues)
        if count:
            findings.append(Finding(
                WARNING, f"group {group}", f"{count} dead letters",
                f"`gantrymq dlq show {group}`, then `gantrymq dlq redrive {group}`",
            ))  # fmt: skip


async def group_findings(session: Session, group: str) -> list[Finding]:
    """Return what is wrong with a group."""
    what = f"group {group}"
    findings: list[Finding] = []
    try:
        progress = await groups_of.progress(session, group)
    except GantryError as error:
        return [Finding(WRONG, what, f"its progress is not known: {error}", "see its brokers")]
    try:
        told = await groups_of.members(session, group)
    except ConsumerNotOnline:
        if progress.behind:
            findings.append(Finding(
                WARNING, what, f"nobody is online, {progress.behind} messages wait",
                "start its members, or delete the group if it is not needed",
            ))  # fmt: skip
        return findings
    except GantryError as error:
        return [Finding(WRONG, what, f"its members are not known: {error}", "see its brokers")]
    if told.told.mismatch:
        findings.append(Finding(
            WRONG, what, "its members subscribe differently: messages are lost to it",
            "give all members the same topics and expressions, or groups of their own",
        ))  # fmt: skip
    if progress.behind > BEHIND_MAX:
        findings.append(Finding(
            WARNING, what, f"{progress.behind} messages behind",
            "add members (up to one for each queue), or see why they are slow",
        ))  # fmt: skip
    return findings
