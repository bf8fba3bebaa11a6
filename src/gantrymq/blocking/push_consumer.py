"""The blocking twin of `gantrymq.client.push_consumer`.

Made by `make blocking` from the asyncio class: change that one, not this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.blocking.base import Blocking, Messages
from gantrymq.client.consuming.process_queue import MIB
from gantrymq.client.consuming.strategies import average
from gantrymq.client.push_consumer import PushConsumer as AsyncPushConsumer

if TYPE_CHECKING:
    import ssl as tls
    from pathlib import Path
    from typing import Unpack

    from gantrymq.client.consuming.handling import Handler
    from gantrymq.client.consuming.options import ConsumeOptions
    from gantrymq.client.consuming.start_position import Start
    from gantrymq.client.consuming.statistics import Statistics
    from gantrymq.client.consuming.strategies import Strategy
    from gantrymq.client.consuming.subscription import Expression
    from gantrymq.client.received import ReceivedMessage
    from gantrymq.client.settings import Timers
    from gantrymq.clock import Clock
    from gantrymq.model.queue import MessageQueue


class PushConsumer(Blocking[AsyncPushConsumer]):
    """A member of a consumer group. Used from any thread, from several at once."""

    def __init__(
        self,
        namesrv: str,
        group: str,
        *,
        mode: str = "clustering",
        orderly: bool = False,
        start: Start = "last",
        strategy: Strategy = average,
        workers: int = 20,
        batch: int = 1,
        pull_batch: int = 32,
        reconsume_max: int = -1,
        consume_timeout_s: float = 15 * 60.0,
        hold_messages: int = 1000,
        hold_bytes: int = 100 * MIB,
        hold_span: int = 2000,
        pop: bool = False,
        pop_invisible_s: float = 60.0,
        close_timeout_s: float = 10.0,
        offsets_directory: Path | str | None = None,
        trace: bool = False,
        trace_topic: str | None = None,
        namespace: str = "",
        instance: str | None = None,
        ssl: tls.SSLContext | None = None,
        access_key: str | None = None,
        secret_key: str | None = None,
        security_token: str | None = None,
        clock: Clock | None = None,
        **settings: Unpack[Timers],
    ) -> None:
        """Prepare; `start`, or `with`, begins.

        Args:
            namesrv: name servers as `host:port;host:port`.
            group: the consumer group.
            mode: `clustering`: members share the messages; `broadcasting`: each gets all of them.
            orderly: each queue's messages one after the other, in order.
            start: where to begin with a queue that the group never read: `first`, `last`, a time.
            strategy: how members share queues (`client.consuming.strategies`).
            workers: handlers that may be at work at once.
            batch: messages for one call of a handler; above 1 it is given a list.
            pull_batch: messages asked for at once; brokers give 32 at most unless set otherwise.
            reconsume_max: attempts before a message goes to the dead letters; -1 is 16, and
                without end in order.
            consume_timeout_s: after this long with a handler a message is given back.
            hold_messages: of one queue, in hand at once; likewise `hold_bytes`, and `hold_span`,
                from the oldest offset to the newest.
            pop: have the broker hand out messages one by one (5.x); a broker that cannot is
                pulled from.
            pop_invisible_s: how long a popped message is kept from others; anew while its handler
                is at work, up to `consume_timeout_s`.
            close_timeout_s: how long `close` waits for handlers.
            offsets_directory: where a broadcasting consumer keeps its offsets; a folder in the
                home directory unless given.
            trace: send trace messages about each message, as Apache's clients do; those of an
                `for` are not traced.
            trace_topic: where to; RMQ_SYS_TRACE_TOPIC unless given.
            namespace: a prefix for topics and groups on the servers.
            instance: a name for this consumer among others on this machine; made up unless given,
                except for broadcasting, where it is `DEFAULT`.
            ssl: for TLS.
            access_key: with `secret_key`, and `security_token` where there is one: signs requests.
            secret_key: see `access_key`.
            security_token: see `access_key`.
            clock: for tests.
            settings: timers of `ClientSettings`, such as `heartbeat_s`.

        Raises:
            InvalidValue: an argument cannot be; the text says which and what to give instead.
        """
        super().__init__(
            AsyncPushConsumer(
                namesrv,
                group,
                mode=mode,
                orderly=orderly,
                start=start,
                strategy=strategy,
                workers=workers,
                batch=batch,
                pull_batch=pull_batch,
                reconsume_max=reconsume_max,
                consume_timeout_s=consume_timeout_s,
                hold_messages=hold_messages,
                hold_bytes=hold_bytes,
                hold_span=hold_span,
                pop=pop,
                pop_invisible_s=pop_invisible_s,
                close_timeout_s=close_timeout_s,
                offsets_directory=offsets_directory,
                trace=trace,
                trace_topic=trace_topic,
                namespace=namespace,
                instance=instance,
                ssl=ssl,
                access_key=access_key,
                secret_key=secret_key,
                security_token=security_token,
                clock=clock,
                **settings,
            )
        )

    @property
    def options(self) -> ConsumeOptions:
        """Return what was given."""
        return self._client.options

    @property
    def group(self) -> str:
        """Return what was given."""
        return self._client.group

    def subscribe(
        self, topic: str, expression: Expression = "*", handler: Handler | None = None
    ) -> None:
        """Read a topic: all of it, tags (`a || b`), or `sql("price > 10")`. Before or after start.

        Without a handler messages wait for `for`. Subscribing again replaces what was said.

        Raises:
            InvalidValue: the topic, the expression or the handler cannot be.
            ClientClosed: it was closed; make another one.
        """
        self._do(lambda: self._client.subscribe(topic, expression, handler))

    def unsubscribe(self, topic: str) -> None:
        """Read a topic no more; what is with handlers is finished."""
        self._do(lambda: self._client.unsubscribe(topic))

    def pause(self, topic: str | None = None) -> None:
        """Ask for no more messages of a topic, or of all; those that are here are handled."""
        self._do(lambda: self._client.pause(topic))

    def resume(self, topic: str | None = None) -> None:
        """Ask again."""
        self._do(lambda: self._client.resume(topic))

    def start(self) -> None:
        """Join the group and begin to read.

        A topic that does not exist yet is read as soon as it does.

        Raises:
            NoRoute: no name server answers.
            ResponseError: a broker refuses an SQL92 expression.
            ClientError: it was started or closed before, or its offsets cannot be kept.
        """
        self._begin(self._client.start())

    def close(self) -> None:
        """Let handlers end, commit offsets, leave the group. Again: nothing.

        A handler may call it; its own message then comes again.
        """
        self._end(self._client.close())

    def __iter__(self) -> Messages[ReceivedMessage]:
        """Return a loop over the messages; the one before it, if any, is over.

        Raises:
            NotStarted, ClientClosed: it does not run.
            InvalidValue: its topics have handlers.
        """
        return self._iterate(self._client.__aiter__)

    def commit(self) -> None:
        """Commit offsets now; they are every few seconds, and when the consumer closes."""
        self._call(self._client.commit())

    @property
    def assignment(self) -> tuple[MessageQueue, ...]:
        """Return the queues that this member reads now, those of the retry topic included.

        With pop, queue -1 is any queue of its broker.
        """
        return self._do(lambda: self._client.assignment)

    @property
    def client_id(self) -> str:
        """Return the id of this member; there once it was started."""
        return self._do(lambda: self._client.client_id)

    @property
    def statistics(self) -> Statistics:
        """Return how much was read and handled."""
        return self._do(lambda: self._client.statistics)
