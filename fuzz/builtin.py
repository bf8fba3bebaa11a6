"""The built-in engine: mutated golden data, for machines without atheris and for the test suite.

It has no coverage to guide it. What a target returns instead is the *kind* of its outcome (which
error in which field, or the shape of what was understood), and an input with a new kind joins the
corpus. That finds its way past length checks well enough, and the same seed gives the same inputs.

The engine runs in a process that may die of what it finds. Each input is therefore copied into
shared memory before it is tried: whoever watches (`run.py`) can save it afterwards.
"""

from __future__ import annotations

import signal
import struct
import time
import traceback
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from fuzz.limits import memory_bytes
from fuzz.mutation import INPUT_BYTES_MAX, mutated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

INPUT_SECONDS_MAX: Final = 1.0
FINDINGS_MAX: Final = 20
"""Different ones; a run that has so many is over."""
CORPUS_MAX: Final = 20_000

_HEAD: Final = struct.Struct("<QI")
FLIGHT_BYTES: Final = _HEAD.size + INPUT_BYTES_MAX


class Finding(msgspec.Struct, frozen=True):
    """An input that must not be: what it was, what happened, and whether it was a hang."""

    data: bytes
    what: str
    hang: bool


class Report(msgspec.Struct, kw_only=True):
    """What a run came to."""

    target: str
    engine: str
    executions: int = 0
    seconds: float = 0.0
    corpus: int = 0
    memory_bytes: int = 0
    """At the end."""
    grown_bytes: int = 0
    """Since the first tenth of the run."""
    findings: list[Finding] = []

    @property
    def hangs(self) -> int:
        """Return how many inputs took too long."""
        return sum(finding.hang for finding in self.findings)

    @property
    def crashes(self) -> int:
        """Return how many inputs did something else that they must not."""
        return len(self.findings) - self.hangs


class _HangError(BaseException):
    """Raised by the alarm; not an Exception, so that no handler in between takes it."""


class Flight:
    """The input being tried, in memory that outlives the process: counter, length, bytes."""

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory

    def note(self, count: int, data: bytes) -> None:
        """Write down what is tried next."""
        _HEAD.pack_into(self._memory, 0, count, len(data))
        self._memory[_HEAD.size : _HEAD.size + len(data)] = data

    def read(self) -> tuple[int, bytes]:
        """Return the counter and the input that was tried last."""
        count, size = _HEAD.unpack_from(self._memory)
        return count, bytes(self._memory[_HEAD.size : _HEAD.size + size])


def _on_alarm(_number: int, _frame: object) -> NoReturn:
    raise _HangError


@contextmanager
def alarm_handler() -> Iterator[None]:
    """Turn the alarm into an exception, and put things back afterwards."""
    before = signal.signal(signal.SIGALRM, _on_alarm)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def attempt(target: Callable[[bytes], str], data: bytes) -> tuple[str, Finding | None]:
    """Try one input; return the kind of its outcome, and what is wrong with it if anything is.

    One that takes too long is tried again: the machine may have been busy with something else.
    """
    kind, finding = _attempt(target, data)
    return _attempt(target, data) if finding is not None and finding.hang else (kind, finding)


def _attempt(target: Callable[[bytes], str], data: bytes) -> tuple[str, Finding | None]:
    try:
        signal.setitimer(signal.ITIMER_REAL, INPUT_SECONDS_MAX)
        try:
            return target(data), None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except _HangError as hang:
        where = traceback.extract_tb(hang.__traceback__)[-2]
        return "hang", Finding(data, f"more than {INPUT_SECONDS_MAX} s in {where.name}", hang=True)
    except Exception as error:  # noqa: BLE001  (whatever it is, it is what is looked for)
        lines = traceback.format_exception(error)
        return f"crash {lines[-2:]}", Finding(data, "".join(lines), hang=False)


def fuzz(
    name: str,
    target: Callable[[bytes], str],
    seeds: Sequence[bytes],
    *,
    seconds: float,
    seed: int,
    flight: Flight | None = None,
) -> Report:
    """Try the seeds, then changed ones, until the time is up."""
    random = Random(seed)  # noqa: S311  (repeatable, no secrets)
    report = Report(target=name, engine="builtin", findings=[])
    kinds: set[str] = set()
    corpus = list(seeds) or [b""]
    waiting = corpus[::-1]
    start, before = time.monotonic(), 0
    with alarm_handler():
        while len(report.findings) < FINDINGS_MAX:
            if report.executions % 64 == 0:
                passed = time.monotonic() - start
                if passed < seconds / 10:
                    before = memory_bytes()
                elif passed >= seconds:
                    break
            data = waiting.pop() if waiting else mutated(random.choice(corpus), random, corpus)
            report.executions += 1
            if flight is not None:
                flight.note(report.executions, data)
            kind, finding = attempt(target, data)
            if kind in kinds:
                continue
            kinds.add(kind)
            if finding is not None:
                report.findings.append(finding)
            elif len(corpus) < CORPUS_MAX:
                corpus.append(data)
    report.seconds = time.monotonic() - start
    report.corpus = len(corpus)
    report.memory_bytes = memory_bytes()
    report.grown_bytes = report.memory_bytes - before
    return report
