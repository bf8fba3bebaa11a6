"""Quotas of topics and groups: attributes whose names begin with `quota.`, read and changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from gantrymq.admin.groups import create_group, group_table
from gantrymq.admin.topics import create_topic, topic_table
from gantrymq.errors import InvalidValue, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.admin.session import Gathered, Session

PREFIX: Final = "quota."


class Quota(NamedTuple):
    """What one broker has of a topic or a group."""

    kind: str
    name: str
    broker: str
    limits: dict[str, str]
    """Such as `send.bytes`, without the beginning that all of them have."""


def limits_of(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return the quotas among attributes."""
    return {
        name.removeprefix(PREFIX): value
        for name, value in sorted(attributes.items())
        if name.startswith(PREFIX)
    }


async def all_quotas(session: Session) -> Gathered[str, list[Quota]]:
    """Return what every broker has, by broker name; those without a quota are left out."""
    masters = await session.masters()

    async def ask(broker: str) -> list[Quota]:
        topics = await topic_table(session, masters[broker])
        groups = await group_table(session, masters[broker])
        of_topics = {name: limits_of(one.attributes) for name, one in sorted(topics.items())}
        of_groups = {name: limits_of(one.attributes) for name, one in sorted(groups.items())}
        return [
            Quota(kind, name, broker, limits)
            for kind, table in (("topic", of_topics), ("group", of_groups))
            for name, limits in table.items()
            if limits
        ]

    return await session.gather(masters, ask)


async def change_topic(session: Session, topic: str, limits: Mapping[str, int]) -> list[Quota]:
    """Give a topic quotas, on every broker that has it; return what they have then.

    Raises:
        InvalidValue: no broker has it.
    """
    found = []
    for broker, address in (await session.masters()).items():
        before = (await topic_table(session, address)).get(topic)
        if before is None:
            continue
        if limits:
            changes = ",".join(f"+{PREFIX}{name}={number}" for name, number in limits.items())
            await create_topic(session, address, before, changes)
        holds = limits_of(before.attributes) | {name: str(one) for name, one in limits.items()}
        found.append(Quota("topic", topic, broker, holds))
    return _found(found, "topic", topic)


async def change_group(session: Session, group: str, limits: Mapping[str, int]) -> list[Quota]:
    """Do the same with a group.

    Raises:
        InvalidValue: no broker has it.
    """
    found = []
    for broker, address in (await session.masters()).items():
        before = (await group_table(session, address)).get(group)
        if before is None:
            continue
        if limits:
            changes = {f"+{PREFIX}{name}": str(number) for name, number in limits.items()}
            await create_group(
                session, address, msgspec.structs.replace(before, attributes=changes)
            )
        holds = limits_of(before.attributes) | {name: str(one) for name, one in limits.items()}
        found.append(Quota("group", group, broker, holds))
    return _found(found, "group", group)


def _found(quotas: list[Quota], kind: str, name: str) -> list[Quota]:
    if not quotas:
        raise InvalidValue(f"no broker has a {kind} {shown(name)}; make it first")
    return quotas
