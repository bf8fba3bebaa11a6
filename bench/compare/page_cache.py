"""Memory as a broker finds it on a machine that has been running: full of cached pages.

A page of a log is cheap where the system reclaims an old page of its cache for it. On a virtual
machine that gives free memory back to its host, a page that was free costs ten times as much, and
the more a broker writes the more it pays: the host would be measured. So before a case, free memory
is filled with pages that nobody needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

LEFT_FREE_BYTES: Final = 512 << 20
PIECE: Final = 1 << 20


def fill_page_cache(folder: Path) -> int:
    """Read files of holes, which need no disk, until little memory is free; return the bytes.

    They stay in the folder: what is deleted is free again.
    """
    size = _free_bytes() - LEFT_FREE_BYTES
    if size <= 0:
        return 0
    path = folder / f"cached-{len(list(folder.glob('cached-*')))}"
    piece = bytearray(PIECE)
    with path.open("wb+", buffering=0) as file:
        file.truncate(size)
        while file.readinto(piece):
            pass
    return size


def _free_bytes() -> int:
    """Return how much memory nothing uses; 0 where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemFree:")), 0)
