"""A message as FastStream has it, and how it was settled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from faststream.message import AckStatus, StreamMessage, decode_message

if TYPE_CHECKING:
    from gantrymq.client.received import ReceivedMessage

CONTENT_TYPE: Final = "content-type"
CORRELATION: Final = "correlation-id"
"""Properties that FastStream's own fields travel in."""


class Delivery:
    """A message that was received, and what became of it: the raw message of FastStream."""

    __slots__ = ("outcome", "received")

    def __init__(self, received: ReceivedMessage) -> None:
        self.received = received
        self.outcome: AckStatus | None = None


class GantryMessage(StreamMessage[Delivery]):
    """A message of a topic; `raw_message.received` has everything that RocketMQ says of it."""

    async def ack(self) -> None:
        """Be done with it."""
        self._settle(AckStatus.ACKED)
        await super().ack()

    async def nack(self) -> None:
        """Have it delivered again later."""
        self._settle(AckStatus.NACKED)
        await super().nack()

    async def reject(self) -> None:
        """Give it up: it goes to the dead letters."""
        self._settle(AckStatus.REJECTED)
        await super().reject()

    def _settle(self, outcome: AckStatus) -> None:
        if self.committed is None:
            self.raw_message.outcome = outcome


async def parse(delivery: Delivery) -> GantryMessage:
    """Return FastStream's message for a delivery."""
    received = delivery.received
    properties = dict(received.properties)
    return GantryMessage(
        raw_message=delivery,
        body=received.body,
        headers=properties,
        reply_to=received.reply_to or "",
        content_type=properties.get(CONTENT_TYPE),
        correlation_id=properties.get(CORRELATION) or received.message_id,
        message_id=received.message_id,
    )


async def decode(message: StreamMessage[Any]) -> Any:  # noqa: ANN401 - whatever it holds
    """Return the body as its content type says."""
    return decode_message(message)
