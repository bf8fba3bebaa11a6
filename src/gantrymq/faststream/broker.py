"""The broker: what an application makes first, and registers its handlers with."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from fast_depends import dependency_provider
from faststream import ContextRepo
from faststream._internal.broker import BrokerUsecase
from faststream._internal.constants import EMPTY
from faststream._internal.di import FastDependsConfig
from faststream._internal.endpoint.subscriber.call_item import CallsCollection
from faststream._internal.logger import DefaultLoggerStorage, make_logger_state
from faststream._internal.logger.logging import get_broker_logger
from faststream.response.publish_type import PublishType
from faststream.specification.schema import BrokerSpec

from gantrymq.client.errors import NoRoute, NoRouteCause
from gantrymq.client.producer import Producer
from gantrymq.faststream.config import GantryBrokerConfig
from gantrymq.faststream.message import Delivery
from gantrymq.faststream.publishing import (
    GantryProducer,
    GantryPublishCommand,
    GantryPublisher,
    GantryPublisherSpecification,
    PublisherConfig,
    PublisherSpecConfig,
    SendOptions,
)
from gantrymq.faststream.subscribing import (
    GantrySubscriber,
    GantrySubscriberSpecification,
    SubscriberConfig,
    SubscriberSpecConfig,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

    from faststream.middlewares import AckPolicy

    from gantrymq.client.consuming.subscription import Expression


class _LoggerStorage(DefaultLoggerStorage):
    """Makes the logger that FastStream writes to unless it is given one."""

    def __init__(self) -> None:
        super().__init__()
        self._level = logging.INFO

    def set_level(self, level: int) -> None:
        self._level = level

    def register_subscriber(self, params: dict[str, Any]) -> None:
        """Have nothing to note."""

    def get_logger(self, *, context: ContextRepo) -> Any:  # noqa: ANN401 - FastStream's protocol
        found = self._get_logger_ref()
        if found is None:
            found = get_broker_logger(
                name="gantrymq",
                default_context={"topic": ""},
                message_id_ln=10,
                fmt="%(asctime)s %(levelname)-8s - %(topic)s | %(message_id)s - %(message)s",
                context=context,
                log_level=self._level,
            )
            self._logger_ref.add(found)
        return found


class GantryBroker(BrokerUsecase[Delivery, Producer, GantryBrokerConfig]):
    """RocketMQ for FastStream."""

    def __init__(
        self,
        namesrv: str = "127.0.0.1:9876",
        *,
        group: str = "faststream",
        middlewares: Sequence[Any] = (),
        dependencies: Sequence[Any] = (),
        parser: Any = None,  # noqa: ANN401 - FastStream's callables
        decoder: Any = None,  # noqa: ANN401
        codec: Any = None,  # noqa: ANN401
        routers: Iterable[Any] = (),
        ack_policy: AckPolicy = EMPTY,
        graceful_timeout: float | None = 15.0,
        logger: Any = EMPTY,  # noqa: ANN401
        log_level: int = logging.INFO,
        apply_types: bool = True,
        description: str | None = None,
        **connecting: Any,  # noqa: ANN401 - arguments of the clients
    ) -> None:
        """Prepare; FastStream, or `async with` and `start`, begins.

        Args:
            namesrv: the name servers, `host:port` with `;` between them.
            group: the producer group, and the front part of consumer groups.
            middlewares: and what follows up to `description`: FastStream's.
            connecting: for all clients: `namespace`, `ssl`, `access_key`, `secret_key`.
        """
        producer = GantryProducer(parser, decoder)
        super().__init__(
            routers=routers,
            config=GantryBrokerConfig(
                namesrv=namesrv,
                group=group,
                connecting=connecting,
                producer=producer,
                broker_middlewares=middlewares,
                broker_dependencies=dependencies,
                broker_parser=parser,
                broker_decoder=decoder,
                broker_codec=codec,
                ack_policy=ack_policy,
                graceful_timeout=graceful_timeout,
                logger=make_logger_state(logger, log_level, _LoggerStorage),
                fd_config=FastDependsConfig(
                    use_fastdepends=apply_types,
                    provider=dependency_provider,
                    context=ContextRepo(),
                ),
                extra_context={"broker": self},
            ),
            specification=BrokerSpec(
                description=description,
                url=[namesrv],
                protocol="rocketmq",
                protocol_version=None,
                tags=(),
                security=None,
            ),
        )
        self._sending = producer
        self._own_config = self.config.broker_config

    # -- life -----------------------------------------------------------------------------------

    async def _connect(self) -> Producer:
        config = self._own_config
        client = Producer(config.namesrv, config.group, **config.connecting)
        await client.start()
        config.client = client
        self._sending.connect(config)
        return client

    async def start(self) -> None:
        """Connect, and start all subscribers."""
        await self.connect()
        await super().start()

    async def stop(
        self,
        exc_type: type[BaseException] | None = None,
        exc_val: BaseException | None = None,
        exc_tb: TracebackType | None = None,
    ) -> None:
        """Stop all subscribers, then the producer."""
        await super().stop(exc_type, exc_val, exc_tb)
        client, self._connection = self._connection, None
        self._own_config.client = None
        if client is not None:
            await client.close()

    async def ping(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - FastStream's name
        """Tell whether a name server answers."""
        if self._connection is None:
            return False
        try:
            await self._connection.queues("ping")
        except NoRoute as error:
            return error.cause is not NoRouteCause.NO_NAME_SERVER
        return True

    # -- sending --------------------------------------------------------------------------------

    async def publish(
        self,
        message: Any,  # noqa: ANN401 - whatever can be encoded
        topic: str,
        *,
        tags: str | None = None,
        keys: Sequence[str] = (),
        key: str | None = None,
        delay_level: int = 0,
        headers: dict[str, str] | None = None,
        correlation_id: str | None = None,
        timeout_s: float | None = None,
    ) -> Any:  # noqa: ANN401 - a SendResult, or what a middleware makes of it
        """Send a message; see `Producer.send` for what the arguments mean."""
        options = SendOptions(
            tags=tags, keys=tuple(keys), key=key, delay_level=delay_level, timeout_s=timeout_s
        )
        command = GantryPublishCommand(
            message,
            topic=topic,
            options=options,
            headers=headers,
            correlation_id=correlation_id or self.config.id_generator(),
            _publish_type=PublishType.PUBLISH,
        )
        return await self._basic_publish(command, producer=self._sending)

    async def request(  # type: ignore[override]
        self,
        message: Any,  # noqa: ANN401 - whatever can be encoded
        topic: str,
        *,
        tags: str | None = None,
        headers: dict[str, str] | None = None,
        correlation_id: str | None = None,
        timeout: float = 3.0,  # noqa: ASYNC109 - FastStream's name
    ) -> Any:  # noqa: ANN401 - a GantryMessage, or what a middleware makes of it
        """Send a message and return the reply of whoever handles it."""
        command = GantryPublishCommand(
            message,
            topic=topic,
            options=SendOptions(tags=tags, timeout_s=timeout),
            headers=headers,
            correlation_id=correlation_id or self.config.id_generator(),
            _publish_type=PublishType.REQUEST,
        )
        return await self._basic_request(command, producer=self._sending)

    # -- handlers -------------------------------------------------------------------------------

    def subscriber(  # type: ignore[override]
        self,
        topic: str,
        expression: Expression = "*",
        *,
        group: str | None = None,
        ack_policy: AckPolicy = EMPTY,
        no_reply: bool = False,
        dependencies: Sequence[Any] = (),
        parser: Any = None,  # noqa: ANN401 - FastStream's callables
        decoder: Any = None,  # noqa: ANN401
        title: str | None = None,
        description: str | None = None,
        include_in_schema: bool = True,
        **consumer: Any,  # noqa: ANN401 - arguments of PushConsumer
    ) -> GantrySubscriber:
        """Have a function handle the messages of a topic.

        Args:
            topic: the topic.
            expression: tags (`a || b`), or `sql("price > 10")`.
            group: the consumer group; `<broker's group>-<topic>` unless given.
            ack_policy: and what follows up to `include_in_schema`: FastStream's.
            consumer: arguments of `PushConsumer`: `orderly`, `start`, `workers` and the like.
        """
        calls = CallsCollection[Delivery]()
        config: Any = self.config
        subscriber = GantrySubscriber(
            SubscriberConfig(
                topic=topic,
                group=group,
                expression=expression,
                consumer=consumer,
                no_reply=no_reply,
                _ack_policy=ack_policy,
                _outer_config=config,
            ),
            GantrySubscriberSpecification(
                config,
                SubscriberSpecConfig(
                    topic=topic,
                    title_=title,
                    description_=description,
                    include_in_schema=include_in_schema,
                ),
                calls,
            ),
            calls,
        )
        super().subscriber(subscriber)
        return subscriber.add_call(
            parser_=parser or self._parser,
            decoder_=decoder or self._decoder,
            dependencies_=dependencies,
        )

    def publisher(  # type: ignore[override]
        self,
        topic: str,
        *,
        tags: str | None = None,
        keys: Sequence[str] = (),
        key: str | None = None,
        delay_level: int = 0,
        headers: dict[str, str] | None = None,
        title: str | None = None,
        description: str | None = None,
        schema: Any = None,  # noqa: ANN401 - a type
        include_in_schema: bool = True,
    ) -> GantryPublisher:
        """Have what a function returns sent to a topic."""
        config: Any = self.config
        options = SendOptions(tags=tags, keys=tuple(keys), key=key, delay_level=delay_level)
        publisher = GantryPublisher(
            PublisherConfig(
                topic=topic, options=options, headers=headers or {}, _outer_config=config
            ),
            GantryPublisherSpecification(
                config,
                PublisherSpecConfig(
                    topic=topic,
                    schema_=schema,
                    title_=title,
                    description_=description,
                    include_in_schema=include_in_schema,
                ),
            ),
        )
        super().publisher(publisher)
        return publisher
