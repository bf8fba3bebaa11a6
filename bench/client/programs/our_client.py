"""gantrymq's client as a program that is measured: started with a plan in JSON, see `../plans.py`.

Every 100 ms it prints a line: nanoseconds of a clock, messages done, KiB of private memory.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gantrymq import Producer, PushConsumer

if TYPE_CHECKING:
    from gantrymq import ReceivedMessage

SAMPLE_S = 0.1


class Program:
    """What is done, and how much of it."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self._plan = plan
        self._count = 0
        self._stops = False

    async def run(self) -> None:
        """Do as the plan says."""
        if self._plan["mode"] == "send":
            await self._send()
        else:
            await self._consume()

    async def _send(self) -> None:
        plan = self._plan
        body = b"x" * plan["body_bytes"]
        async with Producer(plan["address"], "bench_producers") as producer:
            senders = [
                asyncio.create_task(self._send_on(producer, plan["topic"], body))
                for _ in range(plan["in_flight"])
            ]
            await self._show_until(lambda: False)
            self._stops = True
            await asyncio.gather(*senders)

    async def _send_on(self, producer: Producer, topic: str, body: bytes) -> None:
        while not self._stops:
            await producer.send(topic, body)
            self._count += 1

    async def _consume(self) -> None:
        plan = self._plan
        batch = int(plan["how"] or 1)
        consumer = PushConsumer(plan["address"], plan["group"], start="first", batch=batch)
        handler = self._handle if batch == 1 else self._handle_list
        consumer.subscribe(plan["topic"], "*", handler)
        async with consumer:
            await self._show_until(lambda: self._count >= plan["messages"])

    async def _handle(self, _message: ReceivedMessage) -> None:
        self._count += 1

    async def _handle_list(self, messages: list[ReceivedMessage]) -> None:
        self._count += len(messages)

    async def _show_until(self, is_done: Any) -> None:  # noqa: ANN401
        end = time.monotonic() + self._plan["seconds"]
        while time.monotonic() < end and not is_done():
            print(time.monotonic_ns(), self._count, _private_kib(), flush=True)
            await asyncio.sleep(SAMPLE_S)
        print(time.monotonic_ns(), self._count, _private_kib(), flush=True)


def _private_kib() -> int:
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    lines = status.read_text(encoding="utf-8").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("RssAnon:")), 0)


if __name__ == "__main__":
    asyncio.run(Program(json.loads(sys.argv[1])).run())
