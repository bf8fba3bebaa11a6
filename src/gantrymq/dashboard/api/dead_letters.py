"""Dead letters: which groups have them, what they are, and jobs that send them again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.admin import explaining, messages, redrive
from gantrymq.admin import topics as topics_of
from gantrymq.admin.protected import check_may_change_group
from gantrymq.admin.reading import Breaths
from gantrymq.admin.search import search
from gantrymq.dashboard.api.messages import (
    LOOKED_AT_BYTES_MAX,
    condition_of,
    row_data,
    rows_of,
)
from gantrymq.dashboard.api.names import known_topics
from gantrymq.dashboard.calls import Download, Endpoint, Page, Rows, problem_data
from gantrymq.errors import InvalidValue
from gantrymq.limits import BODY_BYTES_MAX
from gantrymq.model.names import DLQ_PREFIX, check_group, check_topic, dlq_topic
from gantrymq.model.roles import Role
from gantrymq.wire.peer import PeerLate
from gantrymq.wire.response_errors import NoMessage

if TYPE_CHECKING:
    from gantrymq.admin.messages import Found
    from gantrymq.dashboard.calls import Call

SHOWN_MAX: Final = 50
LOOKED_AT_MAX: Final = 20_000
EXPORTED_MAX: Final = 2_000
EXPORTED_BYTES_MAX: Final = 64 << 20
EXPORTED_BODY_BYTES_MAX: Final = BODY_BYTES_MAX + 1
"""One more than clients send; what has so many is cut, and says so."""
RESEND_S_MAX: Final = 45.0
"""Less than a request may take: whoever asked must hear which ones were sent."""


async def list_groups(call: Call) -> object:
    """Return one page of groups that have a dead-letter topic, and how many are in it."""
    page, wanted = Page.of(call), (call.maybe("filter") or "").lower()
    known = await known_topics(call)
    names = [
        name.removeprefix(DLQ_PREFIX)
        for name in known.names
        if name.startswith(DLQ_PREFIX) and wanted in name.removeprefix(DLQ_PREFIX).lower()
    ]
    told = Rows(len(names), page)

    async def ask(group: str) -> topics_of.TopicStatus:
        return await topics_of.topic_status(call.session, dlq_topic(group))

    shown = page.cut(names)
    answers = await call.session.gather(shown, ask)
    told.problems += answers.complaints
    for group in shown:
        if group not in answers.found:
            error = str(answers.problems[group])
            told.rows.append({"group": group, "messages": None, "updatedMs": 0, "error": error})
            continue
        status = answers.found[group]
        told.problems += status.answers.complaints
        told.rows.append({
            "group": group,
            "messages": sum(each.max_offset - each.min_offset for each in status.queues),
            "updatedMs": max((each.updated_ms for each in status.queues), default=0),
            "error": "",
        })  # fmt: skip
    return told.data()


def _letter(found: Found) -> dict[str, object]:
    told = found.record.properties
    return {
        **row_data(found),
        "from": told.get("RETRY_TOPIC") or told.get("DLQ_ORIGIN_TOPIC") or "",
        "redriven": told.get(redrive.TIMES, "0"),
    }


async def show(call: Call) -> object:
    """Return dead letters of a group, oldest first."""
    group = check_group(call.text("group"))
    await redrive.dead_letter_queues(call.session, group)
    told = await search(
        call.session, dlq_topic(group), condition_of(call), position=call.maybe("position"),
        begin_ms=call.maybe_number("beginMs"), end_ms=call.maybe_number("endMs"),
        looked_at_max=LOOKED_AT_MAX, found_max=call.number("rows", SHOWN_MAX, least=1, most=200),
        bytes_max=LOOKED_AT_BYTES_MAX,
    )  # fmt: skip
    return {
        "rows": await rows_of(call, told.found, _letter), "lookedAt": told.looked_at,
        "total": told.total, "next": told.next_position, **problem_data([]),
    }  # fmt: skip


async def export(call: Call) -> object:
    """Return dead letters as a file: one JSON value in a line, bodies as text where they are.

    Where it is cut, the last line says so, and the `position` that the next file goes on from.
    """
    group = check_group(call.text("group"))
    told = await search(
        call.session, dlq_topic(group), condition_of(call), found_max=EXPORTED_MAX,
        begin_ms=call.maybe_number("beginMs"), end_ms=call.maybe_number("endMs"),
        position=call.maybe("position"), bytes_max=EXPORTED_BYTES_MAX,
    )  # fmt: skip
    content, breaths = bytearray(), Breaths(call.session.clock)
    position = told.next_position
    for each in told.found:
        content += _exported(each)
        if len(content) >= EXPORTED_BYTES_MAX and each is not told.found[-1]:
            position = told.position_behind(each)
            break
        await breaths.take()
    if position is not None:
        content += msgspec.json.encode({"isCut": True, "position": position}) + b"\n"
    return Download(bytes(content), f"dead-letters-{group}.jsonl")


def _exported(found: Found) -> bytes:
    body = messages.readable_start(found.record, EXPORTED_BODY_BYTES_MAX)
    row = {**_letter(found), "properties": found.record.properties}
    if len(body) == EXPORTED_BODY_BYTES_MAX:
        row["isBodyCut"] = True
    try:
        row["body"] = body.decode()
    except UnicodeDecodeError:
        row["bodyBase64"] = body
    return msgspec.json.encode(row) + b"\n"


def _order(call: Call) -> redrive.Order:
    group = check_group(call.text("group"))
    check_may_change_group(group)
    condition = condition_of(call)
    to = call.text("to", redrive.TO_GROUP)
    if to not in {redrive.TO_GROUP, redrive.TO_TOPIC}:
        check_topic(to)
    return redrive.Order(
        group=group,
        to=to,
        condition=None if condition.is_empty else condition,
        rate=call.number("rate", 0, most=1_000_000),
        loops_max=call.number("loops", 3, least=1, most=1_000),
        count_max=call.number("count", 0),
        dry_run=call.flag("dryRun"),
    )


async def start(call: Call) -> object:
    """Begin to send dead letters again, or go on where the same order stopped."""
    order = _order(call)
    await redrive.dead_letter_queues(call.session, order.group)
    job = call.parts.jobs.start(order, call.user)
    call.detail = f"to {order.to}{', dry run' if order.dry_run else ''}, job {job.id}"
    return job.data()


async def jobs(call: Call) -> object:
    """Return all jobs, newest first."""
    group = call.maybe("group")
    found = [job.data() for job in call.parts.jobs.all() if group in {None, job.order.group}]
    return {"rows": found}


async def halt(call: Call) -> object:
    """Stop a job; the same order goes on from there."""
    return (await call.parts.jobs.halt(call.text("id"))).data()


def _origin(found: Found, group: str, offset_id: str) -> str:
    """Return the topic that a dead letter came from.

    Raises:
        InvalidValue: it is none of the group's.
    """
    told = found.record.properties
    topic = told.get("RETRY_TOPIC") or told.get("DLQ_ORIGIN_TOPIC")
    if found.record.topic != dlq_topic(group) or not topic:
        raise InvalidValue(f"{offset_id} is no dead letter of {group} with a topic")
    return topic


async def resend_some(call: Call) -> object:
    """Send some dead letters again at once, to the topics that they came from."""
    from gantrymq.admin.sending import Copier  # noqa: PLC0415

    group, ids = check_group(call.text("group")), call.words("ids")
    check_may_change_group(group)
    if not 1 <= len(ids) <= 200:
        raise InvalidValue("name 1 to 200 messages")
    call.detail = f"of {len(ids)}: {' '.join(ids)}"

    known = await call.session.addresses()
    until = asyncio.get_running_loop().time() + RESEND_S_MAX
    async with Copier(call.session) as copier:

        async def one(offset_id: str) -> str:
            said = "it was not sent"
            try:
                async with asyncio.timeout_at(until):
                    found = await explaining.viewed(call.session, offset_id, known)
                    if found is None:
                        raise NoMessage(f"no broker of this cluster has {offset_id[:128]}")
                    topic = _origin(found, group, offset_id)
                    said = "it may have been sent"
                    return (await copier.copy(found.record, topic)).message_id
            except TimeoutError:
                raise PeerLate(f"there was no time left: {said}") from None

        answers = await call.session.gather(ids, one)
    call.detail = f"{len(answers.found)} sent, {len(answers.problems)} not"
    return {"sent": answers.found, **problem_data(list(answers.complaints))}


ENDPOINTS: Final = (
    Endpoint("GET", "/api/dlq", Role.VIEWER, list_groups),
    Endpoint("GET", "/api/dlq/letters", Role.VIEWER, show),
    Endpoint("GET", "/api/dlq/export", Role.VIEWER, export),
    Endpoint("GET", "/api/dlq/jobs", Role.VIEWER, jobs),
    Endpoint("POST", "/api/dlq/redrive", Role.OPERATOR, start, "redrive dead letters",
             about=("group", "to")),
    Endpoint("POST", "/api/dlq/stop", Role.OPERATOR, halt, "stop a redrive",
             about=("id",)),
    Endpoint("POST", "/api/dlq/resend", Role.OPERATOR, resend_some, "send dead letters again",
             about=("group",)),
)  # fmt: skip
