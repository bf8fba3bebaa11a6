"""A FastStream broker, so that FastStream's subscribers and publishers can use RocketMQ.

    from faststream import FastStream
    from gantrymq.faststream import GantryBroker

    broker = GantryBroker("127.0.0.1:9876", group="billing")
    app = FastStream(broker)

    @broker.subscriber("Orders")
    @broker.publisher("Bills")
    async def bill(order: Order) -> Bill: ...

- A subscriber is a consumer group of its own: `<group>-<topic>`, unless it is given one.
- A handler that returns has acknowledged. One that raises gets the message again later, as the
  broker's delay levels have it, until it goes to the dead letters; other policies are FastStream's
  (`ack_policy`). `reject` sends a message to the dead letters at once.
- Headers, content type and correlation id travel in message properties.
- `broker.request` and handlers that return something to it use RocketMQ's request-reply.

FastStream has no public way to add a broker: this uses its internals, as they are in 0.7. The extra
`gantrymq[faststream]` asks for that release, and another one is refused (`release`). Not there:
batches, `get_one` and iteration over a subscriber, routers of its own, the in-memory test broker
(use `gantrymq.testing`).
"""

from gantrymq.faststream.release import check_release, installed_release

check_release(installed_release())  # before the imports below meet internals that they do not know

from gantrymq.faststream.broker import GantryBroker  # noqa: E402
from gantrymq.faststream.message import GantryMessage  # noqa: E402
from gantrymq.faststream.publishing import GantryPublisher, GantryResponse  # noqa: E402
from gantrymq.faststream.subscribing import GantrySubscriber  # noqa: E402

__all__ = [
    "GantryBroker",
    "GantryMessage",
    "GantryPublisher",
    "GantryResponse",
    "GantrySubscriber",
]
