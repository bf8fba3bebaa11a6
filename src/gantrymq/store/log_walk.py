"""A walk over all of a log, damage and all, for tools that must see every record that is left.

Recovery stops at the first record that is none. Here the walk goes on behind it, at the next place
that looks like a record, so that one walk names all the damage and finds all that is good.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.kernel import Dispatch, Stop, kernel
from gantrymq.store.checkpoint import load_checkpoint
from gantrymq.store.log_directories import log_directories
from gantrymq.store.process_lock import was_aborted
from gantrymq.store.recovery import LogRecovery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gantrymq.store.files import Files
    from gantrymq.store.settings import StoreSettings

RECORDS_MAX: Final = 65536
"""Records in one call of the kernel: bounds what it holds at once, and paces the progress line."""


class Span(NamedTuple):
    """A piece of the log within one file, as `kernel.scan_records` and its kin take it."""

    buffer: memoryview
    start: int
    end: int
    log_base: int
    """Log offset of `buffer[0]`."""


class Damage(NamedTuple):
    """A place where a record should be and is none."""

    log_offset: int
    stop: Stop
    passed_bytes: int
    """How far behind it the walk goes on."""

    def __str__(self) -> str:
        """Return it as a sentence's beginning."""
        what = f"no good record at {self.log_offset} ({self.stop.name})"
        return f"{what}, {self.passed_bytes} bytes passed over"


class LogPart(NamedTuple):
    """Some records one behind the other, and what follows them."""

    span: Span
    start: int
    found: Dispatch
    damage: Damage | None


def log_parts(
    span: Span, delays_ms: Sequence[int], progress: Callable[[int], None] | None = None
) -> Iterator[LogPart]:
    """Yield all records of a span, with their check sums checked."""
    position = span.start
    while position < span.end:
        found = kernel.dispatch_records(
            span.buffer, position, span.end, span.log_base, True, RECORDS_MAX, delays_ms
        )
        damage = None
        if found.stop not in {Stop.LIMIT, Stop.BLANK, Stop.END}:
            damage = _damage(span, found)
        yield LogPart(span, position, found, damage)
        position = found.end + (0 if damage is None else damage.passed_bytes)
        if progress is not None:
            progress(span.log_base + position)
        if found.stop in {Stop.BLANK, Stop.END}:
            break


def _damage(span: Span, found: Dispatch) -> Damage:
    begin = min(found.end + 1, span.end)
    behind = kernel.find_record(span.buffer, begin, span.end, span.log_base)
    passed = (span.end if behind < 0 else behind) - found.end
    return Damage(span.log_base + found.end, found.stop, passed)


def log_spans(settings: StoreSettings, files: Files) -> Iterator[Span]:
    """Yield the log on the disk up to the end that recovery would find, without queues or index.

    Each file is mapped only while its span is in use.

    Raises:
        StoreDamaged: the files are not what the settings say.
    """
    root, directories = settings.paths.root, log_directories(settings.paths)
    recovery = LogRecovery(directories, settings.files.commit_log_bytes, files)
    first = recovery.clean_start()
    if was_aborted(files, root):
        first = recovery.crash_start(load_checkpoint(files, root / "checkpoint").min_timestamp)
    end = recovery.walk(first, verify_crc=settings.recovery.checks_crc).offset
    for start in recovery.starts:
        if start >= end:
            break
        region = files.open(recovery.path(start), writable=False)
        try:
            yield Span(region.buffer, 0, min(region.size, end - start), start)
        finally:
            region.close()
