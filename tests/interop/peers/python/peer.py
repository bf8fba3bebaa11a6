"""The project's own client as a program, as those of others are: README.md has the words.

Started as `peer.py NAME_SERVER`, with the package on the path.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

from gantrymq.client.producer import Producer
from gantrymq.client.push_consumer import PushConsumer

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from gantrymq.client.received import ReceivedMessage
    from gantrymq.client.results import SendResult

    Fields = Mapping[str, Any]

LINE_BYTES_MAX = 64 << 20
TIMEOUT_S = 30.0


class Peer:
    """What runs: producers and consumers by name."""

    def __init__(self, names: str) -> None:
        self._names = names
        self._running: dict[str, Producer | PushConsumer] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ops: dict[str, Callable[[Fields], Coroutine[Any, Any, object]]] = {
            "producer": self._producer,
            "send": self._send,
            "consumer": self._consumer,
            "stop": self._stop,
        }

    async def serve(self) -> None:
        """Do as standard input says, until it ends."""
        lines = asyncio.StreamReader(limit=LINE_BYTES_MAX)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        async for line in lines:
            task = asyncio.create_task(self._answer(json.loads(line)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, command: Fields) -> None:
        try:
            show({"id": command["id"], "result": await self._ops[command["op"]](command)})
        except Exception as error:  # noqa: BLE001  (whatever it is, the test is told)
            traceback.print_exc()
            show({"id": command["id"], "error": f"{type(error).__name__}: {error}"})

    async def _producer(self, command: Fields) -> None:
        name = command["name"]
        producer = Producer(self._names, group=command["group"], instance=name, timeout_s=TIMEOUT_S)
        await producer.start()
        self._running[name] = producer

    async def _send(self, command: Fields) -> object:
        if command["how"] not in {"sync", "async"}:
            raise ValueError(f"this client is not asked to send {command['how']}")
        producer = self._running[command["producer"]]
        assert isinstance(producer, Producer)

        def sending(given: Fields) -> Coroutine[Any, Any, SendResult]:
            return producer.send(
                command["topic"], body_of(given), tags=given.get("tag"),
                keys=given.get("keys", "").split(), properties=given.get("properties"),
            )  # fmt: skip

        if command["how"] == "async":
            return [told(one) for one in await asyncio.gather(*map(sending, command["messages"]))]
        return [told(await sending(given)) for given in command["messages"]]

    async def _consumer(self, command: Fields) -> None:
        async def take(message: ReceivedMessage) -> None:
            show(event(command, message))

        name = command["name"]
        consumer = PushConsumer(self._names, group=command["group"], instance=name, start="first")
        consumer.subscribe(command["topic"], command["tag"], take)
        await consumer.start()
        self._running[name] = consumer

    async def _stop(self, command: Fields) -> None:
        await self._running.pop(command["name"]).close()


def body_of(given: Fields) -> bytes:
    """Return the body of a message that is to be sent."""
    if "base64" in given:
        return base64.b64decode(given["base64"])
    return str(given["body"]).encode()


def told(sent: SendResult) -> Fields:
    """Return what became of a send."""
    return {
        "status": sent.status.name, "key": sent.message_id, "offset": sent.offset,
        "queue": sent.queue.queue_id, "broker": sent.queue.broker_name, "place": sent.offset_id,
    }  # fmt: skip


def event(command: Fields, message: ReceivedMessage) -> Fields:
    """Return what is said of a message that was received."""
    raw = command.get("raw")
    body = base64.b64encode(message.body).decode() if raw else message.body.decode()
    return {
        "event": "message", "received": time.time_ns() // 1_000_000, "consumer": command["name"],
        "topic": message.topic, "base64" if raw else "body": body, "tag": message.tags,
        "keys": " ".join(message.keys), "queue": message.queue_id, "offset": message.offset,
        "times": message.reconsume_times, "key": message.message_id,
        "properties": dict(message.properties),
    }  # fmt: skip


def show(line: Fields) -> None:
    """Write a line of JSON."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(Peer(sys.argv[1]).serve())
