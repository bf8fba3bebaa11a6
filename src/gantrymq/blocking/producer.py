"""The blocking twin of `gantrymq.client.producer`.

Made by `make blocking` from the asyncio class: change that one, not this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.blocking.base import Blocking
from gantrymq.client.producer import DEFAULT_GROUP
from gantrymq.client.producer import Producer as AsyncProducer
from gantrymq.limits import BODY_BYTES_MAX

if TYPE_CHECKING:
    import ssl as tls
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from gantrymq.client.received import ReceivedMessage
    from gantrymq.client.results import SendResult, TransactionResult
    from gantrymq.client.selection import Selector
    from gantrymq.client.settings import ClientSettings
    from gantrymq.client.transactions import Check, Execute
    from gantrymq.clock import Clock
    from gantrymq.model.message import Message
    from gantrymq.model.queue import MessageQueue


class Producer(Blocking[AsyncProducer]):
    """Sends messages. Used from any thread, from several at once."""

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
        in_flight_max: int = 10000,
        vip: bool = False,
        clock: Clock | None = None,
        settings: ClientSettings | None = None,
    ) -> None:
        """Make a producer; `start`, or `with`, starts it.

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
        super().__init__(
            AsyncProducer(
                namesrv,
                group,
                namespace=namespace,
                instance=instance,
                ssl=ssl,
                access_key=access_key,
                secret_key=secret_key,
                security_token=security_token,
                timeout_s=timeout_s,
                retries=retries,
                retry_other_broker_when_not_stored=retry_other_broker_when_not_stored,
                compress_from_bytes=compress_from_bytes,
                compression=compression,
                message_bytes_max=message_bytes_max,
                avoid_slow_brokers=avoid_slow_brokers,
                trace=trace,
                trace_topic=trace_topic,
                check=check,
                in_flight_max=in_flight_max,
                vip=vip,
                clock=clock,
                settings=settings,
            )
        )

    def start(self) -> None:
        """Begin. No server need be there yet.

        Raises:
            ClientClosed: it was closed; make another one.
        """
        self._begin(self._client.start())

    def close(self) -> None:
        """Wait for what is under way, for `timeout_s` at most, say goodbye, close. Again: nothing.

        Sends that have not ended by then fail with PeerGone; a oneway send may be lost.
        """
        self._end(self._client.close())

    @property
    def client_id(self) -> str:
        """Return the id under which brokers know this producer; there once it was started."""
        return self._do(lambda: self._client.client_id)

    @property
    def in_flight(self) -> int:
        """Return how many sends are under way."""
        return self._do(lambda: self._client.in_flight)

    def send(
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
        return self._call(
            self._client.send(
                message,
                body,
                tags=tags,
                keys=keys,
                properties=properties,
                queue=queue,
                key=key,
                selector=selector,
                argument=argument,
                delay_level=delay_level,
                deliver_at=deliver_at,
                timeout_s=timeout_s,
            )
        )

    def send_oneway(
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
        self._call(
            self._client.send_oneway(
                message,
                body,
                tags=tags,
                keys=keys,
                properties=properties,
                queue=queue,
                key=key,
                selector=selector,
                argument=argument,
                delay_level=delay_level,
                deliver_at=deliver_at,
                timeout_s=timeout_s,
            )
        )

    def send_batch(
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
        return self._call(self._client.send_batch(messages, queue=queue, timeout_s=timeout_s))

    def send_in_transaction(
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
        TransactionState commits the message or takes it back. It runs in a
        thread. If it says UNKNOWN, raises, or the process ends on the way, the
        broker asks `check`, given to the producer, until it is told.

        Raises:
            what `execute` raises: the broker has been told UNKNOWN, and will ask.
            InvalidValue: the producer has no `check`, or an argument cannot be.
            and as `send` does, when nothing was executed.
        """
        return self._call(
            self._client.send_in_transaction(
                message,
                execute,
                body,
                tags=tags,
                keys=keys,
                properties=properties,
                timeout_s=timeout_s,
            )
        )

    def request(
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
        return self._call(
            self._client.request(
                message, body, tags=tags, keys=keys, properties=properties, timeout_s=timeout_s
            )
        )

    def reply(
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
        return self._call(
            self._client.reply(request, body, tags=tags, properties=properties, timeout_s=timeout_s)
        )

    def recall(self, topic: str, handle: str, *, timeout_s: float | None = None) -> str:
        """Take back a message that is to be delivered later; return its id.

        `handle` is the `recall_handle` of its SendResult, which 5.x brokers give.

        Raises:
            InvalidValue: the handle is none.
            NoRoute: the broker that has it is not there.
            ResponseError: it is too late, or the broker cannot do that.
            PeerGone, PeerLate: no answer.
        """
        return self._call(self._client.recall(topic, handle, timeout_s=timeout_s))

    def queues(self, topic: str) -> list[MessageQueue]:
        """Return the queues of a topic that can be written.

        Raises:
            NoRoute: there are none; `cause` says why.
        """
        return self._call(self._client.queues(topic))
