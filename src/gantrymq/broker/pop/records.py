"""Check points and acknowledgements as they are stored: bytes and times of an Apache 5.5 broker.

Both are timer messages for the revive topic. A check point says which messages of a queue were
handed out together; it comes into its revive queue a second before they may be handed out again. An
acknowledgement says which of them are done with; it comes into the same queue when that second is
over, behind its check point. Whoever reads the queue knows then what is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from gantrymq.broker.timer.rules import number_of
from gantrymq.store.put import NewMessage
from gantrymq.wire.properties import TAGS, TIMER_DELIVER_MS, UNIQ_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

CK_TAG: Final = "ck"
ACK_TAG: Final = "ack"
BATCH_ACK_TAG: Final = "bAck"
EARLIER_MS: Final = 1000
"""By which a check point comes before its acknowledgements."""
MESSAGES_MAX: Final = 32
"""Of one check point: the bits of an int."""


class PointKey(NamedTuple):
    """By which an acknowledgement finds its check point."""

    topic: str
    group: str
    queue_id: int
    start_offset: int
    pop_time: int
    broker_name: str


class CheckPoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """Messages of one queue that were handed out together."""

    bm: int = 0
    bn: str | None = None
    c: str
    d: tuple[int, ...] | None = None
    it: int
    n: int
    pt: int
    q: int
    reviveTime: int = 0
    ro: int = 0
    rp: str | None = None
    so: int
    sp: bool = False
    t: str

    @property
    def key(self) -> PointKey:
        """Return what its acknowledgements say of it."""
        return PointKey(self.t, self.c, self.q, self.so, self.pt, self.bn or "")

    @property
    def revive_ms(self) -> int:
        """Return when what is left is handed out again."""
        return self.pt + self.it

    @property
    def offsets(self) -> list[int]:
        """Return the offsets of the messages."""
        if self.d:
            return [self.so + step for step in self.d[:MESSAGES_MAX]]
        return list(range(self.so, self.so + max(0, min(self.n, MESSAGES_MAX))))

    @property
    def tries(self) -> int:
        """Return how often it was written anew."""
        return number_of(self.rp) or 0


class AckRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of a check point that are done with."""

    ao: int = msgspec.field(default=-1)
    aol: tuple[int, ...] | None = None
    bn: str | None = None
    c: str
    pt: int
    q: int
    so: int
    t: str

    @property
    def key(self) -> PointKey:
        """Return which check point is meant."""
        return PointKey(self.t, self.c, self.q, self.so, self.pt, self.bn or "")

    @property
    def offsets(self) -> Sequence[int]:
        """Return which messages are meant."""
        return (self.ao,) if self.aol is None else self.aol


_CK: Final = msgspec.json.Decoder(CheckPoint)
_ACK: Final = msgspec.json.Decoder(AckRecord)


def parse(tag: str, body: bytes) -> CheckPoint | AckRecord | None:
    """Read a record of the revive topic; None if it is neither."""
    try:
        if tag == CK_TAG:
            return _CK.decode(body)
        if tag in {ACK_TAG, BATCH_ACK_TAG}:
            return _ACK.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return None


def _body(value: CheckPoint | AckRecord) -> bytes:
    fields = {name: one for name, one in msgspec.structs.asdict(value).items() if one is not None}
    return msgspec.json.encode(fields)


class RecordMaker:
    """Makes the messages that are stored."""

    def __init__(self, revive_topic: str, host: bytes) -> None:
        self.revive_topic = revive_topic
        self._host = host

    def check_point(self, point: CheckPoint, revive_queue: int, now_ms: int) -> NewMessage:
        """Return the message of a check point."""
        point = msgspec.structs.replace(point, reviveTime=point.revive_ms)
        unique = f"{point.t}@{point.q}@{point.so}@{point.c}@{point.pt}@{point.bn}@{CK_TAG}"
        deliver_ms = point.revive_ms - EARLIER_MS
        return self._message(CK_TAG, unique, deliver_ms, _body(point), revive_queue, now_ms)

    def ack(self, ack: AckRecord, revive_queue: int, revive_ms: int, now_ms: int) -> NewMessage:
        """Return the message of an acknowledgement."""
        tag = ACK_TAG if ack.aol is None else BATCH_ACK_TAG
        unique = f"{ack.t}@{ack.q}@{ack.ao}@{ack.c}@{ack.pt}@{ack.bn}@{ACK_TAG}"
        return self._message(tag, unique, revive_ms, _body(ack), revive_queue, now_ms)

    def _message(
        self, tag: str, unique: str, deliver_ms: int, body: bytes, queue_id: int, now_ms: int
    ) -> NewMessage:
        properties = {TAGS: tag, TIMER_DELIVER_MS: str(deliver_ms), UNIQ_KEY: unique}
        return NewMessage(self.revive_topic, queue_id, body, properties, now_ms, self._host)
