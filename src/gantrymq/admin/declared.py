"""Topics, groups and permissions as a file declares them, compared with what brokers have.

    [topics.Orders]          [groups.billing]             [[permissions]]
    queues = 8               retry_times_max = 5          subject = "User:shop"
    perm = "RW-"             consume_enabled = true       resource = "Topic:Orders"
                                                          actions = ["Pub"]
                                                          decision = "Allow"

What the file does not name is left alone; nothing is ever deleted. A setting that is not named has
RocketMQ's default when the thing is made, and stays as it is when the thing is there.
"""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from gantrymq.admin import groups as groups_of
from gantrymq.admin import topics as topics_of
from gantrymq.admin.protected import check_may_change_group, check_may_change_topic
from gantrymq.errors import InvalidValue
from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.names import check_group, check_topic
from gantrymq.model.topic import Perm, TopicConfig
from gantrymq.wire.bodies.auth import ACL, AclInfo, Policy, PolicyEntry
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.acl import SubjectRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.admin.session import Session

TOPIC_KEYS = {
    "queues": int, "read_queues": int, "write_queues": int, "perm": str, "order": bool,
}  # fmt: skip
GROUP_KEYS = {
    "consume_enabled": bool, "consume_from_min_enabled": bool, "broadcast_enabled": bool,
    "orderly": bool, "retry_queues": int, "retry_times_max": int, "notify_members": bool,
    "consume_timeout_min": int,
}  # fmt: skip
PERMISSION_KEYS = {
    "subject": str, "resource": str, "actions": list, "decision": str, "source_ips": list,
}  # fmt: skip


class Change(NamedTuple):
    """One step of a plan."""

    action: str
    """create, change or same."""
    kind: str
    name: str
    broker: str
    detail: str
    value: TopicConfig | SubscriptionGroup | AclInfo


class Declared(NamedTuple):
    """What a file declares."""

    topics: Mapping[str, Mapping[str, Any]]
    groups: Mapping[str, Mapping[str, Any]]
    permissions: list[Mapping[str, Any]]


def parse(text: str, *, is_json: bool) -> Declared:
    """Return what a TOML or JSON text declares.

    Raises:
        InvalidValue: it cannot be read, or has something that is not known; names it.
    """
    try:
        tree = json.loads(text) if is_json else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"it cannot be read: {error}") from None
    if not isinstance(tree, dict):
        raise InvalidValue("it holds no table of topics, groups and permissions")
    unknown = sorted(set(tree) - {"topics", "groups", "permissions"})
    if unknown:
        raise InvalidValue(f"{unknown[0]!r} is not known: there are topics, groups, permissions")
    topics, groups = tree.get("topics", {}), tree.get("groups", {})
    permissions = tree.get("permissions", [])
    for kind, named, keys in (("topics", topics, TOPIC_KEYS), ("groups", groups, GROUP_KEYS)):
        if not isinstance(named, dict):
            raise InvalidValue(f"{kind} is no table")
        for name, settings in named.items():
            _check(f"{kind}.{name}", settings, keys)
    for name in topics:
        check_may_change_topic(check_topic(name))
    for name in groups:
        check_may_change_group(check_group(name))
    if not isinstance(permissions, list):
        raise InvalidValue("permissions is no list: write [[permissions]]")
    for at, rule in enumerate(permissions):
        _check(f"permissions[{at}]", rule, PERMISSION_KEYS)
        missing = {"subject", "resource", "actions", "decision"} - set(rule)
        if missing:
            raise InvalidValue(f"permissions[{at}] has no {min(missing)}")
    return Declared(topics, groups, permissions)


def _check(where: str, settings: object, keys: Mapping[str, type]) -> None:
    if not isinstance(settings, dict):
        raise InvalidValue(f"{where} is no table")
    for key, value in settings.items():
        if key not in keys:
            raise InvalidValue(f"{where}.{key} is not known: there are {', '.join(keys)}")
        if type(value) is not keys[key]:
            raise InvalidValue(f"{where}.{key} is {value!r}: give {keys[key].__name__}")


async def plan(session: Session, declared: Declared, cluster: str | None = None) -> list[Change]:
    """Return what would be done, on every master of a cluster, or of all.

    Raises:
        NoSuchTarget: there is no such cluster.
        InvalidValue: a value cannot be.
        ResponseError: a broker did not answer: half a plan is none.
    """
    changes: list[Change] = []
    for broker, address in (await session.masters(cluster)).items():
        if declared.topics:
            known = await topics_of.topic_table(session, address)
            changes += [
                _topic(broker, name, settings, known.get(name))
                for name, settings in declared.topics.items()
            ]
        if declared.groups:
            there = await groups_of.group_table(session, address)
            changes += [
                _group(broker, name, settings, there.get(name))
                for name, settings in declared.groups.items()
            ]
        for subject in dict.fromkeys(rule["subject"] for rule in declared.permissions):
            wanted = _acl([rule for rule in declared.permissions if rule["subject"] == subject])
            changes.append(await _permission(session, broker, address, subject, wanted))
    return changes


def _topic(
    broker: str, name: str, settings: Mapping[str, Any], known: TopicConfig | None
) -> Change:
    was = known or TopicConfig(name, read_queues=8, write_queues=8)
    queues = settings.get("queues")
    wanted = msgspec.structs.replace(
        was,
        read_queues=settings.get("read_queues", queues or was.read_queues),
        write_queues=settings.get("write_queues", queues or was.write_queues),
        perm=Perm.parse(settings["perm"]) if "perm" in settings else was.perm,
        order=settings.get("order", was.order),
    )
    return _change("topic", name, broker, known, wanted)


def _group(
    broker: str, name: str, settings: Mapping[str, Any], known: SubscriptionGroup | None
) -> Change:
    was = known or SubscriptionGroup(name)
    return _change("group", name, broker, known, msgspec.structs.replace(was, **settings))


def _change(
    kind: str,
    name: str,
    broker: str,
    known: TopicConfig | SubscriptionGroup | None,
    wanted: TopicConfig | SubscriptionGroup,
) -> Change:
    if known == wanted:
        return Change("same", kind, name, broker, "", wanted)
    differs = [
        each for each in wanted.__struct_fields__
        if known is None or getattr(known, each) != getattr(wanted, each)
    ]  # fmt: skip
    told = ", ".join(
        f"{each} {_shown(getattr(wanted, each))}" if known is None
        else f"{each} {_shown(getattr(known, each))} -> {_shown(getattr(wanted, each))}"
        for each in differs
        if each in {*TOPIC_KEYS, *GROUP_KEYS}
    )  # fmt: skip
    return Change("change" if known else "create", kind, name, broker, told, wanted)


def _shown(value: object) -> str:
    return value.text if isinstance(value, Perm) else str(value)


def _acl(rules: list[Mapping[str, Any]]) -> AclInfo:
    entries = tuple(
        PolicyEntry(
            resource=rule["resource"],
            actions=tuple(rule["actions"]),
            source_ips=tuple(rule.get("source_ips", ())) or None,
            decision=rule["decision"],
        )
        for rule in rules
    )
    policy = Policy(policy_type="Custom", entries=entries)
    return AclInfo(subject=rules[0]["subject"], policies=(policy,))


async def _permission(
    session: Session, broker: str, address: str, subject: str, wanted: AclInfo
) -> Change:
    answered = await session.remote.call(
        address, RequestCode.AUTH_GET_ACL, SubjectRequest(subject=subject)
    )
    known = ACL.decode(answered.body) if answered.body else None
    rules = ", ".join(
        f"{entry.decision} {'/'.join(entry.actions or ())} {entry.resource}"
        for policy in wanted.policies or ()
        for entry in policy.entries or ()
    )
    action = "create" if known is None else "same" if _has(known, wanted) else "change"
    return Change(action, "permission", subject, broker, rules, wanted)


def _has(known: AclInfo, wanted: AclInfo) -> bool:
    entries = {
        (each.resource, frozenset(each.actions or ()), each.decision)
        for policy in known.policies or ()
        for each in policy.entries or ()
    }
    return all(
        (each.resource, frozenset(each.actions or ()), each.decision) in entries
        for policy in wanted.policies or ()
        for each in policy.entries or ()
    )


async def apply(session: Session, changes: list[Change]) -> None:
    """Do what a plan says, in its order.

    Raises:
        ResponseError: a broker refused; what came before it is done, and a new plan says so.
    """
    masters = await session.masters()
    for change in changes:
        address = masters[change.broker]
        if change.action == "same":
            continue
        if isinstance(change.value, TopicConfig):
            await topics_of.create_topic(session, address, change.value)
        elif isinstance(change.value, SubscriptionGroup):
            await groups_of.create_group(session, address, change.value)
        else:
            code = (
                RequestCode.AUTH_CREATE_ACL
                if change.action == "create"
                else RequestCode.AUTH_UPDATE_ACL
            )
            header = SubjectRequest(subject=change.name)
            await session.remote.call(address, code, header, ACL.encode(change.value))
