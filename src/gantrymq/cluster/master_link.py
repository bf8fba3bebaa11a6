"""One slave's connection as its master sees it: values in, values out.

    waiting ── first report ──▶ sending ── reports of frame ends ──▶ how far the slave has it

Nothing is sent before the first report. What a report may say is little, and is checked, for it
releases replies to producers: the end of a frame that was sent on this connection, or what was said
before. A frame's end is remembered until it is reported, which `UNREPORTED_BYTES_MAX` bounds.

Agrees with HAConnection of 4.9.7, but refuses a slave that it has nothing for: there a slave which
is ahead, or too far behind, gets signs of life for ever.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from gantrymq.cluster.frames import (
    FRAME_BYTES_MAX,
    FRAME_HEAD_BYTES,
    LinkBroken,
    ReportReader,
    decode_hello,
    encode_head,
)

if TYPE_CHECKING:
    Piece = bytes | memoryview

UNREPORTED_BYTES_MAX: Final = 16 << 20
"""What may be on its way to a slave; then it has to say how far it is."""


class SentLog(Protocol):
    """A log that is copied."""

    @property
    def file_bytes(self) -> int:
        """Return the length of a file."""
        ...

    @property
    def begin(self) -> int:
        """Return where it begins."""
        ...

    @property
    def end(self) -> int:
        """Return how far it may be sent."""
        ...

    def read(self, offset: int, count: int) -> Piece | None:
        """Return bytes of one file; None if they are not in memory now."""
        ...


class LinkRules(NamedTuple):
    """How a link behaves; asked for each time, for an operator may change it."""

    batch_bytes_max: int = 32 << 10
    heartbeat_s: float = 5.0
    silence_s_max: float = 20.0


class MasterLink:
    """What a master knows of one slave."""

    def __init__(self, log: SentLog, now: float, epoch: int | None = None) -> None:
        """Take members of a group with failover only if they know this `epoch`."""
        self._log = log
        self.epoch = epoch
        self.member: int | None = None
        """Who the slave is, in a group with failover."""
        self._reports = ReportReader()
        self._first: int | None = None
        self._sent_ends: deque[int] = deque()
        self._heard_at = now
        self._wrote_at: float | None = None
        self.next_offset = 0
        """What is sent next."""
        self.reported = 0
        """How far the slave has said it is, as far as it is believed."""
        self.is_confirmed = False
        """It has reported something that this connection brought it."""

    @property
    def has_begun(self) -> bool:
        """Tell whether the slave has said where to begin."""
        return self._first is not None

    def received(self, data: bytes, now: float) -> int | None:
        """Take bytes of the slave; return how far it has newly confirmed the log, if it has.

        Raises:
            LinkBroken: these are no reports of a slave that copies this log.
        """
        confirmed = None
        for offset in self._reports.feed(data):
            self._heard_at = now
            if self._first is None and self.member is None and offset < 0:
                self._greet(offset)
            elif self._first is None:
                self._begin(offset)
            elif self._confirm(offset):
                confirmed = offset
        return confirmed

    def _greet(self, hello: int) -> None:
        epoch, member = decode_hello(hello)
        if self.epoch is None or epoch != self.epoch:
            mine = "without failover" if self.epoch is None else f"in epoch {self.epoch}"
            raise LinkBroken(f"member {member} wants a master of epoch {epoch}; this one is {mine}")
        self.member = member

    def _begin(self, offset: int) -> None:
        log = self._log
        end = log.end
        if offset == 0 and self.member is not None:
            self.next_offset = log.begin  # it may become master: it needs all that there is
        elif offset == 0:
            self.next_offset = max(end - end % log.file_bytes, log.begin)
        elif offset > end:
            raise LinkBroken(
                f"the slave's log ends at {offset}, behind this master's end at {end}: it has what "
                "this master has lost, or never had. Decide which of them is right; the other one "
                "begins with an empty store"
            )
        elif offset < log.begin:
            raise LinkBroken(
                f"the slave's log ends at {offset}, and this master's begins at {log.begin}: what "
                "lies between is deleted. The slave has to begin with an empty store"
            )
        else:
            self.next_offset = offset
        self._first = offset
        self.reported = self.next_offset

    def _confirm(self, offset: int) -> bool:
        """Tell whether a report says something new."""
        if offset == self.reported or (not self.is_confirmed and offset == self._first):
            return False
        ends = self._sent_ends
        while ends and ends[0] < offset:
            ends.popleft()
        if not ends or ends[0] != offset:
            raise LinkBroken(f"{offset} is not the end of anything that was sent and not reported")
        ends.popleft()
        self.reported = offset
        self.is_confirmed = True
        return True

    def frames(self, rules: LinkRules, now: float, bytes_max: int) -> list[Piece]:
        """Return what to write now, about `bytes_max` at most; `next_offset` moves with it.

        It begins with a sign of life, as Apache's master does. Bytes that are not in memory end it.
        """
        out: list[Piece] = []
        if self._first is None:
            return out
        if self._wrote_at is None:
            out.append(encode_head(self.next_offset, 0))
        log = self._log
        end = min(log.end, self.reported + UNREPORTED_BYTES_MAX)
        batch = min(rules.batch_bytes_max, FRAME_BYTES_MAX - FRAME_HEAD_BYTES)
        left = bytes_max
        while self.next_offset < end and left > 0:
            offset = self.next_offset
            size = min(batch, end - offset, log.file_bytes - offset % log.file_bytes)
            body = log.read(offset, size)
            if body is None:
                break
            out += (encode_head(offset, size), body)
            self._sent(offset + size)
            left -= size
        if out:
            self._wrote_at = now
        return out

    def _sent(self, end: int) -> None:
        self.next_offset = end
        self._sent_ends.append(end)

    def tick(self, rules: LinkRules, now: float) -> bytes:
        """Return a sign of life if one is due, else nothing.

        Raises:
            LinkBroken: the slave has been silent for too long.
        """
        if now - self._heard_at > rules.silence_s_max:
            raise LinkBroken(f"nothing was heard of it for {now - self._heard_at:.0f} s")
        if self._wrote_at is None or now - self._wrote_at < rules.heartbeat_s:
            return b""
        self._wrote_at = now
        return encode_head(self.next_offset, 0)
