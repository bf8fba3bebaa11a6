"""How FastStream sends: commands, the producer that does them, publishers of handlers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from faststream._internal.configs import PublisherSpecificationConfig, PublisherUsecaseConfig
from faststream._internal.endpoint.publisher import PublisherSpecification, PublisherUsecase
from faststream._internal.endpoint.publisher.fake import FakePublisher
from faststream._internal.endpoint.utils import ParserComposition
from faststream._internal.parser import DefaultCodec
from faststream._internal.producer import ProducerProto
from faststream.exceptions import FeatureNotSupportedException
from faststream.response.publish_type import PublishType
from faststream.response.response import PublishCommand, Response
from faststream.specification.asyncapi.utils import resolve_payloads
from faststream.specification.schema import Message, Operation, PublisherSpec

from gantrymq.faststream.config import GantryBrokerConfig
from gantrymq.faststream.message import CONTENT_TYPE, CORRELATION, Delivery, decode, parse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from faststream._internal.parser import CodecProto

    from gantrymq.client.received import ReceivedMessage
    from gantrymq.client.results import SendResult

REQUEST_S = 3.0


@dataclass(kw_only=True)
class SendOptions:
    """What can be said of a send beside its topic and body."""

    tags: str | None = None
    keys: tuple[str, ...] = ()
    key: str | None = None
    """Same key, same queue."""
    delay_level: int = 0
    timeout_s: float | None = None


class GantryPublishCommand(PublishCommand):
    """A message to be sent."""

    def __init__(
        self,
        body: Any,  # noqa: ANN401 - whatever can be encoded
        *,
        topic: str,
        options: SendOptions,
        _publish_type: PublishType,
        headers: dict[str, str] | None = None,
        correlation_id: str | None = None,
        request: ReceivedMessage | None = None,
    ) -> None:
        """`request` is what it is a reply to."""
        super().__init__(
            body,
            _publish_type=_publish_type,
            destination=topic,
            correlation_id=correlation_id,
            headers=headers,
        )
        self.options = options
        self.request = request

    @classmethod
    def of(cls, command: PublishCommand) -> GantryPublishCommand:
        """Return a command of this kind."""
        if isinstance(command, GantryPublishCommand):
            return command
        return cls(
            command.body,
            topic=command.destination,
            options=SendOptions(),
            headers=command.headers,
            correlation_id=command.correlation_id,
            _publish_type=command.publish_type,
        )


class GantryResponse(Response):
    """What a handler may return to say more than a body."""

    def __init__(
        self,
        body: Any,  # noqa: ANN401 - whatever can be encoded
        *,
        headers: dict[str, Any] | None = None,
        correlation_id: str | None = None,
        tags: str | None = None,
        keys: tuple[str, ...] = (),
        key: str | None = None,
        delay_level: int = 0,
    ) -> None:
        """Say how the result is to be sent."""
        super().__init__(body, headers=headers, correlation_id=correlation_id)
        self.options = SendOptions(tags=tags, keys=keys, key=key, delay_level=delay_level)

    def as_publish_command(self) -> GantryPublishCommand:
        """Return the command that sends it."""
        return GantryPublishCommand(
            self.body,
            topic="",
            options=self.options,
            headers=self.headers,
            correlation_id=self.correlation_id,
            _publish_type=PublishType.PUBLISH,
        )


class GantryProducer(ProducerProto[GantryPublishCommand]):
    """Does what commands say."""

    def __init__(self, parser: Any, decoder: Any) -> None:  # noqa: ANN401 - FastStream's callables
        self._parser = ParserComposition(parser, parse)
        self._decoder = ParserComposition(decoder, decode)
        self.codec: CodecProto = DefaultCodec()
        self.serializer: Any = None
        self.config: GantryBrokerConfig | None = None

    def connect(self, config: GantryBrokerConfig) -> None:
        """Send with the broker's client from now on."""
        self.config = config
        self.serializer = config.fd_config._serializer
        self.codec = config.broker_codec or DefaultCodec()

    async def publish(self, cmd: GantryPublishCommand) -> SendResult:
        """Send a message, or a reply."""
        sender = self._config.sender
        body, properties = await self._encoded(cmd)
        options = cmd.options
        if cmd.request is not None:
            return await sender.reply(cmd.request, body, properties=properties)
        return await sender.send(
            cmd.destination,
            body,
            tags=options.tags,
            keys=options.keys,
            key=options.key,
            delay_level=options.delay_level,
            properties=properties,
            timeout_s=options.timeout_s,
        )

    async def request(self, cmd: GantryPublishCommand) -> Delivery:
        """Send a message and wait for the reply."""
        sender = self._config.sender
        body, properties = await self._encoded(cmd)
        reply = await sender.request(
            cmd.destination,
            body,
            tags=cmd.options.tags,
            keys=cmd.options.keys,
            properties=properties,
            timeout_s=cmd.options.timeout_s or REQUEST_S,
        )
        return Delivery(reply)

    async def publish_batch(self, cmd: GantryPublishCommand) -> Any:  # noqa: ANN401
        """Refuse: batches are not there yet."""
        raise FeatureNotSupportedException("GantryBroker does not publish batches yet")

    @property
    def _config(self) -> GantryBrokerConfig:
        return self.config or GantryBrokerConfig()  # which says that it is not connected

    async def _encoded(self, cmd: GantryPublishCommand) -> tuple[bytes, dict[str, str]]:
        body, content_type = await self.codec.encode(cmd.body, self.serializer)
        properties = {name: str(value) for name, value in (cmd.headers or {}).items() if value}
        if content_type:
            properties[CONTENT_TYPE] = content_type
        if cmd.correlation_id:
            properties[CORRELATION] = cmd.correlation_id
        return body, properties


class ReplyPublisher(FakePublisher):
    """Answers a request."""

    def __init__(self, producer: ProducerProto[Any], request: ReceivedMessage) -> None:
        super().__init__(producer=producer)
        self._request = request

    def patch_command(self, cmd: PublishCommand) -> GantryPublishCommand:
        """Return the command as a reply."""
        patched = GantryPublishCommand.of(super().patch_command(cmd))
        patched.request = self._request
        return patched


@dataclass(kw_only=True)
class PublisherConfig(PublisherUsecaseConfig):
    """A publisher's settings."""

    _outer_config: GantryBrokerConfig = field(default_factory=GantryBrokerConfig)
    topic: str
    options: SendOptions
    headers: dict[str, str]


@dataclass(kw_only=True)
class PublisherSpecConfig(PublisherSpecificationConfig):
    """What AsyncAPI says of a publisher."""

    topic: str


class GantryPublisherSpecification(PublisherSpecification[GantryBrokerConfig, PublisherSpecConfig]):
    """What AsyncAPI says of a publisher."""

    @property
    def topic(self) -> str:
        """Return the topic with its prefix."""
        return f"{self._outer_config.prefix}{self.config.topic}"

    @property
    def name(self) -> str:
        """Return the name of its channel."""
        return self.config.title_ or f"{self.topic}:Publisher"

    def get_schema(self) -> dict[str, PublisherSpec]:
        """Return its channel."""
        payloads = resolve_payloads(self.get_payloads(), "Publisher")
        message = Message(title=f"{self.name}:Message", payload=payloads)
        return {
            self.name: PublisherSpec(
                address=self.topic,
                description=self.config.description_,
                operation=Operation(message=message, bindings=None),
                bindings=None,
            )
        }


class GantryPublisher(PublisherUsecase):
    """Sends to one topic: what a handler returns, or what it is given."""

    _outer_config: GantryBrokerConfig

    def __init__(
        self, config: PublisherConfig, specification: PublisherSpecification[Any, Any]
    ) -> None:
        super().__init__(config, specification)
        self._topic = config.topic
        self._options = config.options
        self._headers = config.headers

    @property
    def topic(self) -> str:
        """Return the topic with its prefix."""
        return f"{self._outer_config.prefix}{self._topic}"

    async def publish(
        self,
        message: Any,  # noqa: ANN401 - whatever can be encoded
        *,
        headers: dict[str, str] | None = None,
        correlation_id: str | None = None,
    ) -> Any:  # noqa: ANN401 - a SendResult, or what a middleware makes of it
        """Send a message."""
        return await self._basic_publish(
            self._command(message, PublishType.PUBLISH, headers, correlation_id),
            producer=self._outer_config.producer,
            _extra_middlewares=(),
        )

    async def _publish(self, cmd: PublishCommand, *, _extra_middlewares: Iterable[Any]) -> Any:  # noqa: ANN401
        """Send what a handler returned."""
        command = GantryPublishCommand.of(cmd)
        command.destination = self.topic
        command.request = None
        command.add_headers(self._headers, override=False)
        if command.options == SendOptions():
            command.options = self._options
        return await self._basic_publish(
            command, producer=self._outer_config.producer, _extra_middlewares=_extra_middlewares
        )

    async def request(
        self,
        message: Any,  # noqa: ANN401 - whatever can be encoded
        *,
        headers: dict[str, str] | None = None,
        correlation_id: str | None = None,
    ) -> Any:  # noqa: ANN401 - a GantryMessage, or what a middleware makes of it
        """Send a message and return the reply."""
        return await self._basic_request(
            self._command(message, PublishType.REQUEST, headers, correlation_id),
            producer=self._outer_config.producer,
        )

    def _command(
        self,
        message: Any,  # noqa: ANN401
        kind: PublishType,
        headers: dict[str, str] | None,
        correlation_id: str | None,
    ) -> GantryPublishCommand:
        return GantryPublishCommand(
            message,
            topic=self.topic,
            options=self._options,
            headers=self._headers | (headers or {}),
            correlation_id=correlation_id or self._outer_config.id_generator(),
            _publish_type=kind,
        )
