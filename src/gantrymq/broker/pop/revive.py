"""What was handed out and not acknowledged in time is stored again, in the group's retry topic.

Timers bring check points and acknowledgements into the revive queues when their time comes. A check
point is settled when its time is over, everything due by then is in its queue, and the queue has
been read to its end: whatever of it is not acknowledged is stored again, or goes to the dead
letters if it was tried too often. Then the offset of the queue moves on; that is committed when the
log is on the disk. As with an Apache broker the committed offset is the last one that is done with.

Owned by the event loop's task.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from gantrymq.broker.pop.offsets import QueueKey
from gantrymq.broker.pop.points import ReviveQueue
from gantrymq.broker.stored_again import as_new, decode
from gantrymq.errors import GantryError
from gantrymq.model.group import DEFAULT_RETRY_TIMES
from gantrymq.model.names import dlq_topic, is_retry_topic, pop_retry_topic, popped_topic
from gantrymq.store.status import PutStatus
from gantrymq.wire.properties import FIRST_POP_TIME, POP_CK

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.broker.pop.parts import PopParts
    from gantrymq.broker.pop.points import OpenPoint
    from gantrymq.broker.pop.records import CheckPoint
    from gantrymq.kernel import Record
    from gantrymq.model.group import SubscriptionGroup
    from gantrymq.store.get import Found
    from gantrymq.store.put import NewMessage

log = logging.getLogger(__name__)

REVIVE_GROUP: Final = "CID_RMQ_SYS_REVIVE_GROUP"
ORIGIN_GROUP: Final = "ORIGIN_GROUP"
BATCH: Final = 32
READS_A_TICK: Final = 8
"""Of all queues together, before others have their turn."""
REVIVED_A_TICK: Final = 128
"""Messages of one queue, likewise."""
RETRY_S: Final = 1.0
GONE_MAX: Final = 10_000
"""Deleted topics and groups that are remembered; what goes past may bring messages twice."""


class Revival:
    """Brings back what was not acknowledged."""

    def __init__(self, parts: PopParts, next_second: Callable[[], int]) -> None:
        """Learn from `next_second` which timers are delivered."""
        self._parts = parts
        self._next_second = next_second
        self._queues: list[ReviveQueue] = []
        self._paused_until = 0.0
        self._log_end = 0
        self._is_ticking = False
        self._reads_left = 0
        self.wake: Callable[[], None] = lambda: None
        """Called when `tick` has something to do."""
        self._gone: dict[tuple[str, str], int] = {}
        """Topic and group, one of them empty, and when it was deleted."""
        self.revived = 0
        """Messages that were stored again since the start."""

    def open(self) -> None:
        """Find out how far each queue is."""
        self._queues = []
        for queue_id in range(self._parts.settings.now.revive_queues):
            committed = self._parts.offsets.find(self._key(queue_id))
            least = self._parts.store.reads.min_offset(self._parts.maker.revive_topic, queue_id)
            self._queues.append(ReviveQueue(queue_id, max(committed, least - 1, -1)))

    def progress(self) -> list[tuple[str, int, int]]:
        """Return topic and queue id of every revive queue, and its first record not looked at."""
        topic = self._parts.maker.revive_topic
        return [(topic, queue.queue_id, queue.next_offset) for queue in self._queues]

    def _key(self, queue_id: int) -> QueueKey:
        return QueueKey(REVIVE_GROUP, self._parts.maker.revive_topic, queue_id)

    def tick(self) -> float | None:
        """Settle what is due; return in how many seconds to be called again, or None."""
        now = self._parts.clock.monotonic()
        if now < self._paused_until:
            return self._paused_until - now
        # Asked before reading: all that was delivered by then is in the queues.
        limit_ms = min(self._next_second() * 1000, self._parts.clock.now_ms())
        self._is_ticking = True
        try:
            self._reads_left = READS_A_TICK
            more = [self._look(queue, limit_ms) for queue in self._queues if not queue.is_busy]
            self._queues.append(self._queues.pop(0))  # another one is first next time
        finally:
            self._is_ticking = False
        self._parts.offsets.settle()
        if any(more):
            return 0.0
        is_idle = all(queue.is_idle for queue in self._queues)
        return None if is_idle and self._parts.offsets.is_settled else RETRY_S

    def forget(self, topic: str, group: str) -> None:
        """Bring back nothing that was popped from a topic, or by a group, until now: it is deleted.

        Check points wait in the timer's topic and come by later. If the same name is used again,
        they must not bring back messages that are at the same offsets by chance.
        """
        self._gone.pop((topic, group), None)
        while len(self._gone) >= GONE_MAX:
            del self._gone[next(iter(self._gone))]
        self._gone[topic, group] = self._parts.clock.now_ms()

    def _is_gone(self, point: CheckPoint) -> bool:
        """Tell whether topic or group of a check point was deleted since."""
        deleted_ms = max(
            (self._gone.get(key, -1) for key in ((point.t, ""), ("", point.c))), default=-1
        )
        return (
            point.pt <= deleted_ms
            or self._parts.groups.find(point.c) is None
            or self._parts.topics.find(popped_topic(point.t, point.c)) is None
        )

    def _go_on(self) -> None:
        """Go on behind something that was waited for."""
        if not self._is_ticking:
            self.wake()

    def _look(self, queue: ReviveQueue, limit_ms: int) -> bool:
        """Read a queue and settle what is due; tell whether there is more to do at once."""
        while not queue.is_full and self._has_more(queue):
            if self._reads_left == 0:
                return True
            self._reads_left -= 1
            if not self._read(queue):
                return False
        if not self._is_free(queue):
            return False
        done, more = 0, False
        for point in queue.due(limit_ms):
            done += len(point.left)
            if done > REVIVED_A_TICK:
                more = True
                break
            self._settle(queue, point)
            if not self._is_free(queue):
                break
        self._move(queue)
        return more

    # -- reading --------------------------------------------------------------------------------

    def _has_more(self, queue: ReviveQueue) -> bool:
        units = self._parts.store.queues.find(self._parts.maker.revive_topic, queue.queue_id)
        return units is not None and queue.next_offset < units.max_offset

    def _read(self, queue: ReviveQueue) -> bool:
        """Read more of a queue; False if the disk has to be waited for."""
        topic = self._parts.maker.revive_topic
        queue.is_busy = True
        least = self._parts.store.reads.min_offset(topic, queue.queue_id)
        offset = max(queue.next_offset, least)
        self._parts.store.reads.begin_get(
            topic, queue.queue_id, offset, BATCH, None, lambda found: self._found(queue, found)
        )
        return self._is_free(queue)

    def _is_free(self, queue: ReviveQueue) -> bool:
        """Tell whether a queue waits neither for the disk nor for better times."""
        return not queue.is_busy and self._parts.clock.monotonic() >= self._paused_until

    def _found(self, queue: ReviveQueue, found: Found) -> None:
        queue.is_busy = False
        if found.trouble:
            self._pause(found.trouble)
            return
        for raw in found.records:
            queue.take_in(raw)
        queue.next_offset = max(queue.next_offset, found.next_offset)
        self._go_on()

    def _pause(self, why: str) -> None:
        log.warning("reviving waits %g s: %s", RETRY_S, why)
        self._paused_until = self._parts.clock.monotonic() + RETRY_S
        self._go_on()

    # -- settling -------------------------------------------------------------------------------

    def _settle(self, queue: ReviveQueue, open_point: OpenPoint) -> None:
        """Store again what is left of a check point."""
        point = open_point.point
        group = self._parts.groups.find(point.c)
        if self._is_gone(point):
            log.warning("%s or %s is gone, and so is what it had popped", point.t, point.c)
            open_point.left.clear()
        if not open_point.left:
            queue.settled(open_point)
            return
        queue.is_busy = True
        assert group is not None  # noqa: S101 - nothing is left without one
        self._next(queue, open_point, group)

    def _next(self, queue: ReviveQueue, open_point: OpenPoint, group: SubscriptionGroup) -> None:
        """Read the first message that is left."""
        point = open_point.point
        offset = next(iter(open_point.left))
        self._parts.store.reads.begin_get(
            point.t,
            point.q,
            offset,
            1,
            None,
            lambda found: self._read_message(queue, open_point, group, offset, found),
        )

    def _read_message(
        self,
        queue: ReviveQueue,
        open_point: OpenPoint,
        group: SubscriptionGroup,
        offset: int,
        found: Found,
    ) -> None:
        trouble = found.trouble
        if not trouble and found.records:
            trouble = self._store_again(open_point.point, group, found)
        elif not trouble:
            log.warning("%s/%d/%d is gone and is not handed out again: %s",
                        open_point.point.t, open_point.point.q, offset,
                        found.status.value)  # fmt: skip
        if trouble:
            queue.is_busy = False
            self._pause(trouble)
            return
        open_point.left.pop(offset, None)
        if open_point.left:
            self._next(queue, open_point, group)
            return
        queue.is_busy = False
        queue.settled(open_point)
        self._move(queue)
        self._go_on()

    def _store_again(self, point: CheckPoint, group: SubscriptionGroup, found: Found) -> str:
        """Store a message again; return why that has to be tried again, if it has."""
        message = self._revived(point, group, decode(found.records[0]))
        try:
            stored = self._parts.store.put([message])
        except GantryError as error:
            log.error("a message of %s can never be stored again: %s", point.t, error)  # noqa: TRY400
            return ""
        if stored.status is not PutStatus.PUT_OK:
            return f"storing for {message.topic} gave {stored.status.value}"
        self._log_end = max(self._log_end, stored.end)
        self.revived += 1
        return ""

    def _revived(self, point: CheckPoint, group: SubscriptionGroup, record: Record) -> NewMessage:
        message = as_new(record)
        limit = group.retry_times_max if group.retry_times_max >= 0 else DEFAULT_RETRY_TIMES
        if message.reconsume_times >= limit:
            topic = self._parts.topics.create_for_group(dlq_topic(group.name), 1).name
        else:
            topic = self._retry_topic(point)
        properties = {name: one for name, one in message.properties.items() if name != POP_CK}
        if message.reconsume_times == 0 or FIRST_POP_TIME not in properties:
            properties[FIRST_POP_TIME] = str(point.pt)
        properties[ORIGIN_GROUP] = group.name
        return message._replace(
            topic=topic,
            queue_id=0,
            properties=properties,
            reconsume_times=message.reconsume_times + (not point.sp),
            store_host=None,
            waits=False,
            is_due=True,
        )

    def _retry_topic(self, point: CheckPoint) -> str:
        """Return where a group gets its messages again; it is made, and begun with."""
        if is_retry_topic(point.t):
            return point.t
        version = 2 if self._parts.settings.now.pop_retry_v2 else 1
        name = pop_retry_topic(point.c, point.t, version)
        if self._parts.topics.find(name) is None:
            self._parts.topics.create_for_group(name, 1)
            key = QueueKey(point.c, name, 0)
            if self._parts.offsets.find(key) < 0:
                self._parts.offsets.commit(key, 0, "retry topic")
        return name

    def _move(self, queue: ReviveQueue) -> None:
        """Move a queue on, as far as everything in it is settled."""
        key = self._key(queue.queue_id)
        done = queue.done_offset
        if done > self._parts.offsets.find(key):
            self._parts.offsets.move(key, done, self._log_end)
