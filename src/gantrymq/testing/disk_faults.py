"""Errors of a simulated disk, in waiting until their operation comes along."""

from __future__ import annotations

import errno
import os
from collections import Counter
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Operation(Enum):
    """What can be counted and made to fail."""

    CREATE = auto()
    OPEN = auto()
    READ = auto()
    WRITE = auto()
    TRUNCATE = auto()
    SYNC = auto()
    RENAME = auto()
    REMOVE = auto()
    MAKE_DIRECTORY = auto()
    SYNC_DIRECTORY = auto()
    LOCK = auto()


_CHANGES: Final = frozenset(Operation) - {Operation.OPEN, Operation.READ, Operation.LOCK}
"""Operations that a read-only disk refuses, and that `halt_after` counts."""


class Halted(BaseException):
    """The machine stopped at a step that the test chose; like a power cut, nobody may catch it."""


@dataclass(slots=True)
class _Fault:
    """An error that waits for its operation."""

    operation: Operation
    error: int
    skip: int
    times: int | None
    matches: Callable[[Path], bool]

    def is_due(self, operation: Operation, path: Path) -> bool:
        """Count an operation, and tell whether it is one of those that fail."""
        if operation is not self.operation or self.times == 0 or not self.matches(path):
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


class FaultyDisk:
    """The part of a simulated disk that counts operations and makes them fail."""

    def __init__(self) -> None:
        self.counts: Counter[Operation] = Counter()
        self.read_only = False
        self._faults: list[_Fault] = []
        self._steps_left: int | None = None
        self._is_dead = False

    def fail(
        self,
        operation: Operation,
        error: int = errno.EIO,
        *,
        times: int | None = 1,
        after: int = 0,
        where: Callable[[Path], bool] = lambda _path: True,
    ) -> None:
        """Let an operation fail: `times` of them (None: for good), from the one behind `after`."""
        self._faults.append(_Fault(operation, error, after, times, where))

    def heal(self) -> None:
        """Take back every fault, the read-only state and the chosen halt."""
        self._faults.clear()
        self.read_only = False
        self._steps_left = None

    def halt_after(self, steps: int) -> None:
        """Let `steps` more changes happen; the next one, and all behind it, raise `Halted`."""
        self._steps_left = steps

    def _step(self, operation: Operation, path: Path) -> None:
        """Count an operation; raise what was ordered for it."""
        if self._is_dead:
            raise OSError(errno.EIO, "this disk has crashed; its successor is in use", str(path))
        if operation in _CHANGES:
            if self._steps_left is not None:
                if self._steps_left <= 0:
                    raise Halted(f"halted before {operation.name} of {path}")
                self._steps_left -= 1
            if self.read_only:
                raise disk_error(errno.EROFS, path)
        self.counts[operation] += 1
        for fault in self._faults:
            if fault.is_due(operation, path):
                raise disk_error(fault.error, path)


def disk_error(number: int, path: Path) -> OSError:
    """Return the error that the machine would raise for a path."""
    return OSError(number, os.strerror(number), str(path))
