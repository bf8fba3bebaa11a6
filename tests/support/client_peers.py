"""Connections that exist in a test only: what a broker's handlers see of a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.model.group import ConsumeType, MessageModel, Subscription
from gantrymq.wire.bodies.heartbeat import ConsumerData, Heartbeat, ProducerData

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Iterable

    from gantrymq.wire.command import Command


class FakePeer:
    """A connection that keeps what it is told."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.address = f"10.0.0.1:{number}"
        self.host = bytes([10, 0, 0, 1]) + number.to_bytes(4)
        self.listener = "10.0.0.9:10911"
        self.certificate: tuple[str, ...] = ()
        self.is_open = True
        self.waited_ms = 0
        self.told: list[Command] = []
        self.closed_because: str | None = None

    def __repr__(self) -> str:
        """Show which it is."""
        return f"peer{self.number}"

    def ask(self, request: Command, timeout_s: float) -> Future[Command]:
        """Have nobody to ask."""
        raise NotImplementedError

    def tell(self, request: Command) -> bool:
        """Keep what is sent."""
        self.told.append(request)
        return self.is_open

    def close(self, reason: str) -> None:
        """Be closed."""
        self.is_open = False
        self.closed_because = reason


def subscription(topic: str, expression: str = "*", version: int = 1) -> Subscription:
    """Return a subscription by tags."""
    return Subscription(topic=topic, expression=expression, version=version)


def consumer(
    group: str,
    *subscriptions: Subscription,
    model: MessageModel = MessageModel.CLUSTERING,
    consume_type: ConsumeType = ConsumeType.CONSUME_PASSIVELY,
) -> ConsumerData:
    """Return what a client says of a group that it is a member of."""
    return ConsumerData(
        group_name=group,
        message_model=model,
        consume_type=consume_type,
        subscription_data_set=subscriptions,
    )


def heartbeat(
    client_id: str,
    *consumers: ConsumerData,
    producers: Iterable[str] = (),
    fingerprint: int = 0,
    without_sub: bool = False,
) -> Heartbeat:
    """Return what a client says of itself."""
    return Heartbeat(
        client_id=client_id,
        producer_data_set=tuple(ProducerData(group_name=group) for group in producers),
        consumer_data_set=consumers,
        heartbeat_fingerprint=fingerprint,
        without_sub=without_sub,
    )
