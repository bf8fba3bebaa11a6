"""PEEK_MESSAGE, NOTIFICATION and POLLING_INFO: look, and take nothing.

Owned by the event loop's task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.broker.answers import answer
from gantrymq.broker.pop.offsets import QueueKey
from gantrymq.model.names import pop_retry_topic
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.headers.pop import (
    NotificationRequest,
    NotificationResponse,
    PeekMessageRequest,
    PollingInfoRequest,
    PollingInfoResponse,
    PopMessageResponse,
)
from gantrymq.wire.response_errors import InvalidParameter

if TYPE_CHECKING:
    from asyncio import Future

    from gantrymq.broker.pop.parts import PopParts
    from gantrymq.broker.pop.polling import Waiter
    from gantrymq.store.get import Found
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Peer, Pending

MESSAGES_MAX: Final = 32


class Looking:
    """Answers those who only look."""

    def __init__(self, parts: PopParts) -> None:
        self._parts = parts
        self._waiting: dict[int, set[Waiter]] = {}

    # -- peek -----------------------------------------------------------------------------------

    def peek(self, request: Command, _peer: Peer) -> Pending:
        """Return messages that a pop would get, and leave them.

        Raises:
            ResponseError: it may not.
        """
        header = PeekMessageRequest.decode(request.fields)
        parts = self._parts
        parts.check_reader(header.consumer_group, header.topic, header.queue_id)
        if not 0 < header.max_msg_nums <= MESSAGES_MAX:
            raise InvalidParameter(f"maxMsgNums {header.max_msg_nums} is not 1 to {MESSAGES_MAX}")
        future = parts.new_future()
        queues = self._queues(header.consumer_group, header.topic, header.queue_id)
        self._peek_on(request, header, iter(queues), [], 0, future)
        return future.result() if future.done() else future

    def _peek_on(
        self, request: Command, header: PeekMessageRequest, queues: object,
        records: list[bytes], rest: int, future: Future[Answer],
    ) -> None:  # fmt: skip
        """Look at the next queue; there are few, so that each may be a step of its own."""
        parts = self._parts
        for key in queues:  # type: ignore[attr-defined]
            offset = self._next(key)
            rest += max(parts.store.reads.max_offset(key.topic, key.queue_id) - offset, 0)
            room = header.max_msg_nums - len(records)
            if room <= 0:
                continue
            is_done: list[Found] = []
            is_late: list[bool] = []
            so_far = rest

            def found(
                result: Found, is_done: list[Found] = is_done, is_late: list[bool] = is_late,
                so_far: int = so_far,
            ) -> None:  # fmt: skip
                records.extend(bytes(record) for record in result.records)
                is_done.append(result)
                if is_late:
                    self._peek_on(request, header, queues, records, so_far, future)

            parts.store.reads.begin_get(key.topic, key.queue_id, offset, room, None, found)
            if not is_done:
                is_late.append(True)
                return
        code = ResponseCode.SUCCESS if records else ResponseCode.PULL_NOT_FOUND
        fields = PopMessageResponse(pop_time=0, invisible_time=0, revive_qid=0, rest_num=rest)
        remark = "FOUND" if records else "NO_MESSAGE_IN_QUEUE"
        if not future.done():
            future.set_result(
                answer(request, code, fields.encode(), b"".join(records), remark=remark)
            )

    def _queues(self, group: str, topic: str, queue_id: int) -> list[QueueKey]:
        """Return the queues that a pop would look at, the retry topics last."""
        parts = self._parts
        keys = []
        names = (topic, *(pop_retry_topic(group, topic, version) for version in (1, 2)))
        for name in names:
            config = parts.topics.find(name)
            if config is not None:
                one = name == topic and queue_id >= 0
                numbers = [queue_id] if one else range(config.read_queues)
                keys += [QueueKey(group, name, number) for number in numbers]
        return keys

    def _next(self, key: QueueKey) -> int:
        least = self._parts.store.reads.min_offset(key.topic, key.queue_id)
        return max(self._parts.offsets.find(key), least)

    # -- notification ---------------------------------------------------------------------------

    def notify(self, request: Command, peer: Peer) -> Pending:
        """Tell whether there is anything to pop, now or when there is.

        Raises:
            ResponseError: it may not.
        """
        header = NotificationRequest.decode(request.fields)
        parts = self._parts
        parts.check_reader(header.consumer_group, header.topic, header.queue_id)
        if self._has_messages(header) or header.poll_time <= 0:
            return _notified(request, has=self._has_messages(header))
        key = QueueKey(header.consumer_group, header.topic, max(header.queue_id, -1))
        future = parts.new_future()
        born_ms = header.born_time or parts.clock.now_ms()
        left_ms = born_ms + header.poll_time - parts.clock.now_ms()

        def run(_last: bool) -> None:
            if not future.done():
                future.set_result(_notified(request, has=self._has_messages(header)))

        waiter = parts.notices.hold(key, min(max(left_ms, 0), header.poll_time) / 1000, run)
        if waiter is None:
            return _notified(request, has=False, full=True)
        self._waiting.setdefault(peer.number, set()).add(waiter)
        future.add_done_callback(lambda _: self._let_go(peer.number, waiter))
        return future

    def _has_messages(self, header: NotificationRequest) -> bool:
        parts = self._parts
        for key in self._queues(header.consumer_group, header.topic, header.queue_id):
            if header.order and (
                key.topic != header.topic or parts.order.is_blocked(key, header.attempt_id)
            ):
                continue
            if parts.store.reads.max_offset(key.topic, key.queue_id) > self._next(key):
                return True
        return False

    def _let_go(self, number: int, waiter: Waiter) -> None:
        mine = self._waiting.get(number)
        if mine is not None:
            mine.discard(waiter)
            if not mine:
                del self._waiting[number]

    def peer_closed(self, peer: Peer) -> None:
        """Forget the requests of a connection that is no more."""
        for waiter in self._waiting.pop(peer.number, ()):
            self._parts.notices.drop(waiter)

    # -- polling info ---------------------------------------------------------------------------

    def polling_info(self, request: Command, _peer: Peer) -> Answer:
        """Return how many requests wait on a queue.

        Raises:
            ResponseError: it may not.
        """
        header = PollingInfoRequest.decode(request.fields)
        self._parts.check_reader(header.consumer_group, header.topic, header.queue_id)
        key = QueueKey(header.consumer_group, header.topic, header.queue_id)
        count = self._parts.polling.waiting(key)
        return answer(request, fields=PollingInfoResponse(polling_num=count).encode())

    def roll_back(self, request: Command, _peer: Peer) -> Answer:
        """Have nothing to do: check points are where older brokers find them (200056)."""
        return answer(request)


def _notified(request: Command, *, has: bool, full: bool = False) -> Command:
    fields = NotificationResponse(has_msg=has, polling_full=full)
    return answer(request, fields=fields.encode())
