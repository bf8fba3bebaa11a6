"""Sub-commands that send messages."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gantrymq.admin.sending import producer_for
from gantrymq.cli.output import Answer, Cell, Table
from gantrymq.errors import GantryError, InvalidValue
from gantrymq.model.queue import MessageQueue, QueueId

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given
    from gantrymq.client.producer import Producer

SENDS_MAX = 100_000


async def send_message(session: Session, given: Given) -> Answer:
    """Send a message."""
    topic, name, queue_id = given.text("topic"), given.maybe("broker"), given.maybe_number("qid")
    if queue_id is not None and name is None:
        raise InvalidValue("--qid needs --broker: a queue is one of a broker")
    body = os.fsencode(given.raw("body") or "")  # the bytes as they were typed
    async with producer_for(session, trace=given.yes("msgTraceEnable")) as producer:
        queue = await _queue(producer, topic, name, queue_id) if name is not None else None
        sent = await producer.send(
            topic, body, tags=given.maybe("tags"), keys=given.maybe("key") or (), queue=queue
        )
    row = (
        sent.queue.broker_name, int(sent.queue.queue_id), sent.status.name, sent.message_id,
    )  # fmt: skip
    table = Table(("#Broker Name", "#QID", "#Send Result", "#MsgId"), [row])
    data = {**table.data()[0], "queueOffset": sent.offset}
    return Answer([table], data)


async def _queue(producer: Producer, topic: str, name: str, queue_id: int | None) -> MessageQueue:
    if queue_id is not None:
        return MessageQueue(topic, name, QueueId(queue_id))
    queues = [each for each in await producer.queues(topic) if each.broker_name == name]
    if not queues:
        raise InvalidValue(f"topic {topic} has no queue to write on broker {name}")
    return queues[0]


def _count(given: Given, name: str, default: int) -> int:
    count = given.number(name, default)
    if not 1 <= count <= SENDS_MAX:
        raise InvalidValue(f"--{name} is {count}: give 1 to {SENDS_MAX}")
    return count


async def send_msg_status(session: Session, given: Given) -> Answer:
    """Send to the topic that has a broker's name, and say how each send went."""
    name, count = given.text("brokerName"), _count(given, "count", 50)
    body = b"a" * _count(given, "messageSize", 128)
    rows: list[tuple[object, ...]] = []
    failed = 0
    async with producer_for(session) as producer:
        for _ in range(count):
            ms, result, queue_id = await _timed(session, producer, name, body)
            failed += result != "SEND_OK"
            rows.append((name, queue_id, result, ms))
    table = Table(("#Broker Name", "#QID", "#Send Result", "#RT"), rows)
    return Answer([table], problems=[f"{failed} of {count} sends failed"] if failed else [])


async def _timed(
    session: Session, producer: Producer, topic: str, body: bytes,
    queue: MessageQueue | None = None,
) -> tuple[Cell, str, int]:  # fmt: skip
    begin = session.clock.monotonic()
    try:
        sent = await producer.send(topic, body, queue=queue)
        result, queue_id = sent.status.name, int(sent.queue.queue_id)
    except GantryError as error:
        result, queue_id = f"{type(error).__name__}: {error}", -1
    ms = (session.clock.monotonic() - begin) * 1000
    return Cell(round(ms, 3), f"{ms:.2f}"), result, queue_id


async def check_msg_send_rt(session: Session, given: Given) -> Answer:
    """Say how long sends to a topic take."""
    topic, count = given.text("topic"), _count(given, "amount", 100)
    body = b"a" * _count(given, "size", 128)
    rows: list[tuple[object, ...]] = []
    async with producer_for(session) as producer:
        queues = sorted(await producer.queues(topic))
        for at in range(count):
            queue = queues[at % len(queues)]
            ms, result, _queue_id = await _timed(session, producer, topic, body, queue)
            rows.append((queue.broker_name, int(queue.queue_id), result == "SEND_OK", ms))
    # The first send also makes the connection: it is shown and not counted.
    timed = [float(str(row[3].value)) for row in rows if isinstance(row[3], Cell)][1:] or [0.0]
    table = Table(("#Broker Name", "#QID", "#Send Result", "#RT"), rows)
    average = sum(timed) / len(timed)
    failed = sum(row[2] is not True for row in rows)
    return Answer(
        [table, f"Avg RT: {average:.2f}"],
        {"sends": table.data(), "averageMs": round(average, 3)},
        [f"{failed} of {count} sends failed"] if failed else [],
    )


async def cluster_rt(session: Session, given: Given) -> Answer:
    """Say how long sends to every broker take: each has a topic of its name."""
    count, body = _count(given, "amount", 100), b"a" * _count(given, "size", 128)
    info = await session.cluster()
    rows: list[tuple[object, ...]] = []
    failures = 0
    async with producer_for(session) as producer:
        for cluster, names in sorted(info.cluster_addr_table.items()):
            if given.maybe("cluster") not in {None, cluster}:
                continue
            for name in sorted(names):
                timed, failed = [], 0
                for _ in range(count):
                    ms, result, _queue_id = await _timed(session, producer, name, body)
                    failed += result != "SEND_OK"
                    timed.append(float(str(ms.value)))
                failures += failed
                average = sum(timed[1:]) / max(len(timed) - 1, 1)
                rows.append((cluster, name, f"{average:.2f}", count - failed, failed))
    if not rows:
        raise InvalidValue(f"there is no cluster {given.maybe('cluster')!r}")
    heads = ("#Cluster Name", "#Broker Name", "#RT", "#successCount", "#failCount")
    problems = [f"{failures} sends failed"] if failures else []
    return Answer([Table(heads, rows)], problems=problems)
