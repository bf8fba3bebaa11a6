"""Keep the order of what belongs together: one key, one queue, one message at a time."""

import asyncio
import sys

from gantrymq import Producer, PushConsumer, ReceivedMessage

STEPS = ("ordered", "paid", "shipped")


async def main(namesrv: str) -> None:
    """Send the steps of three orders, and read those of each in order."""
    async with Producer(namesrv) as producer:
        for step in STEPS:
            for order in ("A", "B", "C"):
                await producer.send("Steps", f"{order} {step}".encode(), key=order)

    seen: dict[str, list[str]] = {}
    done = asyncio.Event()

    async def handle(message: ReceivedMessage) -> None:
        order, step = message.body.decode().split()
        seen.setdefault(order, []).append(step)
        if sum(map(len, seen.values())) == 9:
            done.set()

    consumer = PushConsumer(namesrv, "orders-in-order", orderly=True, start="first")
    consumer.subscribe("Steps", handler=handle)
    async with consumer:
        await done.wait()
    for order in sorted(seen):
        print(order, " ".join(seen[order]))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9876"))
