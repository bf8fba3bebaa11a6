"""Log lines that a peer can cause are bounded: one for each subject in a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import logging

    from gantrymq.clock import Clock

EVERY_S: Final = 60.0
SUBJECTS_MAX: Final = 1024


class RareLog:
    """Writes a line unless there was one about the same subject within a minute.

    Owned by the event loop's thread. Of the subjects only the latest are remembered.
    """

    __slots__ = ("_clock", "_left_out", "_logger", "_said")

    def __init__(self, logger: logging.Logger, clock: Clock) -> None:
        self._logger = logger
        self._clock = clock
        self._said: dict[str, float] = {}
        self._left_out = 0

    def warning(self, subject: str, text: str) -> None:
        """Write a warning, with the number of lines that were left out before it."""
        now = self._clock.monotonic()
        said = self._said.get(subject)
        if said is not None and now - said < EVERY_S:
            self._left_out += 1
            return
        self._said.pop(subject, None)
        if len(self._said) >= SUBJECTS_MAX:
            del self._said[next(iter(self._said))]
        self._said[subject] = now
        if self._left_out:
            text = f"{text} (and {self._left_out} like this or others were not logged)"
            self._left_out = 0
        self._logger.warning("%s", text)
