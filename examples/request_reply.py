"""Ask a question and wait for the answer of whoever consumes it."""

import asyncio
import sys

from gantrymq import Producer, PushConsumer, ReceivedMessage


async def main(namesrv: str) -> None:
    """Run the one who answers and the one who asks side by side."""
    async with Producer(namesrv, "calculator") as producer:

        async def answer(message: ReceivedMessage) -> None:
            numbers = message.body.split(b"+")
            await producer.reply(message, str(sum(map(int, numbers))).encode())

        # A topic that nobody has written to yet is looked for every second.
        consumer = PushConsumer(namesrv, "calculators", start="first", route_s=1)
        consumer.subscribe("Sums", handler=answer)
        async with consumer:
            reply = await producer.request("Sums", b"20+22", timeout_s=10)
            print(reply.body.decode())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9876"))
