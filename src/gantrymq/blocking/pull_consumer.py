"""The blocking twin of `gantrymq.client.pull_consumer`.

Made by `make blocking` from the asyncio class: change that one, not this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.blocking.base import Blocking, Messages
from gantrymq.client.consuming import finding
from gantrymq.client.consuming.process_queue import MIB
from gantrymq.client.pull_consumer import PullConsumer as AsyncPullConsumer

if TYPE_CHECKING:
    import ssl as tls
    from datetime import datetime
    from typing import Unpack

    from gantrymq.client.consuming.start_position import Start
    from gantrymq.client.consuming.subscription import Expression
    from gantrymq.client.pull_consumer import PullResult
    from gantrymq.client.received import ReceivedMessage
    from gantrymq.client.settings import Timers
    from gantrymq.clock import Clock
    from gantrymq.model.queue import MessageQueue


class PullConsumer(Blocking[AsyncPullConsumer]):
    """Reads queues at offsets. Used from any thread, from several at once."""

    def __init__(
        self,
        namesrv: str,
        group: str,
        *,
        pull_batch: int = 32,
        hold_messages: int = 1000,
        hold_bytes: int = 100 * MIB,
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

        `pull_batch`, `hold_messages` and `hold_bytes` are for `for` over assigned queues; the
        other arguments are those of `PushConsumer`.

        Raises:
            InvalidValue: an argument cannot be.
        """
        super().__init__(
            AsyncPullConsumer(
                namesrv,
                group,
                pull_batch=pull_batch,
                hold_messages=hold_messages,
                hold_bytes=hold_bytes,
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
    def group(self) -> str:
        """Return what was given."""
        return self._client.group

    def start(self) -> None:
        """Begin. Brokers are found when they are needed.

        Raises:
            ClientError: it was started or closed before.
        """
        self._begin(self._client.start())

    def close(self) -> None:
        """Close all connections; offsets are committed by `commit` alone. Again: nothing."""
        self._end(self._client.close())

    def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Return the queues of a topic that may be read.

        Raises:
            NoRoute: the topic is not known, or none of its queues may be read.
        """
        return self._call(self._client.queues(topic))

    def min_offset(self, queue: MessageQueue) -> int:
        """Return the offset of the oldest message."""
        return self._call(self._client.min_offset(queue))

    def max_offset(self, queue: MessageQueue) -> int:
        """Return the offset that the next message gets."""
        return self._call(self._client.max_offset(queue))

    def offset_at(self, queue: MessageQueue, time: datetime | int) -> int:
        """Return the offset of the first message stored at a time (or milliseconds) or later."""
        return self._call(self._client.offset_at(queue, time))

    def committed(self, queue: MessageQueue) -> int | None:
        """Return the offset that was committed for the group; None if none was."""
        return self._call(self._client.committed(queue))

    def commit(self, queue: MessageQueue | None = None, offset: int | None = None) -> None:
        """Commit an offset for the group; without arguments where `for` is in every queue.

        Raises:
            InvalidValue: one argument is given without the other, or the offset is negative.
        """
        self._call(self._client.commit(queue, offset))

    def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        count: int = 32,
        expression: Expression = "*",
        wait_s: float = 0.0,
    ) -> PullResult:
        """Return messages from an offset on; with `wait_s`, wait so long for the first of them.

        Brokers give as many as their own limits allow, which are 32 and 256 KiB unless set
        otherwise.

        Raises:
            InvalidValue: an argument is out of its range.
            ResponseError, PeerGone, PeerLate, NoRoute: it did not work; `retriable` says whether
                the same call may.
        """
        return self._call(
            self._client.pull(queue, offset, count=count, expression=expression, wait_s=wait_s)
        )

    def view(self, offset_id: str) -> ReceivedMessage:
        """Return the message with an id of the broker's (`SendResult.offset_id`).

        Raises:
            InvalidValue: it is no such id.
            ResponseError: the broker has no message there.
        """
        return self._call(self._client.view(offset_id))

    def find(self, topic: str, message_id: str) -> ReceivedMessage | None:
        """Return the message with the id that its producer gave it; None if there is none."""
        return self._call(self._client.find(topic, message_id))

    def query(
        self,
        topic: str,
        key: str,
        begin: datetime | int = 0,
        end: datetime | int = finding.FOREVER_MS,
        count: int = 32,
    ) -> list[ReceivedMessage]:
        """Return messages with a key that were stored between two times, the oldest first."""
        return self._call(self._client.query(topic, key, begin, end, count))

    def assign(
        self, *queues: MessageQueue, expression: Expression = "*", start: Start = "first"
    ) -> None:
        """Have `for` read these queues too, from what is committed, else from `start`."""
        self._call(self._client.assign(*queues, expression=expression, start=start))

    def unassign(self, *queues: MessageQueue) -> None:
        """Read these queues no more; all of them, if none is named."""
        self._do(lambda: self._client.unassign(*queues))

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Have `for` go on at an offset of a queue.

        Raises:
            InvalidValue: the queue is not assigned, or the offset is negative.
        """
        self._do(lambda: self._client.seek(queue, offset))

    def position(self, queue: MessageQueue) -> int:
        """Return the offset of a queue behind which nothing was acknowledged by `for`.

        Raises:
            InvalidValue: the queue is not assigned.
        """
        return self._do(lambda: self._client.position(queue))

    @property
    def assignment(self) -> tuple[MessageQueue, ...]:
        """Return the queues that `for` reads."""
        return self._do(lambda: self._client.assignment)

    def __iter__(self) -> Messages[ReceivedMessage]:
        """Return a loop over the messages of the assigned queues; the one before it is over."""
        return self._iterate(self._client.__aiter__)
