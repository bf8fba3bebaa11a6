"""kombu's transport and channel over the asyncio clients.

    gantrymq://[access_key:secret_key@]host[:port]/[namespace]

- **A queue is a topic**, made by its first message if the broker makes topics by itself. Consumers
  of a queue are the group `kombu-<queue>`; at most as many as the topic has queues get messages.
- **ack** acknowledges. **reject without requeue** does too: the message is dropped. **reject with
  requeue**, and messages that a channel had when it closed, are sent back to the broker, which
  delivers them again after a second, to any consumer. What a killed process had comes again by
  itself.
- **A message that kombu did not send** goes to the dead letters (`%DLQ%kombu-<queue>`).
- **A message that is not settled** within `visibility_timeout` is delivered again.
- **purge** moves the group to the end of the topic and of what was sent back; what other consumers
  hold, and what waits for its second after a requeue, is not reached. **delete** only stops
  reading: topics are for an operator to remove.
- Exchanges are direct and topic, bound in each process as it declares them. There is no fanout, so
  Celery goes without remote control, mingle and gossip.

`transport_options`: `namesrv` (several name servers), `group` (prefix of groups), `unacked_max`
(messages with this process, for each queue), `visibility_timeout`, `requeue_level` (the broker's
delay level after a requeue), `route_s` (how soon a topic is noticed that did not exist yet).
"""

from __future__ import annotations

import asyncio
import threading
from queue import Empty
from typing import TYPE_CHECKING, Any, Final

from kombu.transport import virtual
from kombu.utils.json import dumps

from gantrymq.blocking.loop_thread import LoopThread
from gantrymq.client.errors import NoRoute, NoRouteCause, PeerGone, PeerLate
from gantrymq.client.producer import Producer
from gantrymq.client.pull_consumer import PullConsumer
from gantrymq.client.push_consumer import PushConsumer
from gantrymq.clock import SystemClock
from gantrymq.kombu.names import group_of, topic_of
from gantrymq.kombu.reading import Reading
from gantrymq.kombu.tls import context_of
from gantrymq.model.names import retry_topic
from gantrymq.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.model.queue import MessageQueue

DEFAULT_PORT: Final = 9876
GROUP_PREFIX: Final = "kombu"
UNACKED_MAX: Final = 256
VISIBILITY_S: Final = 3600.0
REQUEUE_LEVEL: Final = 1
RECONSUME_MAX: Final = 1_000_000
"""A requeue is an ordinary thing for kombu: it is no reason to give a message up."""
ROUTE_S: Final = 5.0
FIRST_GET_S: Final = 2.0
"""How long the first `get` of a queue waits: its consumer has to join the group."""
LOOK_S: Final = 1.0
NEW_TOPIC_S_MAX: Final = 2.0
"""How long a topic that was just sent to may be unknown to the name servers."""
_clock: Final = SystemClock()  # kombu's time-outs are the machine's


class QoS(virtual.QoS):
    """Settles messages with the broker as kombu settles them."""

    def ack(self, delivery_tag: str) -> None:
        """Acknowledge a message."""
        self.channel.settle(delivery_tag, done=True)
        super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Drop a message, or have it delivered again."""
        self.channel.settle(delivery_tag, done=not requeue)
        self._quick_ack(delivery_tag)

    def restore_unacked(self) -> list[object]:
        """Have everything delivered again that is not settled."""
        self._flush()
        for tag in list(self._delivered):
            self.channel.settle(tag, done=False)
        self._delivered.clear()
        return []


class Channel(virtual.Channel):
    """A channel: its queues, each read by a consumer of its own."""

    QoS = QoS
    supports_fanout = False

    def __init__(self, connection: Transport, **options: Any) -> None:  # noqa: ANN401
        super().__init__(connection, **options)
        self._transport = connection
        self._readings: dict[str, Reading] = {}
        self._without_ack: set[str] = set()

    # -- what kombu's base class asks for -------------------------------------------------------

    def _put(self, queue: str, message: dict[str, Any], **_options: object) -> None:
        self._transport.send(topic_of(queue), dumps(message).encode())

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        """Return a message for `basic_get`."""
        is_first = queue not in self._readings
        reading = self._reading(queue)
        deadline = _clock.monotonic() + (FIRST_GET_S if is_first else timeout or 0.0)
        while True:
            self._transport.arrived.clear()
            found = reading.take()
            if found is not None:
                return found.payload
            left = deadline - _clock.monotonic()
            if left <= 0:
                raise Empty
            self._transport.arrived.wait(left)

    def _size(self, queue: str) -> int:
        return self._transport.backlog(queue, skip=False)

    def _purge(self, queue: str) -> int:
        """Skip what is there; a consumer of this channel leaves its group meanwhile."""
        reading = self._readings.pop(queue, None)
        skipped = 0 if reading is None else reading.close(drop=True)
        skipped += self._transport.backlog(queue, skip=True)
        if queue in self._active_queues:
            self._reading(queue)
        return skipped

    def _delete(self, queue: str, *_arguments: object, **_options: object) -> None:
        reading = self._readings.pop(queue, None)
        if reading is not None:
            reading.close()

    # -- consuming ------------------------------------------------------------------------------

    def basic_consume(
        self,
        queue: str,
        no_ack: bool,
        callback: Callable[[Any], None],
        consumer_tag: str,
        **options: Any,  # noqa: ANN401
    ) -> None:
        """Have messages of a queue given to a callback by `drain_events`."""
        super().basic_consume(queue, no_ack, callback, consumer_tag, **options)
        (self._without_ack.add if no_ack else self._without_ack.discard)(queue)
        self._reading(queue)

    def basic_cancel(self, consumer_tag: str) -> None:
        """Take no more messages; those that were delivered can still be settled."""
        queue = self._tag_to_queue.get(consumer_tag)
        super().basic_cancel(consumer_tag)
        if queue in self._readings and queue not in self._active_queues:
            self._readings[queue].pause()

    def basic_get(self, queue: str, no_ack: bool = False, **options: Any) -> Any:  # noqa: ANN401
        """Return a message, or None."""
        message = super().basic_get(queue, no_ack, **options)
        if message is not None and no_ack:
            self.settle(message.delivery_tag, done=True)
        return message

    def deliver_one(self) -> bool:
        """Give one message to its callback, if there is one and it may be."""
        if not self._consumers or not self.qos.can_consume():
            return False
        for queue in list(self._active_queues):
            reading = self._readings.get(queue)
            found = None if reading is None else reading.take()
            if found is not None:
                # The next look begins with the queue behind this one.
                self._active_queues.remove(queue)
                self._active_queues.append(queue)
                if queue in self._without_ack:
                    self.settle(found.tag, done=True)
                self.connection._deliver(found.payload, queue)
                return True
        return False

    def settle(self, tag: str, *, done: bool) -> None:
        """Acknowledge a message, or have it delivered again."""
        for reading in list(self._readings.values()):
            if reading.settle(tag, done=done):
                break
        self._transport.arrived.set()  # there may be room for one more

    def _reading(self, queue: str) -> Reading:
        found = self._readings.get(queue)
        if found is None:
            found = self._transport.reading(queue)
            found.start()  # one that could not begin is not kept: the next call makes another
            self._readings[queue] = found
        else:
            found.resume()
        return found

    def close(self) -> None:
        """Give back what is not settled, and leave all groups."""
        super().close()
        while self._readings:
            self._readings.popitem()[1].close()


class Transport(virtual.Transport):
    """A connection of kombu: one event loop with a producer and the consumers of all channels."""

    Channel = Channel
    default_port = DEFAULT_PORT
    driver_type = "gantrymq"
    driver_name = "gantrymq"
    can_parse_url = False
    connection_errors = (*virtual.Transport.connection_errors, PeerGone, PeerLate, NoRoute)
    implements = virtual.Transport.implements.extend(
        asynchronous=False, exchange_type=frozenset({"direct", "topic"}), heartbeats=False
    )

    def __init__(self, client: Any, **options: Any) -> None:  # noqa: ANN401 - kombu.Connection
        super().__init__(client, **options)
        self.arrived = threading.Event()
        self._options: dict[str, Any] = dict(client.transport_options)
        self._thread: LoopThread | None = None
        self._producer: Producer | None = None
        self._sent: set[str] = set()  # topics that exist, whether name servers know it yet or not
        self._lock = threading.RLock()

    def driver_version(self) -> str:
        """Return the version of this package."""
        return VERSION

    # -- life -----------------------------------------------------------------------------------

    def establish_connection(self) -> Any:  # noqa: ANN401 - as kombu has it
        """Find a name server.

        Raises:
            NoRoute: none answers.
        """
        producer, thread = self._sender()
        try:
            thread.call(producer.queues("kombu"))
        except NoRoute as error:
            if error.cause is NoRouteCause.NO_NAME_SERVER:
                self._stop()
                raise
        return super().establish_connection()

    def close_connection(self, connection: Any) -> None:  # noqa: ANN401 - as kombu has it
        """Close all channels, then the clients."""
        super().close_connection(connection)
        self._stop()

    def _stop(self) -> None:
        with self._lock:
            thread, producer = self._thread, self._producer
            self._thread = self._producer = None
        if thread is not None:
            if producer is not None:
                thread.call(producer.close())
            thread.stop()

    def _sender(self) -> tuple[Producer, LoopThread]:
        with self._lock:
            if self._thread is None or self._producer is None:
                thread = LoopThread("kombu")
                thread.start()
                producer = Producer(self._namesrv, **self._connecting)
                thread.call(producer.start())
                self._thread, self._producer = thread, producer
            return self._producer, self._thread

    @property
    def _namesrv(self) -> str:
        if "namesrv" in self._options:
            return str(self._options["namesrv"])
        return f"{self.client.hostname or '127.0.0.1'}:{self.client.port or DEFAULT_PORT}"

    @property
    def _connecting(self) -> dict[str, Any]:
        """Return the arguments that all clients share."""
        client = self.client
        namespace = (client.virtual_host or "").strip("/")
        return {
            "namespace": namespace,
            "ssl": context_of(client.ssl),
            "access_key": client.userid or None,
            "secret_key": client.password or None,
        }

    # -- what channels ask for ------------------------------------------------------------------

    def send(self, topic: str, body: bytes) -> None:
        """Send a message and wait until it is stored."""
        producer, thread = self._sender()
        thread.call(producer.send(topic, body))
        self._sent.add(topic)

    def reading(self, queue: str) -> Reading:
        """Return a reader of a queue, not started."""
        _producer, thread = self._sender()
        options = self._options

        def make() -> PushConsumer:
            return PushConsumer(
                self._namesrv,
                self._group(queue),
                start="first",
                workers=int(options.get("unacked_max", UNACKED_MAX)),
                reconsume_max=RECONSUME_MAX,
                consume_timeout_s=float(options.get("visibility_timeout", VISIBILITY_S)),
                route_s=float(options.get("route_s", ROUTE_S)),
                **self._connecting,
            )

        return Reading(
            thread,
            make,
            topic_of(queue),
            self.arrived.set,
            again_level=int(options.get("requeue_level", REQUEUE_LEVEL)),
        )

    def backlog(self, queue: str, *, skip: bool) -> int:
        """Return how many messages of a queue its group has before it; with `skip`, pass them."""
        _producer, thread = self._sender()
        return thread.call(self._backlog(topic_of(queue), self._group(queue), skip=skip))

    async def _backlog(self, topic: str, group: str, *, skip: bool) -> int:
        total = 0
        async with PullConsumer(self._namesrv, group, **self._connecting) as puller:
            for each in (topic, retry_topic(group)):
                wait_s = NEW_TOPIC_S_MAX if each in self._sent else 0.0
                for one in await _queues(puller, each, wait_s):
                    end = await puller.max_offset(one)
                    committed = await puller.committed(one)
                    total += end - max(committed or 0, await puller.min_offset(one))
                    if skip:
                        await puller.commit(one, end)
        return total

    def _group(self, queue: str) -> str:
        return group_of(str(self._options.get("group", GROUP_PREFIX)), queue)

    def drain_events(self, connection: object, timeout: float | None = None) -> None:
        """Wait for one message of any channel and give it to its callback.

        Raises:
            TimeoutError: there was none in time.
        """
        deadline = None if timeout is None else _clock.monotonic() + timeout
        while True:
            self.arrived.clear()
            if any(channel.deliver_one() for channel in list(self.channels)):
                return
            wait_s = LOOK_S if deadline is None else min(LOOK_S, deadline - _clock.monotonic())
            if wait_s <= 0:
                raise TimeoutError("no message in time")
            self.arrived.wait(wait_s)


async def _queues(puller: PullConsumer, topic: str, wait_s: float) -> tuple[MessageQueue, ...]:
    """Return the queues of a topic; none if nobody has sent anything to it yet."""
    deadline = _clock.monotonic() + wait_s
    while True:
        try:
            return await puller.queues(topic)
        except NoRoute as error:
            if error.cause is NoRouteCause.NO_NAME_SERVER:
                raise
            if _clock.monotonic() >= deadline:
                return ()
        await asyncio.sleep(0.02)
