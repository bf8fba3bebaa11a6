"""Send a message: with asyncio, and without."""

import asyncio
import sys

from gantrymq import Producer, blocking


async def main(namesrv: str) -> None:
    """Send one message, and look at what came of it."""
    async with Producer(namesrv, group="examples") as producer:
        result = await producer.send("Greetings", b"hello", tags="asyncio", keys=["4711"])
        print(result.status.name, result.queue.topic)


def main_without_asyncio(namesrv: str) -> None:
    """Do the same where there is no event loop."""
    with blocking.Producer(namesrv, group="examples") as producer:
        result = producer.send("Greetings", b"hello again", tags="blocking")
        print(result.status.name, result.queue.topic)
        producer.send_oneway("Greetings", b"nobody answers this one")


if __name__ == "__main__":
    address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9876"
    asyncio.run(main(address))
    main_without_asyncio(address)
