"""A transport without a socket, and an event loop of its own for each target that needs one.

A protocol is given bytes as a socket would, in one piece or in several. What it writes is kept.
Whatever a task or a callback of the loop lets fall is a finding.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from fuzz.twins import DisagreementError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping

Result = TypeVar("Result")


class Wire(asyncio.Transport):
    """Takes what is written to it."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 4711), "sockname": ("127.0.0.1", 80)})
        self.written = bytearray()
        self.is_closed = False
        self.reads = True

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Keep it."""
        if not self.is_closed:
            self.written += data

    def write_eof(self) -> None:
        """Take note of nothing."""

    def can_write_eof(self) -> bool:
        """Say that one may."""
        return True

    def get_write_buffer_size(self) -> int:
        """Return that everything has gone out."""
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Have none."""

    def pause_reading(self) -> None:
        """Give no more until `resume_reading`."""
        self.reads = False

    def resume_reading(self) -> None:
        """Go on."""
        self.reads = True

    def is_reading(self) -> bool:
        """Say whether bytes are taken."""
        return self.reads and not self.is_closed

    def is_closing(self) -> bool:
        """Say whether it is closed."""
        return self.is_closed

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Keep the one that there is."""

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Have none."""
        raise NotImplementedError

    def close(self) -> None:
        """Write no more."""
        self.is_closed = True

    def abort(self) -> None:
        """Write no more."""
        self.is_closed = True


class Loop:
    """An event loop that reports what nobody caught."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._fallen: list[str] = []
        self._interrupted: BaseException | None = None
        self.loop.set_exception_handler(self._note)

    def _note(self, _loop: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException) and not isinstance(error, Exception):
            self._interrupted = error  # by the engine, and not for anything that fell
        else:
            self._fallen.append(f"{context.get('message')}: {error!r}")

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run to the end.

        Raises:
            DisagreementError: something fell on the way.
        """
        asyncio.set_event_loop(self.loop)
        found = self.loop.run_until_complete(work)
        if self._interrupted is not None:
            interrupted, self._interrupted = self._interrupted, None
            raise interrupted
        if self._fallen:
            fallen, self._fallen = self._fallen, []
            raise DisagreementError("; ".join(fallen))
        return found


@contextmanager
def untimed() -> Iterator[None]:
    """Stop the clock of an input: what it begins with is made now, and is not its doing."""
    left = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *left)


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    """Cut data."""
    for at in range(0, len(data), size):
        yield data[at : at + size]
