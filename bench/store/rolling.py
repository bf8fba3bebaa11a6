"""What a roll costs the put that it happens to: single sends, many rolls, as in a broker.

A put is timed from its bytes to its place in the log. As behind an event loop, dispatch and the
making of the next file come when the turn is over; what they take is not the put's, but it is in
the pace. Every roll is looked at, and whether its file was there before it.
"""

from __future__ import annotations

import time
from itertools import cycle
from statistics import median
from typing import TYPE_CHECKING, Final

from bench.store.place import QUEUES, TOPIC, OpenStore, Result, buffers_of, percentile

if TYPE_CHECKING:
    from bench.store.place import Place

FILE_BYTES: Final = 16 << 20
ROLLS: Final = 200
ROLLS_MIN: Final = 8
BODY: Final = b"x" * 1024
BUFFERS: Final = 1024
BYTES_PER_SECOND: Final = 40 << 20
PER_TURN: Final = 32
BAR: Final = 10.0


def roll(place: Place) -> Result:
    """Measure puts of one message while files roll, warmed and not; the better one counts."""
    ways = [_one(place, warm=warm) for warm in (False, True)]
    best = min(ways, key=_ratio)
    return {
        "file_bytes": FILE_BYTES,
        "bytes_per_second": BYTES_PER_SECOND,
        "ways": ways,
        "best": {"warm": best["warm"]},
        "bar_p999_to_median": BAR,
        "reached": _ratio(best) <= BAR,
    }


def _ratio(way: Result) -> float:
    value = way["rolls_p999_to_median"]
    return value if isinstance(value, float) else float("inf")


def _one(place: Place, *, warm: bool) -> Result:
    extra = {
        "mappedFileSizeCommitLog": str(FILE_BYTES),
        "warmMapedFileEnable": str(warm).lower(),
    }
    with place.root("roll") as root:
        opened = OpenStore(place.properties(root, extra), in_turns=True)
        opened.store.open_topic(TOPIC, QUEUES)
        took, rolls, ahead = _put_steadily(opened, place.amount(ROLLS, ROLLS_MIN))
        opened.close()
    took.sort()
    rolls.sort()
    middle = median(took)
    return {
        "warm": warm,
        "puts": len(took),
        "rolls": len(rolls),
        "rolls_with_their_file_ahead": ahead,
        "median_us": round(middle / 1e3, 2),
        "p999_us": round(percentile(took, 0.999) / 1e3, 2),
        "rolls_median_us": round(median(rolls) / 1e3, 2),
        "rolls_p999_us": round(percentile(rolls, 0.999) / 1e3, 2),
        "rolls_median_to_median": round(median(rolls) / middle, 2),
        "rolls_p999_to_median": round(percentile(rolls, 0.999) / middle, 2),
    }


def _put_steadily(opened: OpenStore, wanted: int) -> tuple[list[int], list[int], int]:
    """Put at a steady rate until so many files have rolled.

    Returns the nanoseconds of ordinary puts and of those that rolled, and how many of these found
    their file made.
    """
    took: list[int] = []
    rolls: list[int] = []
    ahead = 0
    log, directory = opened.store.log, opened.settings.paths.commit_log[0]
    begun = time.perf_counter()
    for number, buffer in enumerate(cycle(buffers_of(BUFFERS, 1, BODY))):
        if number % PER_TURN == 0:
            early = log.wrote_offset / BYTES_PER_SECOND - (time.perf_counter() - begun)
            opened.breathe(max(0.0, early))
        files = len(log.files)
        following = directory / f"{files * FILE_BYTES:020d}"
        is_near = files and log.files[-1].size - log.files[-1].wrote < 2 * len(buffer)
        is_there = is_near and following.exists()
        before = time.perf_counter_ns()
        opened.append(buffer)
        passed = time.perf_counter_ns() - before
        if not files or len(log.files) == files:
            took.append(passed)
            continue
        rolls.append(passed)
        ahead += bool(is_there)
        if len(rolls) == wanted:
            return took, rolls, ahead
    raise AssertionError("a cycle ended")
