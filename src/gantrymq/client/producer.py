"""The producer: what an application sends messages with.

    async with Producer("127.0.0.1:9876", "orders") as producer:
        result = await producer.send("Orders", b"one more", tags="new", keys=["4711"])

One object is enough for a program: sends may overlap, from as many tasks as there are, and they
share one connection to each broker. It belongs to the event loop that it was started on.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Self

from gantrymq.client.arguments import at_least, function, seconds
from gantrymq.client.batches import batch_of, batches_of, check_one_key
from gantrymq.client.core import ClientCore
from gantrymq.client.faults import Faults
from gantrymq.client.outgoing import encoded
from gantrymq.client.preparing import Preparing, plain_tags
from gantrymq.client.recalling import recall
from gantrymq.client.requests import Requests
from gantrymq.client.sending import Sending
from gantrymq.client.settings import (
    ClientSettings,
    credentials_of,
    instead_of,
    parse_name_servers,
)
from gantrymq.client.tracing import Tracer
from gantrymq.client.transactions import Transactions
from gantrymq.errors import InvalidValue
from gantrymq.limits import BODY_BYTES_MAX
from gantrymq.model.message import Message
from gantrymq.model.names import TRACE_TOPIC, check_group, check_topic
from gantrymq.wire import properties as names

if TYPE_CHECKING:
    import ssl as tls
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from types import TracebackType

    from gantrymq.client.lanes import Target
    from gantrymq.client.outgoing import Outgoing
    from gantrymq.client.received import ReceivedMessage
    from gantrymq.client.results import SendResult, TransactionResult
    from gantrymq.client.selection import Selector
    from gantrymq.client.transactions import Check, Execute
    from gantrymq.clock import Clock
    from gantrymq.model.queue import MessageQueue

logger = logging.getLogger(__name__)

DEFAULT_GROUP: Final = "DEFAULT_PRODUCER"
RETRIES_MAX: Final = 100


class Producer:
    """Sends messages."""

    def __init__(
        self,
        namesrv: str,
        group: str = DEFAULT_GROUP,
        *,
        namespace: str = "",
        instance: str | None = None,
        ssl: tls.SSLContext | None = None,
        access_key: str | None = None,
        secret_key: str | None = None,
        security_token: str | None = None,
        timeout_s: float = 3.0,
        retries: int = 2,
        retry_other_broker_when_not_stored: bool = False,
        compress_from_bytes: int = 4096,
        compression: str | None = "zlib",
        message_bytes_max: int = BODY_BYTES_MAX,
        avoid_slow_brokers: bool = False,
        trace: bool = False,
        trace_topic: str | None = None,
        check: Check | None = None,
        in_flight_max: int = 10_000,
        vip: bool = False,
        clock: Clock | None = None,
        settings: ClientSettings | None = None,
    ) -> None:
        """Make a producer; `start`, or `async with`, starts it.

        Args:
            namesrv: the name servers, `host:port` with `;` between them.
            group: the producer group, which matters for transactions and to whoever watches.
            namespace: put before every topic and group, as `namespace%topic`.
            instance: the part of the client id behind `@`; made up unless given.
            ssl: the TLS context of all connections; without one they are plain.
            access_key: who signs the requests; goes with `secret_key`.
            secret_key: what they are signed with.
            security_token: a token beside both, where the server wants one.
            timeout_s: for one send with all its tries.
            retries: further tries of a send that failed, each with another broker.
            retry_other_broker_when_not_stored: try again for any status but SEND_OK as well.
            compress_from_bytes: bodies of at least this size are compressed.
            compression: `zlib`, which every client reads, `lz4` or `zstd`, or None for none.
            message_bytes_max: the largest body, and the size at which batches are split.
            avoid_slow_brokers: leave brokers alone for a while that were slow or failed.
            trace: send a trace message about each send, as Apache's clients do.
            trace_topic: where to; RMQ_SYS_TRACE_TOPIC unless given.
            check: what answers the broker's question how a transaction ended. Brokers that do not
                make topics by themselves ask a producer once it has sent to them, or called
                `queues` for a topic of theirs.
            in_flight_max: sends that may be under way; the next one waits.
            vip: send to the brokers' second port.
            clock: time, for tests.
            settings: all of the connection's settings at once, its name servers too; the arguments
                for them are left out then, except for `namesrv`.

        Raises:
            InvalidValue: an argument cannot be.
        """
        own = ClientSettings(
            name_servers=parse_name_servers(namesrv),
            namespace=namespace,
            instance=instance,
            ssl=ssl,
            credentials=credentials_of(access_key, secret_key, security_token),
            vip=vip,
        )
        self._core = ClientCore(instead_of(own, settings), clock)
        self._group = self._core.namespace.wrap(check_group(group))
        self._timeout_s = seconds("timeout_s", timeout_s)
        self._ready = Preparing(
            self._core.namespace,
            bytes_max=message_bytes_max,
            compress_from=compress_from_bytes,
            compression=compression,
        )
        self._in_flight_max = at_least("in_flight_max", in_flight_max, 1)
        self._retries = min(at_least("retries", retries, 0), RETRIES_MAX)
        self._retry_not_stored = retry_other_broker_when_not_stored
        self._avoids_slow = avoid_slow_brokers
        self._trace_topic = check_topic(trace_topic) if trace_topic else TRACE_TOPIC
        self._traces = trace
        if check is not None:
            function("check", check)
        self._check = check
        self._tracer: Tracer | None = None
        self._now_ms = self._core.clock.now_ms
        self._plain_bytes_max = self._ready.plain_bytes_max
        self._is_plain = not (trace or avoid_slow_brokers)
        """Whether a message needs nothing beside being sent."""
        self._is_bare = self._is_plain and not self._core.namespace.name
        """Whether it needs no properties of the system but its id, either."""

    # -- its life ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin. No server need be there yet.

        Raises:
            ClientClosed: it was closed; make another one.
        """
        core = self._core
        await core.start()
        self._keys = core.identity.keys
        self._sending = Sending(
            core,
            self._group,
            in_flight_max=self._in_flight_max,
            retries=self._retries,
            retry_not_stored=self._retry_not_stored,
            faults=Faults(core.clock) if self._avoids_slow else None,
        )
        if self._traces:
            self._tracer = Tracer(core, self._sending, self._group, self._trace_topic)
        self._transactions = Transactions(core, self._group, self._check, self._tracer)
        self._requests = Requests(core)
        core.heartbeats.producer(self._group)

    async def close(self) -> None:
        """Wait for what is under way, for `timeout_s` at most, say goodbye, close. Again: nothing.

        Sends that have not ended by then fail with PeerGone; a oneway send may be lost.
        """
        await self._core.close(self._finish)

    async def _finish(self) -> None:
        left = await self._sending.in_flight.close(self._timeout_s)
        if left:
            logger.warning("closed with %d sends that had not ended", left)
        if self._tracer is not None:
            await self._tracer.close(self._core.settings.close_timeout_s)
        self._requests.close()
        self._transactions.close()

    async def __aenter__(self) -> Self:
        """Start, and return itself."""
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        await self.close()

    @property
    def client_id(self) -> str:
        """Return the id under which brokers know this producer; there once it was started."""
        return self._core.client_id

    @property
    def in_flight(self) -> int:
        """Return how many sends are under way."""
        return self._sending.in_flight.count if self._core.is_running else 0

    # -- sends ------------------------------------------------------------------------------------

    async def send(
        self,
        message: Message | str,
        body: bytes | None = None,
        *,
        tags: str | None = None,
        keys: str | Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        queue: MessageQueue | None = None,
        key: str | None = None,
        selector: Selector | None = None,
        argument: object = None,
        delay_level: int = 0,
        deliver_at: datetime | int | None = None,
        timeout_s: float | None = None,
    ) -> SendResult:
        """Send a message and return where it was stored.

        `send("Topic", b"body", tags=...)` is short for `send(Message(topic="Topic", ...))`; with a
        Message the arguments that describe one must be left out.

        Args:
            message: the message, or the topic of one.
            body: its body.
            tags: one tag, by which subscribers filter.
            keys: what it can be looked up by later.
            properties: the application's own, text to text.
            queue: the queue to send to.
            key: same key, same queue: `selection.by_key`; readers have it as `sharding_key`.
            selector: chooses the queue: `selector(queues, message, argument)`.
            argument: handed to the selector.
            delay_level: 1 to 18: a second to two hours, as the broker has them set.
            deliver_at: 5.x: when to deliver it; a datetime with a zone, or milliseconds.
            timeout_s: for all tries together, in place of the producer's.

        Raises:
            InvalidValue: an argument cannot be; nothing was sent.
            NoRoute: there is nobody to send to; `cause` says why.
            ResponseError: the broker did not take it; one class for each code.
            PeerGone, PeerLate: no answer; it may have been stored.
            TooManyInFlight: `in_flight_max` others were under way all the time.
            ClientClosed, NotStarted, UsedAfterFork: the producer cannot be used.
        """
        self._core.check_usable()
        timeout_s = self._timeout_s if timeout_s is None else seconds("timeout_s", timeout_s)
        now_ms = self._now_ms()
        message_id = self._keys.at(now_ms)
        any_queue = queue is None and key is None and selector is None
        if (
            any_queue
            and self._is_bare
            and type(message) is str
            and type(body) is bytes
            and not (keys or properties or delay_level)
            and deliver_at is None
            and 0 < len(body) <= self._plain_bytes_max
        ):
            topic = self._ready.topics.get(message) or self._ready.full_name(message)
            if tags:
                text = encoded(f"UNIQ_KEY\x01{message_id}\x02TAGS\x01{plain_tags(tags)}")
            else:
                text = f"UNIQ_KEY\x01{message_id}".encode()
            return await self._sending.quickly(topic, message_id, text, body, now_ms, timeout_s)
        given = self._ready.message(
            message, body, tags, keys, properties, delay_level, deliver_at, key
        )
        if any_queue and self._is_plain and self._ready.is_plain(given):
            topic = self._ready.full_name(given.topic)
            text = self._ready.property_text(given, message_id)
            body = given.body
            return await self._sending.quickly(topic, message_id, text, body, now_ms, timeout_s)
        deadline = self._sending.deadline(timeout_s)
        made = await self._ready.outgoing(given, message_id)
        wanted = await self._ready.target(
            self._sending.lanes, given, queue, key, selector, argument, deadline
        )
        return await self._send(given, made, wanted, deadline)

    async def send_oneway(
        self,
        message: Message | str,
        body: bytes | None = None,
        *,
        tags: str | None = None,
        keys: str | Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        queue: MessageQueue | None = None,
        key: str | None = None,
        selector: Selector | None = None,
        argument: object = None,
        delay_level: int = 0,
        deliver_at: datetime | int | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Send a message that nobody answers: it may be lost, and nobody will know.

        The arguments are those of `send`; `timeout_s` is for finding a broker that takes bytes.

        Raises:
            InvalidValue: an argument cannot be; nothing was sent.
            NoRoute, PeerGone, PeerLate: there is nobody to send to.
            ClientClosed, NotStarted, UsedAfterFork: the producer cannot be used.
        """
        self._core.check_usable()
        deadline = self._deadline(timeout_s)
        given = self._ready.message(
            message, body, tags, keys, properties, delay_level, deliver_at, key
        )
        made = await self._ready.outgoing(given, self._keys.next())
        target = await self._ready.target(
            self._sending.lanes, given, queue, key, selector, argument, deadline
        )
        await self._sending.send_oneway(made, target, deadline)

    async def send_batch(
        self,
        messages: Iterable[Message],
        *,
        queue: MessageQueue | None = None,
        timeout_s: float | None = None,
    ) -> list[SendResult]:
        """Send messages of one topic together, in as few requests as their size allows.

        Messages with a `sharding_key` must have the same one: they go to its queue.
        Returns a result for each request, in order; its ids are joined by commas. A request is
        stored as a whole or not at all, but of several some may be stored when one fails: the error
        then has a note that says how many were. `timeout_s` is for each of them.

        Raises:
            InvalidValue: none, several topics or keys, a delay, or one that is too large.
            and as `send` does.
        """
        self._core.check_usable()
        deadline = self._deadline(timeout_s)
        given = batch_of(messages)
        parts = batches_of(given, self._keys.next, self._core.namespace, self._ready.bytes_max)
        target: Target | None = None
        if queue is None:
            check_one_key(given)
        if queue is not None or given[0].sharding_key is not None:
            target = await self._ready.target(
                self._sending.lanes, given[0], queue, None, None, None, deadline
            )
        results: list[SendResult] = []
        traced_as = Message(topic=given[0].topic, body=given[0].body)  # tags and keys are many
        for part in parts:
            try:
                results.append(await self._send(traced_as, part, target, deadline))
                deadline = self._deadline(timeout_s)
            except Exception as error:
                error.add_note(f"{len(results)} of {len(parts)} requests of this batch were stored")
                raise
        return results

    async def send_in_transaction(
        self,
        message: Message | str,
        execute: Execute,
        body: bytes | None = None,
        *,
        tags: str | None = None,
        keys: str | Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> TransactionResult:
        """Send a message that appears only if the application's own transaction succeeds.

        The message is stored where nobody sees it, then `execute(message)` is called, whose
        TransactionState commits the message or takes it back. It may be a coroutine function; a
        plain one runs in a thread. If it says UNKNOWN, raises, or the process ends on the way, the
        broker asks `check`, given to the producer, until it is told.

        Raises:
            what `execute` raises: the broker has been told UNKNOWN, and will ask.
            InvalidValue: the producer has no `check`, or an argument cannot be.
            and as `send` does, when nothing was executed.
        """
        self._core.check_usable()
        deadline = self._deadline(timeout_s)
        self._transactions.refuse_without_check()
        function("execute", execute)
        given = self._ready.message(message, body, tags, keys, properties)
        if given.delay_level or given.deliver_at_ms is not None:
            raise InvalidValue("a message in a transaction cannot have a delay: leave it out")
        extra = {names.TRANSACTION_PREPARED: "true", names.PRODUCER_GROUP: self._group}
        made = await self._ready.outgoing(given, self._keys.next(), extra)
        await self._sending.lanes.be_known(made.topic, deadline)
        sent = await self._send(given, self._transactions.half(made), None, deadline)
        return await self._transactions.finish(given, sent, execute)

    # -- requests and replies ---------------------------------------------------------------------

    async def request(
        self,
        message: Message | str,
        body: bytes | None = None,
        *,
        tags: str | None = None,
        keys: str | Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        timeout_s: float = 3.0,
    ) -> ReceivedMessage:
        """Send a message and return the reply of whoever consumes it.

        Raises:
            PeerLate: there was no reply within `timeout_s`; the request may have been handled.
            and as `send` does.
        """
        self._core.check_usable()
        deadline = self._deadline(timeout_s)
        given = self._ready.message(message, body, tags, keys, properties)
        await self._sending.lanes.be_known(self._ready.full_name(given.topic), deadline)
        with self._requests.waiting(timeout_s, deadline) as request:
            made = await self._ready.outgoing(given, self._keys.next(), request.properties)
            await self._send(given, made, None, deadline)
            return await request.reply()

    async def reply(
        self,
        request: ReceivedMessage,
        body: bytes,
        *,
        tags: str | None = None,
        properties: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> SendResult:
        """Answer a message that somebody sent with `request`.

        Raises:
            InvalidValue: nobody waits for a reply to it.
            SystemFailure: the one who asked is not connected any more.
            and as `send` does.
        """
        self._core.check_usable()
        deadline = self._deadline(timeout_s)
        given, extra, near_broker = self._requests.reply_to(request, body, tags, properties)
        made = await self._ready.outgoing(given, self._keys.next(), extra)
        made.code = self._requests.reply_code
        lane = await self._sending.lanes.get(made.topic, deadline)
        near = (each for each in lane.targets if each.broker.name == near_broker)
        return await self._send(given, made, next(near, None), deadline)

    async def recall(self, topic: str, handle: str, *, timeout_s: float | None = None) -> str:
        """Take back a message that is to be delivered later; return its id.

        `handle` is the `recall_handle` of its SendResult, which 5.x brokers give.

        Raises:
            InvalidValue: the handle is none.
            NoRoute: the broker that has it is not there.
            ResponseError: it is too late, or the broker cannot do that.
            PeerGone, PeerLate: no answer.
        """
        self._core.check_usable()
        wait_s = self._timeout_s if timeout_s is None else seconds("timeout_s", timeout_s)
        return await recall(self._core, self._group, self._ready.full_name(topic), handle, wait_s)

    async def queues(self, topic: str) -> list[MessageQueue]:
        """Return the queues of a topic that can be written.

        Raises:
            NoRoute: there are none; `cause` says why.
        """
        self._core.check_usable()
        lane = await self._sending.lanes.get(self._ready.full_name(topic), self._deadline(None))
        return [target.queue for target in lane.targets]

    def _deadline(self, timeout_s: float | None) -> float:
        wait_s = self._timeout_s if timeout_s is None else seconds("timeout_s", timeout_s)
        return self._sending.deadline(wait_s)

    async def _send(
        self, given: Message, made: Outgoing, target: Target | None, deadline: float
    ) -> SendResult:
        if self._tracer is None:
            return await self._sending.send(made, target, deadline)
        return await self._tracer.traced(given, made, target, deadline)
