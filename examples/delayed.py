"""Deliver later: by a delay level (any broker), at a time (5.x brokers, and this one)."""

import asyncio
import sys
from datetime import UTC, datetime, timedelta

from gantrymq import Producer, PushConsumer


async def main(namesrv: str) -> None:
    """Send three messages, of which two are delayed, and read them as they come."""
    async with Producer(namesrv) as producer:
        soon = datetime.now(UTC) + timedelta(seconds=3)
        await producer.send("Reminders", b"in three seconds", deliver_at=soon)
        await producer.send("Reminders", b"in a second", delay_level=1)
        await producer.send("Reminders", b"now")

    async with PushConsumer(namesrv, "reminders", start="first") as consumer:
        consumer.subscribe("Reminders")
        count = 0
        async for message in consumer:
            print(message.body.decode())
            count += 1
            if count == 3:
                break


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9876"))
