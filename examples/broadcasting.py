"""Every member of a group gets every message: news for all, no work to share."""

import asyncio
import sys
import tempfile

from gantrymq import Producer, PushConsumer, ReceivedMessage


async def main(namesrv: str) -> None:
    """Send one message to two members."""
    async with Producer(namesrv) as producer:
        await producer.send("News", b"the first one makes the topic")

        heard: asyncio.Queue[str] = asyncio.Queue()

        def listener(name: str, folder: str) -> PushConsumer:
            async def handle(message: ReceivedMessage) -> None:
                if message.tags == "today":
                    await heard.put(f"{name} heard: {message.body.decode()}")

            # Each member keeps its own offsets, in a file.
            member = PushConsumer(
                namesrv, "listeners", mode="broadcasting", instance=name, offsets_directory=folder
            )
            member.subscribe("News", handler=handle)
            return member

        with tempfile.TemporaryDirectory() as folder:
            async with listener("anna", folder), listener("ben", folder):
                await producer.send("News", b"it rains", tags="today")
                print(*sorted([await heard.get(), await heard.get()]), sep="\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9876"))
