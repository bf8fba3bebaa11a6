"""Have the broker send only what you want: by tags, or by SQL92 over properties.

The broker must allow the latter: `enablePropertyFilter=true`.
"""

import asyncio
import sys

from gantrymq import Producer, PushConsumer, sql


async def main(namesrv: str) -> None:
    """Send offers, and read the cheap red ones."""
    async with Producer(namesrv) as producer:
        for colour, price in (("red", 5), ("blue", 5), ("red", 50), ("red", 7)):
            properties = {"colour": colour, "price": str(price)}
            await producer.send("Offers", f"{colour} for {price}".encode(), properties=properties)

    async with PushConsumer(namesrv, "bargains", start="first") as consumer:
        consumer.subscribe("Offers", sql("colour = 'red' AND price < 10"))
        found: list[str] = []
        async for message in consumer:
            found.append(message.body.decode())
            if len(found) == 2:
                break
    print(*sorted(found), sep="\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9876"))
