"""The consumer that calls you: messages come to a handler, or to an `async for`.

    consumer = PushConsumer("127.0.0.1:9876", "billing")
    consumer.subscribe("orders", "paid || refunded", handler)
    async with consumer:
        await asyncio.sleep(3600)

    async with PushConsumer("127.0.0.1:9876", "billing") as consumer:
        consumer.subscribe("orders")
        async for message in consumer:
            ...

What a handler may be, and how it says that it failed, is in `consuming.handling`; what becomes of
the last message of a loop, in `consuming.iterating`.
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

from gantrymq.client.arguments import folder
from gantrymq.client.consuming.assembly import (
    make_delivery,
    make_member,
    open_offsets,
    shown_properties,
)
from gantrymq.client.consuming.calls import ConsumerCalls
from gantrymq.client.consuming.concurrent import Concurrent
from gantrymq.client.consuming.handling import Handler, as_async, check_handler
from gantrymq.client.consuming.iterating import Iteration
from gantrymq.client.consuming.options import ConsumeOptions
from gantrymq.client.consuming.process_queue import MIB
from gantrymq.client.consuming.rebalancing import Rebalancing
from gantrymq.client.consuming.running_info import BrokerRequests
from gantrymq.client.consuming.statistics import Statistics, TopicCounters
from gantrymq.client.consuming.strategies import Strategy, average
from gantrymq.client.consuming.subscribed import Subscribed, Subscriptions, refuse
from gantrymq.client.consuming.threads import HandlerThreads
from gantrymq.client.consuming.tracing import ConsumeTracer, run_traced
from gantrymq.client.core import ClientCore
from gantrymq.client.errors import (
    ClientClosed,
    GantryError,
    InvalidValue,
    NoRoute,
    NoRouteCause,
    ResponseError,
)
from gantrymq.client.settings import ClientSettings, credentials_of, parse_name_servers
from gantrymq.model.group import ConsumeType, Subscription
from gantrymq.model.names import TRACE_TOPIC, check_group, check_topic
from gantrymq.wire.bodies.heartbeat import ConsumerData

if TYPE_CHECKING:
    import ssl as tls
    from pathlib import Path
    from types import TracebackType

    from gantrymq.client.consuming.handling import Run
    from gantrymq.client.consuming.member import Member
    from gantrymq.client.consuming.orderly import Orderly
    from gantrymq.client.consuming.process_queue import Held
    from gantrymq.client.consuming.start_position import Start
    from gantrymq.client.consuming.subscription import Expression
    from gantrymq.client.settings import Timers
    from gantrymq.clock import Clock
    from gantrymq.model.queue import MessageQueue

logger = logging.getLogger(__name__)

_DEFAULT_INSTANCE: Final = "DEFAULT"


class PushConsumer:
    """A member of a consumer group. Used on the event loop that `start` ran on."""

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
        """Prepare; `start`, or `async with`, begins.

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
                `async for` are not traced.
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
        self.options = ConsumeOptions(
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
            offsets_directory=folder("offsets_directory", offsets_directory),
        )
        self.group = check_group(group)
        keys = credentials_of(access_key, secret_key, security_token)
        own_instance = _DEFAULT_INSTANCE if self.options.broadcasting else None
        made = ClientSettings(
            name_servers=parse_name_servers(namesrv), namespace=namespace, ssl=ssl,
            instance=instance or own_instance, credentials=keys, **settings,
        )  # fmt: skip
        self._core = ClientCore(made, clock)
        self._full_group = self._core.namespace.wrap(self.group)
        self._statistics = Statistics()
        self._subscriptions = Subscriptions(self._statistics)
        self._nobody = Subscribed("", Subscription(""), refuse, TopicCounters())
        self._trace_topic = check_topic(trace_topic or TRACE_TOPIC) if trace else None
        self._tracer: ConsumeTracer | None = None
        self._threads: HandlerThreads | None = None
        self._member: Member | None = None
        self._delivery: Concurrent | Orderly | None = None
        self._rebalancing: Rebalancing | None = None
        self._loop_over: Iteration | None = None
        self._is_closed = False

    # -- subscriptions --------------------------------------------------------------------------

    def subscribe(
        self, topic: str, expression: Expression = "*", handler: Handler | None = None
    ) -> None:
        """Read a topic: all of it, tags (`a || b`), or `sql("price > 10")`. Before or after start.

        Without a handler messages wait for `async for`. Subscribing again replaces what was said.

        Raises:
            InvalidValue: the topic, the expression or the handler cannot be.
            ClientClosed: it was closed; make another one.
        """
        if self._is_closed:
            raise ClientClosed("the consumer was closed: make a new one")
        check_topic(topic)
        if handler is not None:
            check_handler(handler)
        others = [one for one in self._subscriptions.user_topics if one.name != topic]
        if any(one.iterates != (handler is None) for one in others):
            raise InvalidValue(
                "some topics have a handler and some have none: give all of them one, or read all"
                " with `async for`"
            )
        run = None if handler is None else as_async(handler, self._handler_threads)
        if run is not None and self._trace_topic is not None:
            run = functools.partial(self._run_traced, run)
        full = self._core.namespace.wrap(topic)
        version = self._core.clock.now_ms()
        self._subscriptions.put(full, topic, expression, version, run)
        if self._member is not None:
            self._start_workers()
            self._member.resubscribed(full)
            self._core.routes.watch(full, self._soon)
            self._core.heartbeats.changed()
            self._soon()

    def unsubscribe(self, topic: str) -> None:
        """Read a topic no more; what is with handlers is finished."""
        full = self._core.namespace.wrap(topic)
        if self._subscriptions.remove(full) is not None and self._rebalancing is not None:
            self._core.routes.unwatch(full, self._soon)
            self._core.heartbeats.changed()
            self._rebalancing.soon()

    def pause(self, topic: str | None = None) -> None:
        """Ask for no more messages of a topic, or of all; those that are here are handled."""
        for one in self._named(topic):
            one.pause()

    def resume(self, topic: str | None = None) -> None:
        """Ask again."""
        for one in self._named(topic):
            one.resume()

    def _named(self, topic: str | None) -> list[Subscribed]:
        if topic is None:
            return list(self._subscriptions)
        found = self._subscriptions.named(topic)
        if found is None:
            raise InvalidValue(f"{topic!r} is not subscribed to: subscribe first")
        return [found]

    # -- life -----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Join the group and begin to read.

        A topic that does not exist yet is read as soon as it does.

        Raises:
            NoRoute: no name server answers.
            ResponseError: a broker refuses an SQL92 expression.
            ClientError: it was started or closed before, or its offsets cannot be kept.
        """
        await self._core.start()
        try:
            await self._start()
        except BaseException:
            await self.close()
            raise

    async def _start(self) -> None:
        core, options = self._core, self.options
        calls = ConsumerCalls(core, self._full_group)
        if self._trace_topic is not None:
            self._tracer = ConsumeTracer(core, self._full_group, self._trace_topic)
        offsets = await open_offsets(calls, options)
        self._delivery = make_delivery(calls, options, self._find)
        self._member = make_member(
            calls, options, self._subscriptions, offsets, self._delivery, self._statistics
        )
        self._rebalancing = Rebalancing(
            self._member,
            options.strategy,
            broadcasting=options.broadcasting,
            period_s=core.settings.rebalance_s,
        )
        requests = BrokerRequests(
            self._member,
            self._rebalancing,
            shown_properties(core, options),
            orderly=options.orderly,
            takes_lists=options.batch > 1,
        )
        requests.register()
        await self._join(calls)
        if self._is_closed:
            raise ClientClosed("the consumer was closed while it started")
        self._spawn_tasks()

    async def _join(self, calls: ConsumerCalls) -> None:
        """Find the brokers, be a member there, and take up queues."""
        core = self._core
        if not self.options.broadcasting:
            self._subscriptions.put_retry(self._full_group, core.clock.now_ms())
        for one in self._subscriptions:
            core.routes.watch(one.topic, self._soon)
        for one in self._subscriptions.user_topics:
            try:
                await core.routes.get(one.topic)
            except NoRoute as error:
                if error.cause is NoRouteCause.NO_NAME_SERVER:
                    raise
                logger.warning("%s", error)
        core.heartbeats.consumer(self._full_group, self._consumer_data)
        await core.heartbeats.now()
        for one in self._subscriptions.sql:
            try:
                await calls.check(one.subscription)
            except ResponseError:
                raise
            except GantryError as error:
                logger.warning("%s was not checked: %s", one.topic, error)
        if self._rebalancing is not None:
            await self._rebalancing.look()

    def _spawn_tasks(self) -> None:
        core, member, rebalancing = self._core, self._member, self._rebalancing
        if member is None or rebalancing is None:
            return
        self._start_workers()
        core.spawn(rebalancing.run(), "rebalance")
        core.spawn(member.keep_offsets(core.settings.persist_s), "offsets")
        if member.locks is not None:
            core.spawn(member.locks.run(lambda: member.queues), "locks")

    def _start_workers(self) -> None:
        """Have handlers called, as soon as there is one."""
        handled = any(not one.iterates for one in self._subscriptions)
        if handled and isinstance(self._delivery, Concurrent):
            self._delivery.start()

    @property
    def _iterates(self) -> bool:
        topics = self._subscriptions.user_topics
        return bool(topics) and all(one.iterates for one in topics)

    async def close(self) -> None:
        """Let handlers end, commit offsets, leave the group. Again: nothing.

        A handler may call it; its own message then comes again.
        """
        await self._core.close(self._finish)
        self._is_closed = True
        if self._threads is not None:
            self._threads.close()  # its loop may have been closed before it was

    async def _finish(self) -> None:
        self._is_closed = True
        if self._loop_over is not None:
            self._loop_over.give_up()
        if self._rebalancing is not None:
            self._rebalancing.stop()
        if self._member is not None:
            await self._member.close(self.options.close_timeout_s)
        if self._delivery is not None:
            self._delivery.inbox.wake_all()
        if self._tracer is not None:
            await self._tracer.close(self._core.settings.close_timeout_s)
        if self._threads is not None:
            self._threads.close()

    async def __aenter__(self) -> Self:
        """Start."""
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close; without an exception the last message of a loop is acknowledged."""
        if kind is None and self._loop_over is not None:
            self._loop_over.acknowledge()
        await self.close()

    # -- messages -------------------------------------------------------------------------------

    def __aiter__(self) -> Iteration:
        """Return a loop over the messages; the one before it, if any, is over.

        Raises:
            NotStarted, ClientClosed: it does not run.
            InvalidValue: its topics have handlers.
        """
        self._core.check_usable()
        if self._delivery is None or not self._iterates:
            raise InvalidValue(
                "the messages of this consumer go to handlers: subscribe without one to loop"
            )
        if self._loop_over is not None:
            self._loop_over.give_up()
        self._loop_over = Iteration(self._delivery, lambda: self._is_closed)
        return self._loop_over

    async def commit(self) -> None:
        """Commit offsets now; they are every few seconds, and when the consumer closes."""
        self._core.check_usable()
        if self._member is not None:
            await self._member.commit()

    @property
    def assignment(self) -> tuple[MessageQueue, ...]:
        """Return the queues that this member reads now, those of the retry topic included.

        With pop, queue -1 is any queue of its broker.
        """
        if self._member is None:
            return ()
        popping = self._member.popping
        popped = popping.queues if popping is not None else ()
        return tuple(sorted({*self._member.readers, *popped}))

    @property
    def client_id(self) -> str:
        """Return the id of this member; there once it was started."""
        return self._core.client_id

    @property
    def statistics(self) -> Statistics:
        """Return how much was read and handled."""
        return self._statistics

    # -- what the parts ask for -----------------------------------------------------------------

    def _soon(self, _route: object = None) -> None:
        if self._rebalancing is not None:
            self._rebalancing.soon()

    def _find(self, held: Held) -> Subscribed:
        """Return whose message of a retry topic it is; nobody's, if its topic is not read here."""
        found = self._subscriptions.named(held.message.topic)
        if found is None and self._iterates:
            found = self._subscriptions.named(held.queue.queue.topic)
        return found or self._nobody

    async def _run_traced(self, run: Run, argument: Any) -> Any:  # noqa: ANN401
        if self._tracer is None:
            return await run(argument)
        return await run_traced(self._tracer, run, argument)

    def _handler_threads(self) -> HandlerThreads:
        if self._threads is None:
            self._threads = HandlerThreads(self.options.workers, f"gantrymq-{self.group[:32]}")
        return self._threads

    def _consumer_data(self) -> ConsumerData:
        return ConsumerData(
            group_name=self._full_group,
            consume_type=ConsumeType.CONSUME_PASSIVELY,
            message_model=self.options.model,
            consume_from_where=self.options.start_position.where,
            subscription_data_set=self._subscriptions.data(),
        )
