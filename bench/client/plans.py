"""What a client is to do, and what it has done: a program of `programs/`, its lines, their rates.

A program sends with so much under way until its time is over, or consumes until it has had so many
messages. Every 100 ms it says on a line what its clock is and how many messages are done; a send is
done when it is acknowledged, a message is consumed when its handler was called. The rates are
computed here, for all clients alike.
"""

from __future__ import annotations

import itertools
import json
import re
import statistics
import subprocess
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

GRACE_S: Final = 45.0
"""What a program may take beyond its time: starting, connecting, ending."""
LINES_SHOWN: Final = 15
CONSUME_SKIPPED: Final = 0.2
"""The part of a consumer's work that warms it up and does not count."""

_LINE: Final = re.compile(r"\d+ \d+( \d+)?")


class NotMeasured(Exception):
    """A client could not be made to do what was to be measured; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a program is told."""

    mode: str
    """`send` or `consume`."""
    address: str
    """The name server's, or for gRPC the proxy's."""
    topic: str
    seconds: float
    """When it ends at the latest."""
    how: str = ""
    """`sync:16` (threads), `async`; for a consumer its threads, or for ours the batch size."""
    group: str = ""
    body_bytes: int = 128
    in_flight: int = 256
    messages: int = 0
    """How many there are to consume."""

    def json(self) -> str:
        """Return it as a program's argument."""
        return json.dumps(asdict(self))


class Sample(NamedTuple):
    """One line of a program."""

    seconds: float
    messages: int
    private_kib: int


def run(
    command: Sequence[str], work: Path, seconds: float, environment: Mapping[str, str]
) -> list[Sample]:
    """Run a program to its end and return what it said.

    Raises:
        NotMeasured: it does not end, ends badly or has done nothing.
    """
    work.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(  # noqa: S603  (programs of ours)
            command, cwd=work, env={**environment, "HOME": str(work)},
            capture_output=True, text=True, check=False, timeout=seconds + GRACE_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise NotMeasured(f"it does not end within {seconds + GRACE_S:g} s") from None
    # Some clients print words of their own.
    samples = [_sample(line) for line in done.stdout.splitlines() if _LINE.fullmatch(line)]
    said = "\n".join((done.stderr or done.stdout).splitlines()[-LINES_SHOWN:])
    if done.returncode != 0:
        raise NotMeasured(f"it ended with {done.returncode}: {said}")
    if not samples or samples[-1].messages == 0:
        raise NotMeasured(f"it has done nothing: {said}")
    return samples


def _sample(line: str) -> Sample:
    words = line.split()
    return Sample(int(words[0]) / 1e9, int(words[1]), int(words[2]) if len(words) > 2 else 0)


def send_rate(samples: Sequence[Sample], warm_s: float, repetitions: int) -> float:
    """Return the median rate of so many equal parts of the time after the warm-up."""
    begun = samples[0].seconds + warm_s
    kept = [one for one in samples if one.seconds >= begun]
    if len(kept) < repetitions + 1:
        raise NotMeasured(f"only {len(kept)} samples after the warm-up: a larger --scale is needed")
    marks = [kept[number * (len(kept) - 1) // repetitions] for number in range(repetitions + 1)]
    return statistics.median(
        (later.messages - one.messages) / (later.seconds - one.seconds)
        for one, later in itertools.pairwise(marks)
    )


def consume_rate(samples: Sequence[Sample]) -> float:
    """Return the rate from the end of the warm-up to the last sample before all was done."""
    final = samples[-1].messages
    skipped = final * CONSUME_SKIPPED
    kept = [one for one in samples if one.messages >= skipped]
    busy = [one for one in kept if one.messages < final] or kept
    first, last = kept[0], busy[-1]
    if last.seconds <= first.seconds:
        first, last = next(one for one in samples if one.messages >= 0), samples[-1]
    return (last.messages - first.messages) / (last.seconds - first.seconds)
