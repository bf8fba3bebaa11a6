"""Pop (5.x): the broker hands out messages and waits for each one's acknowledgement.

Nothing is owned: the broker keeps a message from others for `pop_invisible_s` and hands it out
again unless it was acknowledged by then, so members need no offsets, and a slow one holds up
nobody. A failed message is asked to come back later (change of its invisible time), each time
later than before, and goes to the dead letters after `reconsume_max` attempts. One that its handler
needs longer for is kept from others meanwhile (`pop_keeping`).

Which queues to pop from the broker says (400). One that does not know the question is pulled from.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from gantrymq.client.consuming.calls import DLQ_LEVEL
from gantrymq.client.consuming.pop_acks import PopAcks
from gantrymq.client.consuming.pop_handles import handle_of, start_offsets
from gantrymq.client.consuming.pop_keeping import PopKeeping, change_invisible
from gantrymq.client.consuming.process_queue import Held, HoldLimits, ProcessQueue
from gantrymq.client.consuming.pull_requests import SUSPEND_S
from gantrymq.client.consuming.pulling import QUICK_S
from gantrymq.client.consuming.retrying import DEFAULT_RECONSUME_MAX
from gantrymq.client.consuming.waits import Waits
from gantrymq.client.errors import GantryError
from gantrymq.client.received import ReceivedMessage
from gantrymq.model.group import RETRY_DELAYS_MS, ConsumeFromWhere, MessageModel
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.headers.pop import PopMessageRequest, PopMessageResponse
from gantrymq.wire.record import decode_records
from gantrymq.wire.response_errors import RequestCodeNotSupported

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gantrymq.client.consuming.calls import ConsumerCalls
    from gantrymq.client.consuming.concurrent import Concurrent
    from gantrymq.client.consuming.options import ConsumeOptions
    from gantrymq.client.consuming.pop_handles import PopHandle
    from gantrymq.client.consuming.subscribed import Subscribed
    from gantrymq.model.queue import MessageQueue

logger = logging.getLogger(__name__)

HELD_MAX: Final = 96
"""Messages of one queue that wait for their acknowledgement: they must be done in time."""
POP_COUNT_MAX: Final = 32
POP_TIMEOUT_S: Final = SUSPEND_S + 10.0
FIRST_DELAY: Final = 2
"""The first failed attempt is followed by the third delay, 10 s, as with pulls."""
_ENDINGS: Final = frozenset(
    {
        int(ResponseCode.SUCCESS),
        int(ResponseCode.PULL_NOT_FOUND),
        int(ResponseCode.POLLING_FULL),
        int(ResponseCode.POLLING_TIMEOUT),
    }
)


class PopHeld(Held):
    """One message that was popped."""

    __slots__ = ("expires", "handle", "is_settled", "popped_at", "renewing")

    def __init__(
        self,
        queue: PopQueue,
        message: ReceivedMessage,
        handle: PopHandle,
        popped_at: float,
        invisible_s: float,
    ) -> None:
        super().__init__(queue, message, handle.offset, len(message.record.body))
        self.handle = handle
        """What acknowledges it."""
        self.popped_at = popped_at
        self.expires = popped_at + invisible_s
        self.renewing: asyncio.Future[None] | None = None
        """While the broker is asked for more time: the handle may be another one then."""
        self.is_settled = False
        """Whether it is to be acknowledged."""

    def renewed(self) -> None:
        """Acknowledge now what could not be while the broker was asked for more time."""
        if self.is_settled:
            self.queue.settle(self)


class PopQueue(ProcessQueue):
    """What is popped from one queue, or from any queue of a broker, and not acknowledged yet."""

    __slots__ = ("_acks", "_held", "is_leaving")

    def __init__(self, queue: MessageQueue, subscribed: Subscribed, acks: PopAcks) -> None:
        super().__init__(queue, 0, HoldLimits(messages=HELD_MAX), subscribed)
        self._acks = acks
        self._held: set[Held] = set()
        self.is_leaving = False
        """Nothing more is asked for; the answer to the last pop is waited for, and counts."""

    def __len__(self) -> int:
        """Return how many messages are in hand."""
        return len(self._held)

    def hold(self, arrived: Iterable[Held]) -> None:
        """Take messages in hand."""
        self._held.update(arrived)

    def settle(self, held: Held) -> None:
        """Acknowledge a message, if need be as soon as its handle is known."""
        if held in self._held and isinstance(held, PopHeld):
            held.is_settled = True
            if held.renewing is None:
                self._acks.add(held.handle)
                self.forget(held)

    def in_hand(self) -> list[PopHeld]:
        """Return the messages that are not acknowledged yet."""
        return [held for held in self._held if isinstance(held, PopHeld)]

    def forget(self, held: Held) -> None:
        """Be done with a message without a word to the broker, which hands it out again."""
        self._held.discard(held)
        if self.has_room:
            self.wake()

    @property
    def has_room(self) -> bool:
        """Tell whether more may be popped."""
        return self.is_leaving or len(self._held) < self.limits.messages


class Popping:
    """The queues that a consumer pops from."""

    def __init__(
        self,
        calls: ConsumerCalls,
        delivery: Concurrent,
        options: ConsumeOptions,
    ) -> None:
        self._calls = calls
        self._delivery = delivery
        self._options = options
        limit = options.reconsume_max
        self._reconsume_max = DEFAULT_RECONSUME_MAX if limit < 0 else limit
        self._queues: dict[MessageQueue, tuple[PopQueue, asyncio.Task[None]]] = {}
        self._acks: dict[tuple[str, str], PopAcks] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._left: list[PopQueue] = []
        """What is popped from no more, and has messages in hand."""
        self._is_known = True
        self._keeping = PopKeeping(
            calls,
            self._at_work,
            invisible_s=options.pop_invisible_s,
            consume_timeout_s=options.consume_timeout_s,
        )
        self._keeper: asyncio.Task[None] | None = None

    def _at_work(self) -> list[PopHeld]:
        """Return what somebody has taken and not settled."""
        waiting = set(self._delivery.inbox.waiting)
        self._left = [mine for mine in self._left if len(mine)]
        queues = [*(mine for mine, _task in self._queues.values()), *self._left]
        return [held for queue in queues for held in queue.in_hand() if held not in waiting]

    @property
    def queues(self) -> tuple[MessageQueue, ...]:
        """Return what is popped from; queue -1 is any queue of its broker."""
        return tuple(sorted(self._queues))

    def overview(self) -> list[tuple[MessageQueue, int, int]]:
        """Return each queue, how many of its messages are in hand, and when it was last asked."""
        return [
            (queue, len(mine), mine.last_pulled_ms)
            for queue, (mine, _task) in sorted(self._queues.items())
        ]

    async def balance(self, subscribed: Subscribed, strategy: str) -> bool | None:
        """Pop from the queues that the broker says; None: it knows no pop, so pull.

        False says that it is to be asked again soon.
        """
        if not self._is_known:
            return None
        topic = subscribed.topic
        try:
            assigned = await self._calls.assignment(topic, strategy, MessageModel.CLUSTERING)
        except RequestCodeNotSupported:
            logger.warning("the brokers of %s know no pop: it is pulled from", topic)
            self._is_known = False
            return None
        if assigned is None:
            return False  # the broker has not heard of this member yet
        wanted = {one.message_queue for one in assigned}
        for queue in [one for one in self._queues if one.topic == topic and one not in wanted]:
            self._stop(queue)
        for queue in sorted(wanted - self._queues.keys()):
            self._start(queue, subscribed)
        return True

    def _start(self, queue: MessageQueue, subscribed: Subscribed) -> None:
        key = queue.topic, queue.broker_name
        acks = self._acks.get(key)
        if acks is None:
            acks = self._acks[key] = PopAcks(self._calls, *key)
        mine = PopQueue(queue, subscribed, acks)
        mine.retrying = self
        task = self._calls.core.spawn(self._pop(mine, subscribed), f"pop {queue}")
        self._queues[queue] = mine, task
        if self._keeper is None:
            self._keeper = self._calls.core.spawn(self._keeping.run(), "popped messages")
        logger.info("%s is popped from", queue)

    def _stop(self, queue: MessageQueue) -> None:
        """Pop no more; what is in hand is handled and acknowledged all the same.

        A pop that the broker holds is waited for: messages that it brings are ours, and nobody
        else would get them before their time is up.
        """
        mine, task = self._queues.pop(queue)
        mine.is_leaving = True
        mine.wake()
        self._left.append(mine)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def drop_topic(self, topic: str) -> None:
        """Pop no more from a topic."""
        for queue in [one for one in self._queues if one.topic == topic]:
            self._stop(queue)

    def topics(self) -> set[str]:
        """Return the topics that are popped from."""
        return {queue.topic for queue in self._queues}

    def stop(self) -> None:
        """Pop no more; what the broker still answers comes again later."""
        for queue in list(self._queues):
            self._stop(queue)
        for task in self._ending:
            task.cancel()

    async def flush(self) -> None:
        """Send the acknowledgements that wait."""
        wait_s = self._calls.core.settings.close_timeout_s
        renewing = [held.renewing for held in self._at_work() if held.renewing is not None]
        if renewing:
            await asyncio.wait(renewing, timeout=wait_s)
        for acks in self._acks.values():
            await acks.flush(wait_s)

    # -- popping --------------------------------------------------------------------------------

    async def _pop(self, mine: PopQueue, subscribed: Subscribed) -> None:
        loop, waits, quick = asyncio.get_running_loop(), Waits(), Waits(0.005, 0.5)
        counters = subscribed.counters
        while not mine.is_leaving:
            if not mine.has_room:
                await mine.room()
                continue
            if subscribed.is_paused:
                await subscribed.reading()
                continue
            began = loop.time()
            try:
                arrived = await self._ask(mine, subscribed)
            except GantryError as error:
                level = logging.DEBUG if waits else logging.WARNING
                logger.log(level, "%s cannot be popped, it is tried again: %s", mine.queue, error)
                await asyncio.sleep(waits.next())
                continue
            except Exception:  # an answer that nobody thought of must not end the reading
                logger.exception("%s cannot be popped, it is tried again", mine.queue)
                await asyncio.sleep(waits.next())
                continue
            waits.reset()
            counters.pulls += 1
            counters.pulled += len(arrived)
            counters.pull_s += loop.time() - began
            mine.last_pulled_ms = self._calls.core.clock.now_ms()
            if arrived:
                quick.reset()
                mine.hold(arrived)
                self._delivery.deliver(mine, arrived)
            elif loop.time() - began < QUICK_S:
                await asyncio.sleep(quick.next())

    async def _ask(self, mine: PopQueue, subscribed: Subscribed) -> list[Held]:
        calls, told = self._calls, subscribed.subscription
        first = self._options.start_position.where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        header = PopMessageRequest(
            consumer_group=calls.group,
            topic=mine.queue.topic,
            queue_id=mine.queue.queue_id,
            max_msg_nums=min(self._options.pull_batch, POP_COUNT_MAX),
            invisible_time=int(self._options.pop_invisible_s * 1000),
            poll_time=int(SUSPEND_S * 1000),
            born_time=0,
            init_mode=0 if first else 1,
            exp_type=told.expression_type,
            exp=told.expression,
            order=False,
        )
        answered = await calls.core.remote.call(
            await calls.master(mine.queue),
            RequestCode.POP_MESSAGE,
            header,
            timeout_s=POP_TIMEOUT_S,
            accept=_ENDINGS,
        )
        if answered.code != ResponseCode.SUCCESS:
            return []
        answer = PopMessageResponse.decode(answered.command.fields)
        return self._received(mine, subscribed, answer, answered.body)

    def _received(
        self, mine: PopQueue, subscribed: Subscribed, answer: PopMessageResponse, body: bytes
    ) -> list[Held]:
        starts = start_offsets(answer.start_offset_info)
        broker = mine.queue.broker_name
        found: list[Held] = []
        now = asyncio.get_running_loop().time()
        for record in decode_records(body):
            handle = handle_of(record, answer, starts, broker)
            message = ReceivedMessage(record, broker, subscribed.name)
            held = PopHeld(mine, message, handle, now, self._options.pop_invisible_s)
            if subscribed.tags and record.tags not in subscribed.tags:
                # A tag with the same hash as one that is wanted: nobody will want it.
                mine.hold((held,))
                mine.settle(held)
            else:
                found.append(held)
        return found

    # -- failures -------------------------------------------------------------------------------

    async def failed(self, held: Held, delay_level: int) -> None:
        """Have a message come again later, or put it among the dead letters."""
        mine = held.queue
        if not isinstance(mine, PopQueue) or not isinstance(held, PopHeld):
            return
        message, calls = held.message, self._calls
        if held.renewing is not None:
            await asyncio.wait([held.renewing])
        held.expires = 0.0  # no more time is asked for
        try:
            if delay_level < 0 or message.reconsume_times >= self._reconsume_max:
                await calls.send_back(
                    mine.queue,
                    message.record.log_offset,
                    DLQ_LEVEL,
                    self._reconsume_max,
                    message_id=message.message_id,
                )
                mine.settle(held)
                return
            delay_ms = pop_delay_ms(delay_level, message.reconsume_times)
            await change_invisible(calls, held, delay_ms)
        except GantryError as error:
            logger.warning("%r comes again when its time is up: %s", message, error)
        except Exception:  # whatever it is, the worker goes on
            logger.exception("%r comes again when its time is up", message)
        mine.forget(held)


def pop_delay_ms(delay_level: int, reconsume_times: int) -> int:
    """Return how long a failed message stays away: its level's time, or longer each time."""
    place = delay_level - 1 if delay_level > 0 else FIRST_DELAY + reconsume_times
    return RETRY_DELAYS_MS[min(place, len(RETRY_DELAYS_MS) - 1)]
