"""The lanes: what the kernel does with the requests that come most often, and what it remembers.

A part of the kernel's interface, whose rules hold here too. `reference/lane.py` and
`reference/pull_lane.py` are the meaning, `native/` is the speed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.kernel.interface import Buffer, WritableBuffer
    from gantrymq.kernel.values import Frame, KnownPull, SendRun, SendTurn


class SendLane(Protocol):
    """The fast lane of the broker: frames in, records and replies out, one call per network buffer.

    A send is *ordinary*, and taken, when all of this holds; anything else stops the run with
    `LaneStop.POLICY` and nothing of that frame has happened:

    - `decode_request` understands it and it is a send;
    - its topic is open here, 0 <= queue id < the number of queues given for the topic, topic <= 127
      bytes;
    - its sysFlag has no bit outside 0x701 (compression);
    - 0 < body length <= `body_bytes_max`;
    - no property is named in `policy_names`, and every property WAIT says `true` in any case;
    - the properties to be stored are at most 32767 bytes, and no byte of them is 0: recovery takes
      zeros that follow a sector's border for a write that was cut short;
    - a batch (field `batch`/`m` is true) is well-formed as `wire/batch.py` describes, has 1 to
      65536 messages with bodies of at least a byte, and its request has at most 16 properties that
      count, in at most 1024 bytes: every message gets them;
    - with `refuses_extra_fields`, as access control wants it, the header has no field beyond the
      fourteen of its code.

    Stored properties of a single message: the entries that count, in their order, without WAIT and
    without CLUSTER, then CLUSTER; joined by 0x02, none at the end. Of a message in a batch: its own
    entries that count, then those of the request whose name it has not itself (CLUSTER excepted),
    then CLUSTER unless it has one. `policy_names` is compared with the request's properties, not
    with those inside a batch.

    A run stops with `LaneStop.LOG_FULL` when the record, or the whole batch, needs more than `limit
    - position - 8` bytes, and with `LaneStop.POLICY` when not even `limit - 8` would do: no file is
    large enough, and rolling would not help. A frame that is no frame (see `split_frames`) raises
    ProtocolError only if it comes first in the range; otherwise the run ends before it with
    `LaneStop.POLICY`.

    A reply is a SUCCESS response in the request's header codec with `msgId` (ids of a batch joined
    by `,`), `queueId`, `queueOffset` (of the first), TRACE_ON, MSG_REGION, as `encode_send_reply`
    makes it. There is no `transactionId`: only half messages need it, and they are not ordinary.
    """

    def __init__(
        self,
        *,
        store_host: bytes,
        cluster: bytes,
        region: bytes,
        trace_on: bool,
        version: int,
        body_bytes_max: int,
        policy_names: Sequence[bytes],
        refuses_extra_fields: bool = False,
    ) -> None: ...

    def limit_bodies(self, body_bytes_max: int) -> None:
        """Take other sizes of bodies from now on; longer ones are left to policy.

        Raises InvalidValue if it is not positive.
        """
        ...

    def open_topic(self, topic: bytes, next_offsets: Sequence[int]) -> None:
        """Take ordinary sends for `topic`; queue i gets `next_offsets[i]` next. Replaces what was
        there.
        """
        ...

    def close_topic(self, topic: bytes) -> None:
        """Take no more sends for `topic`; nothing happens if it is not open."""
        ...

    def next_offsets(self, topic: bytes) -> list[int] | None:
        """Return the next queue offset of each queue, or None if the topic is not open."""
        ...

    def advance(self, topic: bytes, queue_id: int, count: int) -> int:
        """Reserve `count` queue offsets for records that Python writes; return the first.

        Raises InvalidValue if the topic is not open, or has no such queue.
        """
        ...

    def take_counts(self) -> list[tuple[bytes, int, int]]:
        """Return (topic, messages, record bytes) stored since the last call, sorted by topic."""
        ...

    def append(
        self,
        buffer: Buffer,
        start: int,
        end: int,
        log: WritableBuffer,
        position: int,
        limit: int,
        log_base: int,
        born_host: bytes,
        now_ms: int,
    ) -> SendRun:
        """Store the ordinary sends at the front of `buffer[start:end]` into `log[position:limit]`.

        `log_base` is the log offset of `log[0]`; `now_ms` becomes the store timestamp.
        """
        ...

    def append_each(
        self,
        buffer: Buffer,
        parts: Sequence[tuple[int, int, bytes]],
        log: WritableBuffer,
        position: int,
        limit: int,
        log_base: int,
        now_ms: int,
    ) -> SendTurn:
        """Do the same with several ranges of a buffer: (start, end, born host) of each.

        They are walked in their order, as `append` walks one, up to the first that does not end
        with `LaneStop.DRAINED`. A frame that is no frame ends the walk with `LaneStop.POLICY`
        wherever it stands.
        """
        ...


class PullWay(Protocol):
    """How pulls that are alike are answered: what policy has found out, and where they read on.

    `note` is the caller's own. `point` gives the rest: the units of a queue from `queue_offset` on,
    the part of the log that is in memory, and the queue's ends. Both buffers are held until it is
    pointed elsewhere, or given up.
    """

    def __init__(
        self,
        hashes: Sequence[int],
        messages_max: int,
        bytes_max: int,
        version: int,
        suggest_broker_id: int,
        note: object,
    ) -> None:
        """Answer with messages whose tag is among the hashes, as `gather_records` finds them.

        Raises InvalidValue as `gather_records` and `encode_pull_reply` do.
        """
        ...

    @property
    def note(self) -> object:
        """Return what the caller has noted."""
        ...

    def point(
        self,
        units: Buffer,
        queue_offset: int,
        log: Buffer,
        log_end: int,
        log_base: int,
        min_offset: int,
        max_offset: int,
        until: float,
    ) -> None:
        """Read on in `units`, whose first is that of `queue_offset`, and in `log[:log_end]`.

        That holds `until` a moment of the caller's clock.

        Raises InvalidValue for numbers that are negative or above 2**62, an unknown `log_base`, and
        a `log_end` outside the log.
        """
        ...


class PullLane(Protocol):
    """Knows a pull again: most of them differ from one before only in where they read on.

    Pulls are alike when `decode_request` gives the same for both, except for `opaque`,
    `queue_offset` and `commit_offset`. The way that is remembered for one is that of all. Oneway
    pulls, and those with fields of nobody's, are never known.
    """

    def __init__(self, ways_max: int) -> None:
        """Remember so many at the most; one more, and all are forgotten.

        Raises InvalidValue if it is not positive.
        """
        ...

    def __len__(self) -> int:
        """Return how many are remembered."""
        ...

    def remember(self, buffer: Buffer, frame: Frame, way: PullWay) -> bool:
        """Remember a way for all pulls like the one in a frame; False if it can not be known."""
        ...

    def take(self, buffer: Buffer, start: int, end: int, now: float) -> KnownPull | None:
        """Return the pull at the front of a range if it is known, with its answer if that is there.

        None for everything else: a frame that is not complete or no frame, another request. There
        is no answer when the way was not pointed, or that holds no longer, when its units do not
        have the pull's offset, and when `gather_records` finds nothing from there on. An answer is
        a whole frame: the header of `encode_pull_reply` with code 0 and the remark FOUND, in the
        request's codec, and the records.
        """
        ...

    def forget(self) -> None:
        """Know no pull any more, and hold no buffer."""
        ...
