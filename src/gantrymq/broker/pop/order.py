"""What orderly pops have handed out, and `consumerOrderInfo.json`.

A queue of a group has at most one batch out. Until all of it is acknowledged, or its time is over,
nobody of the group gets anything from that queue; only who repeats its own attempt does. The rules
are those of Apache's `ConsumerOrderInfoManager`, release 5.5, and so is the file.

Owned by the event loop's task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import msgspec

from gantrymq.broker.pop.offsets import QueueKey
from gantrymq.broker.saved_state import SavedState, with_quoted_keys
from gantrymq.errors import ContentError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.clock import Clock

KEPT_MS: Final = 86_400_000
"""Since it was last used; then a batch is forgotten."""
BATCHES_MAX: Final = 1_000_000
ILLEGAL: Final = -1
STALE: Final = -2


class _Batch(msgspec.Struct, omit_defaults=True):
    """What is out of one queue, with the names of the file."""

    popTime: int
    i: int | None = None
    """Invisible time."""
    o: list[int] = []
    """The first offset, and how far each other one is from it."""
    ot: dict[int, int] | None = None
    """Offset to when it may be handed out again, where that was changed."""
    oc: dict[int, int] | None = None
    """Offset to how often it was handed out before."""
    l: int = 0  # noqa: E741 - the file's name for the time of the last pop
    cm: int = 0
    """Bits of those that are acknowledged."""
    a: str | None = None
    """Attempt."""

    @property
    def offsets(self) -> list[int]:
        """Return the queue offsets."""
        return [self.o[0], *(self.o[0] + step for step in self.o[1:])] if self.o else []

    def free_at(self, now_ms: int) -> int:
        """Return when the next batch may be handed out: in the future, or now."""
        for place, offset in enumerate(self.offsets):
            if not self.cm >> place & 1:
                visible = (self.ot or {}).get(offset, self.popTime + (self.i or 0))
                if visible > now_ms:
                    return visible
        return now_ms

    def next_offset(self) -> int:
        """Return the first offset that is not acknowledged, or the one behind all."""
        offsets = self.offsets
        for place, offset in enumerate(offsets):
            if not self.cm >> place & 1:
                return offset
        return offsets[-1] + 1


class _File(msgspec.Struct):
    table: dict[str, dict[int, _Batch]] = {}


class OrderInfo(SavedState):
    """The batches of all groups that pop in order."""

    file_name: ClassVar[str] = "consumerOrderInfo.json"
    is_checked: ClassVar[bool] = True

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._batches: dict[QueueKey, _Batch] = {}

    def handed_out(
        self,
        key: QueueKey,
        attempt: str | None,
        pop_time: int,
        invisible_ms: int,
        offsets: Sequence[int],
    ) -> dict[int, int]:
        """Note a batch; return how often those of its messages that are no news were out before."""
        before = self._batches.get(key)
        batch = _Batch(
            popTime=pop_time,
            i=invisible_ms,
            o=[offsets[0], *(offset - offsets[0] for offset in offsets[1:])],
            l=self._clock.now_ms(),
            a=attempt,
        )
        if before is not None:
            counts = before.oc or {}
            if before.a is not None and before.a == attempt:
                batch.oc = {one: counts[one] for one in offsets if one in counts}
            else:
                old = set(before.offsets)
                batch.oc = {one: counts.get(one, 0) + 1 for one in offsets if one in old}
        elif len(self._batches) >= BATCHES_MAX:
            self.forget_old()
            while len(self._batches) >= BATCHES_MAX:  # all of today: the first is given up
                self.clear(next(iter(self._batches)))
        self._batches[key] = batch
        self._changes += 1
        return batch.oc or {}

    def is_blocked(self, key: QueueKey, attempt: str | None) -> bool:
        """Tell whether a queue has messages out that are still being worked on."""
        batch = self._batches.get(key)
        if batch is None or (batch.a is not None and batch.a == attempt):
            return False
        now_ms = self._clock.now_ms()
        return batch.free_at(now_ms) > now_ms

    def free_at(self, key: QueueKey) -> int | None:
        """Return when a queue is free again, if something is out of it."""
        batch = self._batches.get(key)
        if batch is None:
            return None
        now_ms = self._clock.now_ms()
        moment = batch.free_at(now_ms)
        return moment if moment > now_ms else None

    def done(self, key: QueueKey, offset: int, pop_time: int) -> int:
        """Note an acknowledgement; return the offset to commit, or `ILLEGAL`, or `STALE`."""
        batch = self._batches.get(key)
        if batch is None:
            return offset + 1
        if pop_time != batch.popTime:
            return STALE
        offsets = batch.offsets
        if offset not in offsets:
            return ILLEGAL
        batch.cm |= 1 << offsets.index(offset)
        self._changes += 1
        return batch.next_offset()

    def change_visible(self, key: QueueKey, offset: int, pop_time: int, visible_ms: int) -> None:
        """Note that a message may be handed out again at another time than was said."""
        batch = self._batches.get(key)
        if batch is not None and batch.popTime == pop_time and offset in batch.offsets:
            batch.ot = {**(batch.ot or {}), offset: visible_ms}
            self._changes += 1

    def clear(self, key: QueueKey) -> None:
        """Forget what is out of a queue: its group was sent elsewhere."""
        if self._batches.pop(key, None) is not None:
            self._changes += 1

    def forget(self, is_gone: Callable[[QueueKey], bool]) -> None:
        """Forget what is out of queues whose topic or group was deleted."""
        for key in [key for key in self._batches if is_gone(key)]:
            self.clear(key)

    def forget_old(self) -> None:
        """Forget batches that nobody has asked about for a day."""
        oldest = self._clock.now_ms() - KEPT_MS
        for key in [key for key, batch in self._batches.items() if batch.l < oldest]:
            self.clear(key)

    # -- the file -------------------------------------------------------------------------------

    def snapshot(self) -> Callable[[], bytes]:
        """Take a picture."""
        table: dict[str, dict[int, bytes]] = {}
        for key, batch in self._batches.items():
            queues = table.setdefault(f"{key.topic}@{key.group}", {})
            queues[key.queue_id] = msgspec.json.encode(batch)
        return lambda: msgspec.json.encode(
            {"table": {
                name: {str(queue): msgspec.Raw(raw) for queue, raw in queues.items()}
                for name, queues in table.items()
            }}
        )  # fmt: skip

    def load(self, content: bytes) -> None:
        """Take over a file.

        Raises:
            ContentError: it is not `consumerOrderInfo.json`.
        """
        try:
            file = msgspec.json.decode(with_quoted_keys(content), type=_File)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ContentError(self.file_name, str(error)) from None
        self._batches = {
            QueueKey(name.partition("@")[2], name.partition("@")[0], queue_id): batch
            for name, queues in file.table.items()
            for queue_id, batch in queues.items()
        }
