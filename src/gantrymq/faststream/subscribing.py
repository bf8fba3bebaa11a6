"""How FastStream receives: a subscriber is a push consumer whose handler is FastStream's chain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from faststream._internal.configs import SubscriberSpecificationConfig, SubscriberUsecaseConfig
from faststream._internal.constants import EMPTY
from faststream._internal.endpoint.subscriber import SubscriberSpecification, SubscriberUsecase
from faststream.exceptions import FeatureNotSupportedException
from faststream.message import AckStatus
from faststream.middlewares import AckPolicy
from faststream.specification.asyncapi.utils import resolve_payloads
from faststream.specification.schema import Message, Operation, SubscriberSpec

from gantrymq.client.consuming.handling import Later
from gantrymq.client.push_consumer import PushConsumer
from gantrymq.faststream.config import GantryBrokerConfig
from gantrymq.faststream.message import Delivery, decode, parse
from gantrymq.faststream.publishing import ReplyPublisher

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from faststream._internal.endpoint.publisher import PublisherProto
    from faststream._internal.endpoint.subscriber.call_item import CallsCollection
    from faststream.message import StreamMessage

    from gantrymq.client.consuming.subscription import Expression
    from gantrymq.client.received import ReceivedMessage
    from gantrymq.faststream.message import GantryMessage

GIVE_UP = -1
"""The delay level that sends a message to the dead letters."""


@dataclass(kw_only=True)
class SubscriberConfig(SubscriberUsecaseConfig):
    """A subscriber's settings."""

    _outer_config: GantryBrokerConfig = field(default_factory=GantryBrokerConfig)
    topic: str
    group: str | None
    expression: Expression
    consumer: dict[str, Any]
    """Arguments of its `PushConsumer`."""

    @property
    def ack_policy(self) -> AckPolicy:
        """Return when a message is acknowledged: unless said otherwise, if its handler returns."""
        if self._ack_policy is not EMPTY:
            return self._ack_policy
        policy = self._outer_config.ack_policy
        return AckPolicy.NACK_ON_ERROR if policy is EMPTY else policy


@dataclass(kw_only=True)
class SubscriberSpecConfig(SubscriberSpecificationConfig):
    """What AsyncAPI says of a subscriber."""

    topic: str


class GantrySubscriberSpecification(
    SubscriberSpecification[GantryBrokerConfig, SubscriberSpecConfig]
):
    """What AsyncAPI says of a subscriber."""

    @property
    def topic(self) -> str:
        """Return the topic with its prefix."""
        return f"{self._outer_config.prefix}{self.config.topic}"

    @property
    def channel_labels(self) -> list[str]:
        """Return what its channel is called."""
        return [self.topic]

    def get_schema(self) -> dict[str, SubscriberSpec]:
        """Return its channel."""
        payloads = resolve_payloads(self.get_payloads())
        message = Message(title=f"{self.name}:Message", payload=payloads)
        return {
            self.name: SubscriberSpec(
                address=self.topic,
                description=self.description,
                operation=Operation(message=message, bindings=None),
                bindings=None,
            )
        }


class GantrySubscriber(SubscriberUsecase[Delivery]):
    """Reads one topic as a member of a group."""

    _outer_config: GantryBrokerConfig

    def __init__(
        self,
        config: SubscriberConfig,
        specification: SubscriberSpecification[Any, Any],
        calls: CallsCollection[Delivery],
    ) -> None:
        config.parser = parse
        config.decoder = decode
        super().__init__(config, specification, calls)
        self._topic = config.topic
        self._group = config.group
        self._expression = config.expression
        self._arguments = config.consumer
        self._consumer: PushConsumer | None = None

    @property
    def topic(self) -> str:
        """Return the topic with its prefix."""
        return f"{self._outer_config.prefix}{self._topic}"

    @property
    def group(self) -> str:
        """Return the consumer group."""
        return self._group or f"{self._outer_config.group}-{self.topic}"

    async def start(self) -> None:
        """Join the group."""
        await super().start()
        self._post_start()
        if self.calls:
            config = self._outer_config
            self._consumer = PushConsumer(
                config.namesrv, self.group, **(config.connecting | self._arguments)
            )
            self._consumer.subscribe(self.topic, self._expression, self._handle)
            await self._consumer.start()

    async def stop(self) -> None:
        """Let handlers end, and leave the group."""
        self.running = False  # what arrives from now on is for another member
        consumer, self._consumer = self._consumer, None
        await super().stop()
        if consumer is not None:
            await consumer.close()

    async def _handle(self, received: ReceivedMessage) -> None:
        """Let FastStream handle a message, and settle it as that went."""
        delivery = Delivery(received)
        await self.consume(delivery)
        if delivery.outcome is AckStatus.REJECTED:
            raise Later(GIVE_UP)
        if delivery.outcome is not AckStatus.ACKED:
            raise Later

    def _make_response_publisher(
        self, message: StreamMessage[Delivery]
    ) -> Sequence[PublisherProto]:
        return (ReplyPublisher(self._outer_config.producer, message.raw_message.received),)

    def get_log_context(self, message: StreamMessage[Delivery] | None) -> dict[str, str]:
        """Return what a line of the log says of a message."""
        return {"topic": self.topic, "message_id": getattr(message, "message_id", "")}

    async def get_one(self, *, timeout: float = 5.0) -> GantryMessage | None:  # noqa: ASYNC109
        """Refuse: single messages are not there yet."""
        raise FeatureNotSupportedException("GantryBroker has no get_one; use gantrymq.PullConsumer")

    def __aiter__(self) -> AsyncIterator[GantryMessage]:
        """Refuse: iteration is not there yet."""
        raise FeatureNotSupportedException(
            "GantryBroker has no iteration over a subscriber; use gantrymq.PushConsumer"
        )
