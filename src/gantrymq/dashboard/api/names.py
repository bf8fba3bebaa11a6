"""Which topics and groups there are: asked once for all who want to know in the same moment."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gantrymq.admin import groups as groups_of
from gantrymq.admin import topics as topics_of
from gantrymq.model.names import (
    is_dlq_topic,
    is_retry_topic,
    is_system_group,
    is_system_topic,
    system_topics,
)

if TYPE_CHECKING:
    from gantrymq.admin.session import Gathered
    from gantrymq.dashboard.calls import Call
    from gantrymq.model.group import SubscriptionGroup
    from gantrymq.model.topic import TopicConfig
    from gantrymq.wire.bodies.route import ClusterInfo

TABLES_MAX: Final = 64
"""Brokers whose table of groups is kept, so that the next look asks only whether it changed."""
TOPIC_KINDS: Final = ("normal", "retry", "dead letters", "system")


@dataclass(frozen=True, slots=True)
class KnownTopics:
    """What the name servers know."""

    names: list[str]
    info: ClusterInfo
    reserved: frozenset[str]
    """Topics that are named after a cluster or a broker."""


async def known_topics(call: Call) -> KnownTopics:
    """Return what the name servers know."""

    async def ask() -> KnownTopics:
        names, info = await asyncio.gather(
            topics_of.topic_names(call.session), call.session.cluster()
        )
        reserved = {
            topic
            for cluster, brokers in info.cluster_addr_table.items()
            for broker in brokers
            for topic in system_topics(cluster, broker)
        }
        reserved |= {*info.cluster_addr_table, *info.broker_addr_table}
        return KnownTopics(names, info, frozenset(reserved))

    return await call.parts.cache.get("topics", ask)


def kind_of(topic: str, reserved: frozenset[str]) -> str:
    """Return which of the kinds a topic is."""
    if is_retry_topic(topic):
        return "retry"
    if is_dlq_topic(topic):
        return "dead letters"
    return "system" if is_system_topic(topic) or topic in reserved else "normal"


async def topic_tables(call: Call) -> Gathered[str, dict[str, TopicConfig]]:
    """Return the topics of every broker that answers, by its name."""

    async def ask() -> Gathered[str, dict[str, TopicConfig]]:
        masters = await call.session.masters()

        async def one(name: str) -> dict[str, TopicConfig]:
            return await topics_of.topic_table(call.session, masters[name])

        return await call.session.gather(masters, one)

    return await call.parts.cache.get("topic tables", ask)


async def group_tables(call: Call) -> Gathered[str, dict[str, SubscriptionGroup]]:
    """Return the groups of every broker that answers, by its name."""

    async def ask() -> Gathered[str, dict[str, SubscriptionGroup]]:
        masters = await call.session.masters()

        async def one(name: str) -> dict[str, SubscriptionGroup]:
            address = masters[name]
            known = call.parts.group_tables.pop(address, None)
            table = await groups_of.read_groups(call.session, address, known)
            if len(call.parts.group_tables) < TABLES_MAX:
                call.parts.group_tables[address] = table
            return table.groups

        return await call.session.gather(masters, one)

    return await call.parts.cache.get("group tables", ask)


def group_kind(group: str) -> str:
    """Return whose group it is: `normal` or `system`."""
    return "system" if is_system_group(group) else "normal"
