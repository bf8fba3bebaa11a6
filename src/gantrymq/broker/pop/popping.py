"""POP_MESSAGE (200050): hands out messages of one queue or of all, for a while.

A pop goes over queues one after the other, from a random one on, and takes from each what is there;
the group's retry topic comes first in one pop of five, and last otherwise. Of each queue it notes a
check point before the answer leaves. A pop that finds nothing waits, if it may.

Owned by the event loop's task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.broker.answers import answer, refusal
from gantrymq.broker.pop import handles
from gantrymq.broker.pop.handles import ORDERLY
from gantrymq.broker.pop.open_pop import Asked, Pop
from gantrymq.broker.pop.queue_pop import QueuePops, Share, Taken
from gantrymq.broker.storing import not_stored
from gantrymq.errors import GantryError
from gantrymq.kernel.values import PullRequest
from gantrymq.model.group import SUBSCRIBE_ALL
from gantrymq.model.names import pop_retry_topic
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.headers.pop import PopMessageRequest, PopMessageResponse
from gantrymq.wire.response_errors import InvalidParameter, PollingTimeout

if TYPE_CHECKING:
    from asyncio import Future

    from gantrymq.broker.pop.parts import PopParts
    from gantrymq.broker.pop.polling import Waiter
    from gantrymq.broker.selections import Selection
    from gantrymq.store.status import PutStatus
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Peer, Pending

MESSAGES_MAX: Final = 32
LATE_MS: Final = 500
"""A request that is so much older than it wanted to wait is not worth an answer."""
LOOK_AGAIN_MS: Final = 200
PERCENT: Final = 100


class Popping:
    """Answers pops."""

    def __init__(self, parts: PopParts) -> None:
        self._parts = parts
        self._queues = QueuePops(parts)
        self._number = 0
        self._waiting: dict[int, set[Waiter]] = {}
        self.is_closed = False
        """Nobody waits any more."""

    def pop(self, request: Command, peer: Peer) -> Pending:
        """Hand out messages, now or when there are some.

        Raises:
            ResponseError: it may not.
        """
        header = PopMessageRequest.decode(request.fields)
        now_ms = self._parts.clock.now_ms()
        header = msgspec.structs.replace(header, born_time=header.born_time or now_ms)
        if now_ms - header.born_time - header.poll_time > LATE_MS:
            raise PollingTimeout("pop message is timeout too much: the request came too late")
        asked = Asked(request, header, peer, self._parts.new_future())
        self._begin(asked, may_wait=True, requests=1)
        return asked.future.result() if asked.future.done() else asked.future

    def _begin(self, asked: Asked, *, may_wait: bool, requests: int = 0) -> None:
        header = asked.header
        pop = self._admitted(asked)
        if self._is_throttled(asked, requests, may_wait=may_wait):
            return
        self._run(pop, may_wait=may_wait and header.poll_time > 0)

    def _is_throttled(self, asked: Asked, requests: int, *, may_wait: bool) -> bool:
        """Let a pop that is over a quota wait for it.

        Raises:
            QuotaExceeded: it does not want to wait for so long, or too many do.
        """
        parts, header = self._parts, asked.header
        group = parts.groups.find(header.consumer_group)
        if group is None:
            return False
        exceeded = parts.quotas.exceeded_read(group, parts.topics.find(header.topic), requests)
        if exceeded is None:
            return False
        if (
            not may_wait
            or exceeded.wait_s * 1000 > self._left_ms(asked)
            or not parts.throttled.hold(
                exceeded.cause,
                exceeded.wait_s,
                asked.peer,
                lambda: self._again(asked, requests=requests),
            )
        ):
            parts.quotas.refused(exceeded.cause)
            raise exceeded
        return True

    def _admitted(self, asked: Asked) -> Pop:
        """Check a pop, and choose its queues."""
        header, parts = asked.header, self._parts
        if not 0 < header.max_msg_nums <= MESSAGES_MAX:
            raise InvalidParameter(
                f"pop message's num is greater than {MESSAGES_MAX}, or none: {header.max_msg_nums}"
            )
        longest_ms = parts.settings.now.timer_delay_max_s * 1000
        if not 0 <= header.invisible_time <= longest_ms:
            raise InvalidParameter(
                f"invisibleTime {header.invisible_time} is not 0 to {longest_ms} ms"
            )
        topic = parts.check_reader(header.consumer_group, header.topic, header.queue_id)
        selection = self._selection(header)
        dice = parts.pick(PERCENT)
        revive = ORDERLY
        if not header.order:
            revive = self._number % parts.settings.now.revive_queues
            self._number += 1
        share = Share(
            header.consumer_group,
            parts.clock.now_ms(),
            header.invisible_time,
            revive,
            header.init_mode,
            bool(header.order),
            header.attempt_id,
            asked.peer.address,
            header.topic,
        )
        queues = (
            [(header.topic, header.queue_id)]
            if header.queue_id >= 0
            else _all_queues(header.topic, topic.read_queues, dice)
        )
        if not header.order:
            retries = self._retry_queues(header, dice)
            first = dice < parts.settings.now.pop_retry_percent
            queues = retries + queues if first else queues + retries
        return Pop(asked.request, header, asked.peer, share, queues, selection, asked.future)

    def _retry_queues(self, header: PopMessageRequest, dice: int) -> list[tuple[str, int]]:
        """Return the queues of the group's retry topic, one version at a time: clients tell apart
        no more than one queue of each number.
        """
        names = (pop_retry_topic(header.consumer_group, header.topic, one) for one in (1, 2))
        found = [topic for topic in map(self._parts.topics.find, names) if topic is not None]
        if not found:
            return []
        topic = found[dice % len(found)]
        return _all_queues(topic.name, topic.read_queues, dice)

    def _selection(self, header: PopMessageRequest) -> Selection:
        request = PullRequest(
            version=0, opaque=0, oneway=False, serialize_type=0,
            consumer_group=header.consumer_group, topic=header.topic, queue_id=header.queue_id,
            queue_offset=0, max_messages=header.max_msg_nums, sys_flag=0, commit_offset=0,
            suspend_timeout_ms=0, subscription=header.exp or SUBSCRIBE_ALL, sub_version=0,
            expression_type=header.exp_type, max_bytes=None, broker_name=None, extra_fields=False,
        )  # fmt: skip
        if not header.exp:
            request = request._replace(expression_type=None)
        selections = self._parts.selections
        return selections.of(request, selections.in_request(request), own=True)

    # -- queue by queue -------------------------------------------------------------------------

    def _run(self, pop: Pop, *, may_wait: bool) -> None:
        """Go over the queues; a read that is not done at once goes on when it is."""
        if pop.is_running:
            return
        pop.is_running = True
        for topic, queue_id in pop.queues:
            pop.is_waiting = True

            def done(taken: Taken) -> None:
                pop.is_waiting = False
                pop.add(taken)
                self._run(pop, may_wait=may_wait)

            self._queues.take(pop.share, topic, queue_id, pop.room, pop.selection.choose, done)
            if pop.is_waiting:
                pop.is_running = False
                return
        self._answer(pop, may_wait=may_wait)

    def _answer(self, pop: Pop, *, may_wait: bool) -> None:
        if pop.taken:
            for queue_id in pop.left_in or ([pop.key.queue_id] if pop.rest else []):
                self._parts.polling.wake(pop.key._replace(queue_id=queue_id))
            end = max(taken.log_end for taken in pop.taken)
            self._parts.store.hold(end, lambda status: self._let_out(pop, status))
            return
        code = ResponseCode.POLLING_TIMEOUT
        if may_wait:
            if self._wait(pop):
                return
            code = ResponseCode.POLLING_FULL
        _settle(pop.future, answer(pop.request, code, self._fields(pop), remark=_NOTHING))

    def _let_out(self, pop: Pop, status: PutStatus) -> None:
        if not status.is_stored:
            _settle(pop.future, refusal(pop.request, not_stored(status, self._parts.store)))
            return
        body = b"".join(record for taken in pop.taken for record in taken.records)
        _settle(
            pop.future,
            answer(pop.request, ResponseCode.SUCCESS, self._fields(pop), body, remark="FOUND"),
        )

    def _fields(self, pop: Pop) -> dict[str, str]:
        header, taken = pop.header, pop.taken
        starts = [handles.start_info(one.topic, one.queue_id, one.start) for one in taken]
        offsets = [handles.offsets_info(one.topic, one.queue_id, one.offsets) for one in taken]
        counts = [one.order_info for one in taken if one.order_info]
        return PopMessageResponse(
            pop_time=pop.share.pop_time,
            invisible_time=header.invisible_time,
            revive_qid=pop.share.revive_queue,
            rest_num=pop.rest,
            start_offset_info=";".join(starts),
            msg_offset_info=";".join(offsets),
            order_count_info=";".join(counts) if header.order else None,
        ).encode()

    # -- waiting --------------------------------------------------------------------------------

    def _wait(self, pop: Pop) -> bool:
        """Let a pop wait for a message; False if too many do.

        It looks again earlier where there is something that it could not have now: another reads
        that queue, or an orderly batch is out.
        """
        header, asked = pop.header, Asked(pop.request, pop.header, pop.peer, pop.future)
        wait_ms = self._left_ms(asked)
        if pop.blocked_until is not None:
            wait_ms = min(wait_ms, max(pop.blocked_until - self._parts.clock.now_ms(), 1))
        elif pop.rest > 0:
            wait_ms = min(wait_ms, LOOK_AGAIN_MS)
        waiter = self._parts.polling.hold(
            pop.key,
            wait_ms / 1000,
            lambda _last: self._again(asked),
            None if header.order else pop.selection.wanted,
        )
        if waiter is None:
            return False
        mine = self._waiting.setdefault(pop.peer.number, set())
        mine.add(waiter)
        pop.future.add_done_callback(lambda _: self._let_go(pop.peer.number, waiter))
        return True

    def _left_ms(self, asked: Asked) -> int:
        """Return how long a pop may still wait."""
        left = asked.header.born_time + asked.header.poll_time - self._parts.clock.now_ms()
        return min(max(left, 0), asked.header.poll_time)

    def _again(self, asked: Asked, *, requests: int = 0) -> None:
        if asked.future.done():
            return
        may_wait = self._left_ms(asked) > 0 and not self.is_closed
        try:
            self._begin(asked, may_wait=may_wait, requests=requests)
        except GantryError as error:
            _settle(asked.future, refusal(asked.request, error))

    def _let_go(self, number: int, waiter: Waiter) -> None:
        mine = self._waiting.get(number)
        if mine is not None:
            mine.discard(waiter)
            if not mine:
                del self._waiting[number]

    def peer_closed(self, peer: Peer) -> None:
        """Forget the pops of a connection that is no more."""
        for waiter in self._waiting.pop(peer.number, ()):
            self._parts.polling.drop(waiter)


_NOTHING: Final = "NO_MESSAGE_IN_QUEUE"


def _all_queues(topic: str, count: int, dice: int) -> list[tuple[str, int]]:
    return [(topic, (dice + step) % count) for step in range(count)]


def _settle(future: Future[Answer], reply: Answer) -> None:
    if not future.done():
        future.set_result(reply)
