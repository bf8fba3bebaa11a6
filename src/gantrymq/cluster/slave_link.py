"""A slave's connection to its master: values in, values out.

    begin ── the first report: where the log ends, less an overlap ──▶
    frames within the overlap are compared, those behind it appended; each is reported

The overlap is what this protocol has instead of a check that both logs are one; see
docs/internals/cluster.md. A report is sent for every frame that raised it and as a sign of life. It
says what is safe: appended, or with SYNC_FLUSH forced.

Agrees with HAClient of 4.9.7, which waits for 5 s before its first report and compares nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from gantrymq.cluster.frames import FrameReader, LinkBroken, encode_report

if TYPE_CHECKING:
    from gantrymq.cluster.frames import Frame
    from gantrymq.cluster.master_link import LinkRules
    from gantrymq.kernel.interface import Buffer

OVERLAP_BYTES: Final = 64 << 10


class LogsDiffer(LinkBroken):
    """This slave's log is not a beginning of the master's: an operator has to decide."""


class CopiedLog(Protocol):
    """A log that follows another."""

    @property
    def begin(self) -> int:
        """Return where it begins."""
        ...

    @property
    def end(self) -> int:
        """Return where it ends; 0 if there is none yet."""
        ...

    @property
    def safe_end(self) -> int:
        """Return how far it is as safe as its settings say."""
        ...

    def append(self, offset: int, data: Buffer) -> None:
        """Store bytes at the end; none begin an empty log there."""
        ...

    def equals(self, offset: int, data: Buffer) -> bool:
        """Tell whether it holds just these bytes at an offset."""
        ...


class SlaveLink:
    """One connection, from its first byte on."""

    def __init__(
        self,
        log: CopiedLog,
        now: float,
        overlap: int = OVERLAP_BYTES,
        hello: bytes = b"",
    ) -> None:
        """Say `hello` first, in a group with failover."""
        self._log = log
        self._hello = hello
        self._reader = FrameReader()
        self._heard_at = now
        self._wrote_at = now
        self._waited_within = False
        own_end = log.end
        # Never 0, unless there is nothing: that asks for the master's last file.
        self.next_offset = max(own_end - overlap, log.begin, 1) if own_end else 0
        """Where the next frame must begin; 0 if anywhere."""
        self._reported = self.next_offset
        self._any_start = own_end == 0

    @property
    def is_level(self) -> bool:
        """Tell whether the overlap is behind it, so that what comes is new."""
        return self.next_offset >= self._log.end

    def begin(self) -> bytes:
        """Return the first report."""
        return self._hello + encode_report(self._reported)

    def space(self) -> memoryview:
        """Return where the next received bytes belong."""
        return self._reader.space()

    def received(self, count: int, now: float) -> bytes:
        """Take `count` bytes that were written into `space`; return the reports to send.

        Raises:
            LinkBroken: it is not what a master sends.
            LogsDiffer: it is not the same log.
            StoreNotWritable, FileNotMade: the store does not take it.
        """
        self._heard_at = now
        reports = b""
        for frame in self._reader.feed(count):
            self._take(frame)
            reports += self.reports(now)
        return reports

    def _take(self, frame: Frame) -> None:
        log, offset, size = self._log, frame.offset, len(frame.body)
        if self._any_start:
            log.append(offset, b"")
            self._any_start = False
            self.next_offset = offset
        if offset != self.next_offset:
            raise LinkBroken(f"a frame of offset {offset} where {self.next_offset} was due")
        within = max(min(log.end - offset, size), 0)
        if within and not log.equals(offset, frame.body[:within]):
            raise LogsDiffer(
                f"the master has other bytes than this slave between {offset} and "
                f"{offset + within}: they have different histories. Nothing is copied any more. "
                "Decide which of them is right; the other one begins with an empty store"
            )
        if within < size:
            log.append(offset + within, frame.body[within:])
        self.next_offset = offset + size
        self._look_for_end(is_idle=size == 0)

    def _look_for_end(self, *, is_idle: bool) -> None:
        """A master that has no more, twice, while this log goes on: the slave is ahead."""
        if not is_idle or self.is_level:
            self._waited_within = False
        elif self._waited_within:
            raise LogsDiffer(
                f"the master's log ends at {self.next_offset}, before this slave's end at "
                f"{self._log.end}: it has lost something that this slave has. Nothing is copied "
                "any more. Decide which of them is right; the other one begins with an empty store"
            )
        else:
            self._waited_within = True

    def reports(self, now: float) -> bytes:
        """Return a report if more is safe than was said, else nothing."""
        safe = min(self.next_offset, self._log.safe_end)
        if safe <= self._reported:
            return b""
        self._reported = safe
        self._wrote_at = now
        return encode_report(safe)

    def tick(self, rules: LinkRules, now: float) -> bytes:
        """Return a report as a sign of life if one is due, else nothing.

        Raises:
            LinkBroken: the master has been silent for too long.
        """
        if now - self._heard_at > rules.silence_s_max:
            raise LinkBroken(f"nothing was heard of the master for {now - self._heard_at:.0f} s")
        if now - self._wrote_at < rules.heartbeat_s:
            return b""
        self._wrote_at = now
        return encode_report(self._reported)
