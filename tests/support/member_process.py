"""A member of a group as a process of its own, to be killed: prints each body that it handles.

python member_process.py NAME_SERVER GROUP TOPIC
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from gantrymq import PushConsumer

if TYPE_CHECKING:
    from gantrymq import ReceivedMessage


async def handle(message: ReceivedMessage) -> None:
    """Say what came; what was not said was not handled."""
    sys.stdout.write(message.body.decode() + "\n")
    sys.stdout.flush()
    await asyncio.sleep(0.002)


async def main(namesrv: str, group: str, topic: str) -> None:
    """Consume until the end of the process."""
    consumer = PushConsumer(namesrv, group, start="first", persist_s=0.2, rebalance_s=1.0)
    consumer.subscribe(topic, "*", handle)
    async with consumer:
        await asyncio.sleep(3600)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
