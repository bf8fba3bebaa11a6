"""FastStream with RocketMQ: `pip install gantrymq[faststream]`."""

import asyncio
import sys

from faststream import FastStream
from pydantic import BaseModel

from gantrymq.faststream import GantryBroker

address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9876"
broker = GantryBroker(address, group="shop", logger=None)
app = FastStream(broker)


class Order(BaseModel):
    """What is ordered."""

    number: int
    price: float


@broker.subscriber("FastOrders", start="first", route_s=1)
@broker.publisher("FastBills")
async def bill(order: Order) -> str:
    """Make a bill of an order."""
    return f"order {order.number}: {order.price * 1.19:.2f}"


@broker.subscriber("FastBills", start="first", route_s=1)
async def show(text: str) -> None:
    """Show a bill, and stop."""
    print(text)
    app.exit()


@app.after_startup
async def order() -> None:
    """Order something."""
    await broker.publish(Order(number=7, price=100), "FastOrders")


if __name__ == "__main__":
    asyncio.run(app.run())
