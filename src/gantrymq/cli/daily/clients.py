"""`gantrymq client`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.admin import groups, topics
from gantrymq.admin.versions import version_name
from gantrymq.cli.mqadmin.running import one
from gantrymq.cli.output import Answer, Table
from gantrymq.wire.response_errors import ConsumerNotOnline, RequestCodeNotSupported

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given

HEADS = ("CLIENT", "KIND", "GROUP", "ADDRESS", "LANGUAGE", "VERSION")


async def list_clients(session: Session, _given: Given) -> Answer:
    """List everybody who is connected: producers by broker, consumers by group."""
    masters = await session.masters()

    async def producers(name: str) -> list[tuple[object, ...]]:
        try:
            table = await groups.producers(session, masters[name])
        except RequestCodeNotSupported:
            return []
        return [
            (each.client_id, "producer", group, each.remote_ip, each.language,
             version_name(each.version))
            for group, found in table.items()
            for each in found
        ]  # fmt: skip

    async def consumers(group: str) -> list[tuple[object, ...]]:
        try:
            told = await groups.members(session, group)
        except ConsumerNotOnline:
            return []
        return [
            (each.client_id, "consumer", group, each.client_addr, each.language,
             version_name(each.version))
            for each in told.connections
        ]  # fmt: skip

    senders = await session.gather(masters, producers)
    names = groups.groups_in(await topics.topic_names(session))
    readers = await session.gather(names, consumers)
    rows = {
        (row[0], row[1], row[2]): row
        for found in (*senders.found.values(), *readers.found.values())
        for row in found
    }
    problems = [*senders.complaints, *readers.complaints]
    listed = sorted(rows.values(), key=lambda row: tuple(map(str, row[:3])))
    return Answer([Table(HEADS, listed)], problems=problems)


async def show(session: Session, given: Given) -> Answer:
    """Show what a member of a group says of itself."""
    client_id = given.text("CLIENT")
    info = await groups.running_info(
        session, given.text("GROUP"), client_id, stack=given.yes("stack")
    )
    return one(client_id, info)
