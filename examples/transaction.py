"""A message that appears only if your own transaction succeeds."""

import asyncio
import sys

from gantrymq import Message, Producer, PushConsumer, ReceivedMessage, TransactionState

paid: set[str] = set()
"""Stands for your database."""


async def pay(message: Message) -> TransactionState:
    """Do your own part; what is returned decides what becomes of the message."""
    order = message.body.decode()
    if order == "B":
        return TransactionState.ROLLBACK
    paid.add(order)
    return TransactionState.COMMIT


async def check(message: ReceivedMessage) -> TransactionState:
    """Say what became of it when the broker asks, after a crash for example."""
    is_paid = message.body.decode() in paid
    return TransactionState.COMMIT if is_paid else TransactionState.ROLLBACK


async def main(namesrv: str) -> None:
    """Send three messages in transactions, of which one is taken back."""
    async with Producer(namesrv, "payments", check=check) as producer:
        for order in ("A", "B", "C"):
            result = await producer.send_in_transaction("Paid", pay, order.encode())
            print(order, result.state.name)

    async with PushConsumer(namesrv, "shipping", start="first", route_s=1) as consumer:
        consumer.subscribe("Paid")
        orders: list[str] = []
        async for message in consumer:
            orders.append(message.body.decode())
            if len(orders) == 2:
                break
    print("shipped:", *sorted(orders))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9876"))
