"""What the tests of consumers have in common: messages to read, and waiting for what was read."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.headers.offset import OffsetResponse, QueryConsumerOffsetRequest
from gantrymq.wire.headers.send import SendMessageV2Request
from support.remoting import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from support.remoting import RemotingClient
    from support.targets import Target

BORN_MS = 1_700_000_000_000
TRIES = 100


def send(
    target: Target,
    topic: str,
    bodies: Iterable[bytes],
    *,
    queue: int | None = None,
    queues: int = 4,
    properties: Mapping[str, str] | None = None,
) -> None:
    """Store messages one after the other, in one queue or in turn in all of them."""
    told = "\x02".join(f"{name}\x01{value}" for name, value in (properties or {}).items())
    with target.client() as client:
        for number, body in enumerate(bodies):
            header = SendMessageV2Request(
                producer_group="support",
                topic=topic,
                default_topic="TBW102",
                default_topic_queue_nums=4,
                queue_id=number % queues if queue is None else queue,
                sys_flag=0,
                born_timestamp=BORN_MS,
                flag=0,
                properties=told,
                reconsume_times=0,
                unit_mode=False,
                batch=False,
            )
            _send_one(client, header, body)


def _send_one(client: RemotingClient, header: SendMessageV2Request, body: bytes) -> None:
    """Store a message; a broker that is busy for a moment is asked again, as producers do."""
    for left in range(TRIES, 0, -1):
        try:
            client.send(header, body)
        except Refused as error:
            if error.code != ResponseCode.SYSTEM_BUSY or left == 1:
                raise
            time.sleep(0.05)
        else:
            return


def committed(target: Target, group: str, topic: str, queue_id: int) -> int | None:
    """Return the offset that a broker has for a group."""
    header = QueryConsumerOffsetRequest(consumer_group=group, topic=topic, queue_id=queue_id)
    with target.client() as client:
        answer = client.ask(RequestCode.QUERY_CONSUMER_OFFSET, header)
    if answer.code == ResponseCode.QUERY_NOT_FOUND:
        return None
    return OffsetResponse.decode(answer.fields).offset


def numbered(count: int, prefix: str = "m") -> list[bytes]:
    """Return bodies that can be told apart."""
    return [f"{prefix}{number}".encode() for number in range(count)]


async def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Return when a condition holds; fail when it does not in time."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - it is about servers, which tell nobody
            await asyncio.sleep(0.01)
