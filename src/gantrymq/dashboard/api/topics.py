"""Topics: lists of them, one of them with all about it, making, changing, deleting, sending to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from gantrymq.admin import deleting
from gantrymq.admin import groups as groups_of
from gantrymq.admin import topics as topics_of
from gantrymq.admin.sending import producer_for
from gantrymq.dashboard.api.names import TOPIC_KINDS, kind_of, known_topics, topic_tables
from gantrymq.dashboard.calls import Endpoint, Page, Rows, problem_data
from gantrymq.dashboard.settings import BODY_BYTES_MAX
from gantrymq.errors import InvalidValue
from gantrymq.limits import QUEUES_MAX
from gantrymq.model.message import Message
from gantrymq.model.names import check_topic
from gantrymq.model.roles import Role
from gantrymq.model.topic import Perm, TopicConfig
from gantrymq.wire.response_errors import TopicNotExist

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.admin.deleting import Plan
    from gantrymq.dashboard.calls import Call
    from gantrymq.model.route import TopicRoute

BODY_CHARACTERS_MAX: Final = 4 * 1024 * 1024
MESSAGE_TYPE: Final = "message.type"
MESSAGE_TYPES: Final = ("NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED", "UNSPECIFIED")


async def list_topics(call: Call) -> object:
    """Return one page of topics with what they hold."""
    page, wanted = Page.of(call), (call.maybe("filter") or "").lower()
    kinds = set(call.words("kinds") or ["normal"])
    if not kinds <= set(TOPIC_KINDS):
        raise InvalidValue(f"kinds are among: {', '.join(TOPIC_KINDS)}")
    known = await known_topics(call)
    names = [
        name
        for name in known.names
        if wanted in name.lower() and kind_of(name, known.reserved) in kinds
    ]
    told = Rows(len(names), page)
    shown = page.cut(names)

    async def ask(name: str) -> tuple[TopicRoute, topics_of.TopicStatus]:
        return await asyncio.gather(
            call.session.route(name), topics_of.topic_status(call.session, name)
        )

    answers = await call.session.gather(shown, ask)
    for name in shown:
        row: dict[str, object] = {"name": name, "kind": kind_of(name, known.reserved)}
        if name in answers.found:
            route, status = answers.found[name]
            row |= _places(route)
            row["messages"] = sum(each.max_offset - each.min_offset for each in status.queues)
            row["updatedMs"] = max((each.updated_ms for each in status.queues), default=0)
            told.problems += status.answers.complaints
        else:
            row["error"] = str(answers.problems[name])
            told.problems.append(f"{name}: {answers.problems[name]}")
        told.rows.append(row)
    return told.data()


def _places(route: TopicRoute) -> dict[str, object]:
    """Return what a route says of a topic's queues, over all brokers."""
    return {
        "brokers": len(route.queues),
        "readQueues": sum(each.read_queues for each in route.queues),
        "writeQueues": sum(each.write_queues for each in route.queues),
        "perm": "/".join(sorted({Perm(each.perm).text for each in route.queues})),
    }


def _shape(configs: list[TopicConfig]) -> dict[str, object]:
    """Return what brokers say of a topic, together."""
    if not configs:
        return {"brokers": None}
    first = configs[0]
    return {
        "brokers": len(configs),
        "readQueues": sum(each.read_queues for each in configs),
        "writeQueues": sum(each.write_queues for each in configs),
        "perm": "/".join(sorted({Perm(each.perm).text for each in configs})),
        "order": any(each.order for each in configs),
        "type": first.attributes.get(MESSAGE_TYPE, first.attributes.get(f"+{MESSAGE_TYPE}", "")),
    }


async def show_topic(call: Call) -> object:
    """Return a topic: places, queues, and what brokers have set for it."""
    name = call.text("name")
    route, status, tables, known = await asyncio.gather(
        call.session.route(name),
        topics_of.topic_status(call.session, name),
        topic_tables(call),
        known_topics(call),
    )
    where = {each.name: each for each in route.brokers}
    configs = {broker: table[name] for broker, table in tables.found.items() if name in table}
    return {
        "name": name,
        "kind": kind_of(name, known.reserved),
        **_shape(list(configs.values())),
        "places": [
            {
                "broker": each.broker_name,
                "cluster": where[each.broker_name].cluster if each.broker_name in where else "",
                "addresses": _addresses(where, each.broker_name),
                "readQueues": each.read_queues,
                "writeQueues": each.write_queues,
                "perm": Perm(each.perm).text,
                "attributes": dict(configs[each.broker_name].attributes)
                if each.broker_name in configs
                else {},
            }
            for each in sorted(route.queues, key=lambda one: one.broker_name)
        ],
        "queues": [
            {
                "broker": each.queue.broker_name, "id": each.queue.queue_id,
                "first": each.min_offset, "next": each.max_offset, "updatedMs": each.updated_ms,
            }
            for each in status.queues
        ],
        **problem_data([*status.answers.complaints, *tables.complaints]),
    }  # fmt: skip


def _addresses(where: Mapping[str, object], broker: str) -> list[str]:
    data = where.get(broker)
    found = getattr(data, "addresses", {})
    return [f"{number}: {address}" for number, address in sorted(found.items())]


async def readers(call: Call) -> object:
    """Return the groups that read a topic, and how far behind they are in it."""
    name = call.text("name")
    told = await topics_of.consumers_of(call.session, name)
    listed = sorted({group for found in told.found.values() for group in found})

    async def ask(group: str) -> int | None:
        try:
            return (await groups_of.progress(call.session, group, name)).behind
        except TopicNotExist:
            return None  # nobody was ever in it

    answers = await call.session.gather(listed, ask)
    rows = [
        {
            "group": group,
            "behind": answers.found.get(group),
            "error": str(answers.problems[group]) if group in answers.problems else "",
        }
        for group in listed
    ]
    return {"rows": rows, **problem_data([*told.complaints, *answers.complaints])}


async def producers(call: Call) -> object:
    """Return who is connected for sending to the brokers of a topic, or to any broker."""
    name = call.maybe("name")
    brokers = await call.session.masters_of_topic(name) if name else await call.session.masters()

    async def ask(broker: str) -> list[dict[str, object]]:
        table = await groups_of.producers(call.session, brokers[broker])
        return [
            {
                "group": group, "client": each.client_id, "address": each.remote_ip,
                "language": each.language, "version": each.version, "broker": broker,
                "heardMs": each.last_update_timestamp,
            }
            for group, members in table.items()
            for each in members
        ]  # fmt: skip

    answers = await call.session.gather(brokers, ask)
    answers.check()
    wanted = (call.maybe("filter") or "").lower()
    found = [
        row
        for rows in answers.found.values()
        for row in rows
        if wanted in f"{row['group']} {row['client']}".lower()
    ]
    page = Page.of(call)
    begin = (page.number - 1) * page.rows
    shown = sorted(found, key=lambda row: (str(row["group"]), str(row["client"])))
    return Rows(len(found), page, shown[begin : begin + page.rows], answers.complaints).data()


async def _masters(call: Call) -> dict[str, str]:
    """Return the masters that a change is for: those that are named, or all."""
    masters = await call.session.masters()
    named = call.words("brokers")
    unknown = [name for name in named if name not in masters]
    if unknown:
        raise InvalidValue(f"no master is called {', '.join(unknown)}")
    if not masters:
        raise InvalidValue("the name servers know no master at the moment")
    return {name: masters[name] for name in named} if named else masters


async def put_topic(call: Call) -> object:
    """Make a topic, or change it, on all masters or on those that are named."""
    topic = TopicConfig(
        name=check_topic(call.text("topic")),
        read_queues=call.number("readQueues", 8, most=QUEUES_MAX),
        write_queues=call.number("writeQueues", 8, most=QUEUES_MAX),
        perm=Perm.parse(call.text("perm", "RW-")),
        order=call.flag("order"),
    )
    kind = call.maybe("type")
    if kind is not None and kind not in MESSAGE_TYPES:
        raise InvalidValue(f"{kind[:64]!r} is no type: give one of {', '.join(MESSAGE_TYPES)}")
    masters = await _masters(call)
    call.detail = (
        f"{topic.read_queues} read, {topic.write_queues} write, {Perm(topic.perm).text} on"
        f" {', '.join(masters)}"
    )
    attributes = f"+{MESSAGE_TYPE}={kind}" if kind else None

    async def make(name: str) -> bool:
        await topics_of.create_topic(call.session, masters[name], topic, attributes)
        return True

    answers = await call.session.gather(masters, make)
    answers.check()
    is_known = await topics_of.wait_until_known(
        call.session, topic, [masters[name] for name in answers.found]
    )
    problems = list(answers.complaints)
    if not is_known:
        problems.append("no name server tells of it yet")
    return {"topic": topic.name, "brokers": sorted(answers.found), **problem_data(problems)}


def plan_data(plan: Plan) -> dict[str, object]:
    """Return the plan of a deletion."""
    return {"losses": [each._asdict() for each in plan.losses], "warnings": plan.warnings}


async def plan_deletion(call: Call) -> object:
    """Return what goes with a topic; nothing is changed."""
    return plan_data(await deleting.plan_topic(call.session, call.text("name")))


async def delete_topic(call: Call) -> object:
    """Delete a topic with all that goes with it."""
    name = call.text("topic")
    plan = await deleting.plan_topic(call.session, name)
    call.detail = "; ".join(f"{each.kind} {each.where} {each.detail}" for each in plan.losses)
    await deleting.delete_topic(call.session, name, plan)
    return plan_data(plan)


async def send(call: Call) -> object:
    """Send a test message."""
    properties = call.mapping("properties")
    message = Message(
        topic=check_topic(call.text("topic")),
        body=(call.raw("body", BODY_CHARACTERS_MAX) or "").encode(),
        tags=call.maybe("tag"),
        keys=tuple((call.maybe("keys") or "").split()),
        properties=properties,
        delay_level=call.number("delayLevel", 0, most=1024),
    )
    async with producer_for(call.session, trace=call.flag("trace")) as producer:
        result = await producer.send(message)
    call.detail = result.message_id
    return {
        "id": result.message_id, "offsetId": result.offset_id, "status": result.status.name,
        "broker": result.queue.broker_name, "queue": result.queue.queue_id,
        "offset": result.offset,
    }  # fmt: skip


ENDPOINTS: Final = (
    Endpoint("GET", "/api/topics", Role.VIEWER, list_topics),
    Endpoint("GET", "/api/topic", Role.VIEWER, show_topic),
    Endpoint("GET", "/api/topic/readers", Role.VIEWER, readers),
    Endpoint("GET", "/api/producers", Role.VIEWER, producers),
    Endpoint("GET", "/api/topic/deletion", Role.VIEWER, plan_deletion),
    Endpoint("POST", "/api/topic", Role.OPERATOR, put_topic, "make or change a topic",
             about=("topic",)),
    Endpoint(
        "POST", "/api/topic/send", Role.OPERATOR, send, "send a test message",
        about=("topic",), bytes_max=BODY_BYTES_MAX,
    ),
    Endpoint("DELETE", "/api/topic", Role.ADMIN, delete_topic, "delete a topic",
             about=("topic",)),
)  # fmt: skip
