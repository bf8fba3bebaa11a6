"""A procedure of many small steps, some of them done by a worker, with pauses between them.

It is written as a generator, from top to bottom: `yield job` has a worker do something and comes
back with the result, or with the worker's exception; `yield Pause(seconds)` lets time pass. Between
two steps the owner does its other work, so a procedure must expect that the world has changed at
every `yield`.

Owned by one task.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from gantrymq.store.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from gantrymq.clock import Clock
    from gantrymq.store.worker import Worker


class Pause(NamedTuple):
    """Time that is to pass before the next step."""

    seconds: float


if TYPE_CHECKING:
    Procedure = Generator[Callable[[], object] | Pause, Any, None]


class Stepper:
    """Takes one procedure at a time through its steps."""

    def __init__(self, worker: Worker, clock: Clock) -> None:
        self._worker = worker
        self._clock = clock
        self._procedure: Procedure | None = None
        self._ended: Callable[[Exception | None], None] = lambda _error: None
        self._answers: deque[tuple[object, Exception | None]] = deque()
        self._is_stepping = False
        self._resume_at: float | None = None

    @property
    def is_busy(self) -> bool:
        """Tell whether a procedure is under way."""
        return self._procedure is not None

    @property
    def resume_at(self) -> float | None:
        """Return when a pause ends; None if there is none."""
        return self._resume_at

    def begin(self, procedure: Procedure, ended: Callable[[Exception | None], None]) -> None:
        """Start a procedure; `ended` is called at its end, with the error that ended it if any.

        An error is one of the disk or of the store; any other goes up to whoever made the step.
        """
        self.stop()
        self._procedure, self._ended = procedure, ended
        self._go_on(None, None)

    def tick(self, now: float) -> None:
        """Go on if a pause is over."""
        if self._resume_at is not None and now >= self._resume_at:
            self._resume_at = None
            self._go_on(None, None)

    def stop(self) -> None:
        """Leave a procedure where it is; the answer to a job that is under way is dropped."""
        procedure, self._procedure, self._resume_at = self._procedure, None, None
        self._answers.clear()
        if procedure is not None:
            procedure.close()

    def _go_on(self, result: object, error: Exception | None) -> None:
        # A worker may answer at once, from within: that must not pile up calls.
        self._answers.append((result, error))
        if self._is_stepping:
            return
        self._is_stepping = True
        try:
            while self._answers and self._procedure is not None:
                self._step(self._procedure, *self._answers.popleft())
        finally:
            self._is_stepping = False

    def _step(self, procedure: Procedure, result: object, error: Exception | None) -> None:
        try:
            step = procedure.send(result) if error is None else procedure.throw(error)
        except StopIteration:
            self._end(None)
        except (OSError, StoreError) as trouble:
            self._end(trouble)
        except BaseException:
            self._procedure = None
            raise
        else:
            self._do(procedure, step)

    def _do(self, procedure: Procedure, step: Callable[[], object] | Pause) -> None:
        if isinstance(step, Pause):
            self._resume_at = self._clock.monotonic() + step.seconds
            return

        def answer(result: object, error: Exception | None) -> None:
            if self._procedure is procedure:
                self._go_on(result, error)

        self._worker.submit(
            step, lambda result: answer(result, None), lambda error: answer(None, error)
        )

    def _end(self, error: Exception | None) -> None:
        self._procedure = None
        self._ended(error)
