"""What one input may take: seconds and memory. Both engines hold every target to the same.

Seconds are measured by whoever runs the target: the built-in engine by an alarm, libFuzzer by its
own clock. Memory is measured here: the most that the process ever had may not grow by more than
`INPUT_MEMORY_BYTES` for the sake of one input, which has 64 KiB at most. It is the system's own
count, so what compiled code and libraries take is in it.
"""

from __future__ import annotations

import mmap
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

INPUT_MEMORY_BYTES: Final = 256 << 20
"""A body of 64 KiB may grow to 32 MiB when it is decompressed; some copies of that are alive."""
EXTRA_MEMORY_BYTES: Final = 1 << 30
"""What trying inputs may take beside what is there at the start: one allocation, or all that was
not given back."""
_MAXRSS_BYTES: Final = 1 if sys.platform == "darwin" else 1024


class TooMuchMemoryError(Exception):
    """One input took more memory than any can need."""


def memory_bytes_max() -> int:
    """Return the most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_BYTES


def memory_bytes() -> int:
    """Return how much memory this process has now; 0 where that cannot be asked."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * mmap.PAGESIZE


def limit_memory() -> None:
    """Make an allocation that no input can justify a MemoryError."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * mmap.PAGESIZE + EXTRA_MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def bounded(target: Callable[[bytes], str]) -> Callable[[bytes], str]:
    """Return a target that fails where one input takes too much memory."""

    def run(data: bytes) -> str:
        before = memory_bytes_max()
        kind = target(data)
        grown = memory_bytes_max() - before
        if grown > INPUT_MEMORY_BYTES:
            raise TooMuchMemoryError(f"{len(data)} bytes of input took {grown >> 20} MiB")
        return kind

    return run
