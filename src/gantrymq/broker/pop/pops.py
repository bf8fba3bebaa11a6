"""All of pop in one object: its handlers, what it does by the clock, and its start and stop.

Owned by the event loop's task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.broker.pop.acking import Acking
from gantrymq.broker.pop.looking import Looking
from gantrymq.broker.pop.popping import Popping
from gantrymq.broker.pop.revive import Revival
from gantrymq.wire.codes import RequestCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set

    from gantrymq.broker.pop.offsets import QueueKey
    from gantrymq.broker.pop.parts import PopParts
    from gantrymq.kernel import QueueRun
    from gantrymq.wire.peer import Handler, Peer


class Pops:
    """Pop consumption of one broker."""

    def __init__(self, parts: PopParts, next_second: Callable[[], int]) -> None:
        """Learn from `next_second` which timers are delivered."""
        self.parts = parts
        self._popping = Popping(parts)
        self._acking = Acking(parts)
        self._looking = Looking(parts)
        self.revival = Revival(parts, next_second)
        self._revive_topic = parts.maker.revive_topic.encode()

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Return what is handled here."""
        return {
            RequestCode.POP_MESSAGE: self._popping.pop,
            RequestCode.ACK_MESSAGE: self._acking.ack,
            RequestCode.BATCH_ACK_MESSAGE: self._acking.batch_ack,
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME: self._acking.change_invisible,
            RequestCode.PEEK_MESSAGE: self._looking.peek,
            RequestCode.NOTIFICATION: self._looking.notify,
            RequestCode.POLLING_INFO: self._looking.polling_info,
            RequestCode.POP_ROLLBACK: self._looking.roll_back,
        }

    def arrived(self, runs: Sequence[QueueRun], topics: Set[bytes]) -> None:
        """Wake who waits for a message; called by dispatch."""
        self.parts.polling.arrived(runs)
        self.parts.notices.arrived(runs)
        if self._revive_topic in topics:
            self.revival.wake()

    def expire(self, now: float) -> float | None:
        """Answer those who have waited long enough; return when to be called again."""
        dues = (self.parts.polling.expire(now), self.parts.notices.expire(now))
        return min((due for due in dues if due is not None), default=None)

    def peer_closed(self, peer: Peer) -> None:
        """Forget the requests of a connection that is no more."""
        self._popping.peer_closed(peer)
        self._looking.peer_closed(peer)

    def forget(self, topic: str = "", group: str = "") -> None:
        """Forget a topic, or a group, that was deleted: what is out, and who waits."""

        def is_gone(key: QueueKey) -> bool:
            return key.topic == topic if topic else key.group == group

        self.revival.forget(topic, group)
        self.parts.offsets.forget(is_gone)
        self.parts.order.forget(is_gone)
        for polling in (self.parts.polling, self.parts.notices):
            polling.release(is_gone)

    def close(self) -> None:
        """Answer whoever waits, and commit where everybody is: the broker stops."""
        self._popping.is_closed = True
        self.parts.polling.release_all()
        self.parts.notices.release_all()
        self.parts.offsets.settle(everything=True)
