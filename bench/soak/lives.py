"""The lives of one broker: started, under load, stopped in good order, and again on its store."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.compare.brokers import OURS, NotMeasured, memory, started
from bench.soak.trends import Sample

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bench.open_load import OpenLoader, Tally

EVERY_HOUR: Final = ";".join(f"{hour:02d}" for hour in range(24))
SETTINGS: Final = {
    "mappedFileSizeCommitLog": str(64 << 20),
    "maxHashSlotNum": "500000",
    "maxIndexNum": "2000000",
    # At once, whatever the hour: hours of load would fill any disk.
    "fileReservedTime": "0",
    "deleteWhen": EVERY_HOUR,
    "deleteCommitLogFilesInterval": "1",
    "cleanResourceInterval": "2000",
}


class Load(NamedTuple):
    """What a broker is given."""

    rate: float
    connections: int
    body_bytes: int
    sample_s: float


class Seen(NamedTuple):
    """One look at a process."""

    age_s: float
    rss_anon_mib: float
    open_files: int


def run_life(
    loader: OpenLoader,
    folder: Path,
    name: str,
    life: int,
    seconds: float,
    load: Load,
    begun: float,
) -> list[Sample]:
    """Live once; return what was seen.

    Raises:
        NotMeasured: the broker does not start or stop well, or a send has no answer.
    """
    with started(OURS, folder, SETTINGS | {"storePathRootDir": str(folder / "store")}) as broker:
        pid = broker.process.pid
        running = loader.start(
            broker.process.port, load.connections, load.body_bytes, [f"{load.rate:.0f}:{seconds}"],
            interval_ms=int(load.sample_s * 1000),
        )  # fmt: skip
        try:
            since = time.monotonic()
            seen = _watched(pid, since, seconds, load.sample_s)
            found = running.result()
        finally:
            running.end()
        broker.process.stop()
    (all_of_it,) = found.phases
    if all_of_it.unanswered or found.closed:
        raise NotMeasured(
            f"{name}, life {life}: {all_of_it.unanswered} sends without an answer, {found.closed} "
            "connections closed"
        )
    return _joined(seen, found.intervals, name, life, since - begun)


def _watched(pid: int, since: float, seconds: float, sample_s: float) -> list[Seen]:
    seen = []
    number = 1
    while (due := number * sample_s) <= seconds:
        time.sleep(max(0.0, since + due - time.monotonic()))
        files = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - of another process
        seen.append(Seen(due, memory(pid).private, files))
        number += 1
    return seen


def _joined(
    seen: Sequence[Seen], intervals: Sequence[Tally], name: str, life: int, begun_s: float
) -> list[Sample]:
    """Return looks and what the generator says of the time before each."""
    return [
        Sample(
            round(begun_s + look.age_s, 2), name, life, round(look.age_s, 2), look.rss_anon_mib,
            look.open_files, round(said.accepted / said.seconds), said.refused, said.p50_ms,
            said.p99_ms,
        )
        for look, said in zip(seen, intervals, strict=False)
    ]  # fmt: skip
