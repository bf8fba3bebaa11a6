"""A line on the terminal that says how far a long walk over a log has come."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from types import TracebackType

WIDTH: Final = 24
_MIB: Final = 1 << 20


class Progress:
    """Draws a bar on a terminal, and nothing anywhere else; call it with a log offset."""

    def __init__(self, label: str, begin: int, end: int, stream: TextIO | None = None) -> None:
        self._label = label
        self._begin = begin
        self._bytes = max(end - begin, 1)
        self._stream = sys.stderr if stream is None else stream
        self._is_shown = self._stream.isatty()
        self._drawn = -1

    def __call__(self, log_offset: int) -> None:
        """Draw the bar anew if it has grown by a hundredth."""
        done = min(max(log_offset - self._begin, 0), self._bytes)
        hundredths = 100 * done // self._bytes
        if not self._is_shown or hundredths == self._drawn:
            return
        self._drawn = hundredths
        bar = ("#" * (WIDTH * done // self._bytes)).ljust(WIDTH, ".")
        sizes = f"{done // _MIB} of {self._bytes // _MIB} MiB"
        self._stream.write(f"\r{self._label} [{bar}] {hundredths:3d} % {sizes}")
        self._stream.flush()

    def __enter__(self) -> Progress:
        """Give the bar itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bar off the terminal."""
        if self._drawn >= 0:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
