"""What Apache RocketMQ 4.9.7 would have after recovering a directory, by its rules and without it.

A broker of theirs takes seconds to start; a directory whose process was killed is looked at here in
milliseconds. Its rules differ from ours: queues are taken as they are found, index files by their
end timestamps, and only what lies behind the chosen log file is dispatched again (recoverAbnormally
in CommitLog.java, load in IndexService.java, putMessagePositionInfo in ConsumeQueue.java).
"""

from __future__ import annotations

import struct
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.kernel import UNIT_BYTES, Stop, kernel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gantrymq.store.settings import StoreSettings

_UNIT: Final = struct.Struct(">qiq")
_KEY: Final = struct.Struct(">iqq")
_INDEX_HEADER: Final = struct.Struct(">qqqqii")
_ENTRY: Final = struct.Struct(">iqii")
_SAFETY_MS: Final = 3000
_MANY: Final = 10**9

Unit = tuple[int, int, int]
"""Log offset, size, tags code."""
Key = tuple[int, int]
"""Hash, log offset."""


class Log(NamedTuple):
    """What a walk over a log finds."""

    first_ms: dict[int, int]
    """Store timestamp of the first record of each file, by the file's start."""
    units: dict[tuple[str, str], list[Unit]]
    """By the names of a queue's directories."""
    keys: list[Key]


def lost_by_apache(settings: StoreSettings) -> list[str]:
    """Return what its recovery would not bring back, one line each; keys if it begins for them."""
    log = _read_log(settings)
    checkpoint = settings.paths.root / "checkpoint"
    times = (0, 0, 0)
    if checkpoint.exists():
        times = struct.unpack(">qqq", checkpoint.read_bytes()[:24])
    safe_ms = max(min(times[:2]) - _SAFETY_MS, 0)
    lost = _lost_units(settings, log, _walk_start(log, safe_ms))
    start = _walk_start(log, min(safe_ms, times[2]))
    return lost + _lost_keys(settings, log, start, times[2])


def indexed_keys(directory: Path, slots: int) -> set[Key]:
    """Return what the slots of all index files lead to."""
    return {
        key
        for path in directory.glob("*")
        if (data := path.read_bytes())
        for key in _entries(data, slots, _INDEX_HEADER.unpack_from(data)[5])
    }


def _read_log(settings: StoreSettings) -> Log:
    log = Log({}, defaultdict(list), [])
    for path in sorted((settings.paths.root / "commitlog").glob("*")):
        data, start = path.read_bytes(), int(path.name)
        first = kernel.scan_records(data, 0, len(data), start, True, 1)
        if first.records:
            log.first_ms[start] = first.first_store_timestamp
        found = kernel.dispatch_records(data, 0, len(data), start, True, _MANY, ())
        for run in found.runs:
            queue = run.topic.decode(), str(run.queue_id)
            log.units[queue] += _UNIT.iter_unpack(run.units)
        log.keys.extend((hashed, at) for hashed, at, _ms in _KEY.iter_unpack(found.keys))
        if found.stop is not Stop.BLANK:
            break
    return log


def _walk_start(log: Log, safe_ms: int) -> int:
    fitting = [start for start, first_ms in log.first_ms.items() if first_ms <= safe_ms]
    return max(fitting, default=0)


def _lost_units(settings: StoreSettings, log: Log, walk_start: int) -> list[str]:
    lost = []
    for queue, wanted in log.units.items():
        found = list(_units(settings.paths.root.joinpath("consumequeue", *queue)))
        end = max((at + size for at, size, _tags in found), default=0)
        # The log may have been torn behind what the queue knows; Apache cuts that off as well.
        found = found[: len(wanted)]
        found += [unit for unit in wanted if unit[0] + unit[1] > end and unit[0] >= walk_start]
        if found != wanted:
            at = next((n for n, pair in enumerate(zip(found, wanted, strict=False))
                       if pair[0] != pair[1]), min(len(found), len(wanted)))  # fmt: skip
            lost.append(f"{queue}: unit {at} of {len(wanted)} is {found[at : at + 1]}")
    return lost


def _units(directory: Path) -> Iterator[Unit]:
    """Yield the units that a start finds, up to the first that is none."""
    for path in sorted(directory.glob("*")):
        data = path.read_bytes()
        for unit in _UNIT.iter_unpack(data[: len(data) // UNIT_BYTES * UNIT_BYTES]):
            if unit[0] < 0 or unit[1] <= 0:
                return
            yield unit


def _lost_keys(settings: StoreSettings, log: Log, walk_start: int, safe_ms: int) -> list[str]:
    known, end = set[Key](), 0
    for path in sorted((settings.paths.root / "index").glob("*")):
        data = path.read_bytes()
        header = _INDEX_HEADER.unpack_from(data) if data else (0, 0, 0, 0, 0, 0)
        if header[1] > safe_ms or not data:
            continue  # removed, or made anew
        end = header[3]
        known |= set(_entries(data, settings.index.slots, header[5]))
    again = {key for key in log.keys if key[1] >= max(end, walk_start)}
    return [f"key {key} is not found" for key in log.keys if key not in known | again]


def _entries(data: bytes, slots: int, next_number: int) -> Iterator[Key]:
    """Yield what the chains of an index file lead to."""
    start = _INDEX_HEADER.size + 4 * slots
    for (slot,) in struct.iter_unpack(">i", data[_INDEX_HEADER.size : start]):
        number, before = slot, 0
        while 0 < number <= next_number and number != before:
            hashed, at, _seconds, previous = _ENTRY.unpack_from(data, start + 20 * number)
            yield hashed, at
            number, before = previous, number
