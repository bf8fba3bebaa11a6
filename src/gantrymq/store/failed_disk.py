"""The mark of a disk that has failed: ROOT/disk-failed, with the reason as its text.

When forcing a file fails, Linux takes the pages for clean although the disk does not have them, and
the next force succeeds. The store that sees the failure stops. But the page cache survives it: a
process that is started again reads those pages, finds good records, forces them "successfully", and
everything that is acknowledged from then on stands behind a hole that the next power cut opens.

So whoever sees a force fail leaves this mark at once, on the thread where it happened. A start that
finds it writes what it recovers once more, which makes the pages dirty again, forces them, and only
then takes the mark away. The mark itself need not be forced: a power cut that takes it away takes
the page cache along, and what is left is what the disk has.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gantrymq.store.files import Files

MARK_NAME: Final = "disk-failed"


def leave_mark(files: Files, root: Path, reason: str) -> None:
    """Leave the mark, by whatever the disk still does: that it exists is enough."""
    path, text = root / MARK_NAME, reason.encode(errors="replace")
    attempts: tuple[Callable[[], None], ...] = (
        lambda: files.write_at(path, 0, text, len(text)),
        lambda: files.truncate(path, 0),
        lambda: files.make_directory(path),
    )
    for attempt in attempts:
        with suppress(OSError):
            attempt()
            return


def is_marked(files: Files, root: Path) -> bool:
    """Tell whether a force has failed since everything was last seen to be on the disk."""
    return files.exists(root / MARK_NAME)


def remove_mark(files: Files, root: Path) -> None:
    """Take the mark away: what was recovered has been written again and forced."""
    files.remove(root / MARK_NAME)
    files.sync_directory(root)
