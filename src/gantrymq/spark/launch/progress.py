"""A line on the terminal that says how many tasks of the running Spark job are done."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any, Final, Self, TextIO

if TYPE_CHECKING:
    from types import TracebackType

    from pyspark.sql import SparkSession

WIDTH: Final = 24
INTERVAL_S: Final = 0.5


def bar(label: str, done: int, total: int) -> str:
    """Return the line."""
    total = max(total, 1)
    done = min(done, total)
    drawn = ("#" * (WIDTH * done // total)).ljust(WIDTH, ".")
    return f"{label} [{drawn}] {100 * done // total:3d} % {done} of {total} tasks"


class TaskProgress:
    """Draws the line while a block runs, on a terminal, and nothing anywhere else.

    A thread of its own asks Spark twice a second; a session of Spark Connect tells by itself.
    """

    def __init__(self, session: SparkSession, label: str, stream: TextIO | None = None) -> None:
        self._session = session
        self._label = label
        self._stream = sys.stderr if stream is None else stream
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._drawn = False
        self._handler: Any = self._told  # the same object for coming and going

    def __enter__(self) -> Self:
        """Begin to draw."""
        if not self._stream.isatty():
            return self
        if hasattr(self._session, "registerProgressHandler") and _is_remote(self._session):
            self._session.registerProgressHandler(self._handler)
        else:
            self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the line off the terminal."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout=5 * INTERVAL_S)
        elif self._stream.isatty() and _is_remote(self._session):
            self._session.removeProgressHandler(self._handler)
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _watch(self) -> None:
        tracker = self._session.sparkContext.statusTracker()
        while not self._stopped.wait(INTERVAL_S):
            done = total = 0
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                if info is not None:
                    done, total = done + info.numCompletedTasks, total + info.numTasks
            if total:
                self._draw(done, total)

    def _told(self, stages: Any = None, *_more: Any, **_named: Any) -> None:  # noqa: ANN401
        stages = stages or []
        total = sum(stage.num_tasks for stage in stages)
        if total:
            self._draw(sum(stage.num_completed_tasks for stage in stages), total)

    def _draw(self, done: int, total: int) -> None:
        self._drawn = True
        self._stream.write("\r" + bar(self._label, done, total) + "\x1b[K")
        self._stream.flush()


def _is_remote(session: object) -> bool:
    return type(session).__module__.startswith("pyspark.sql.connect")
