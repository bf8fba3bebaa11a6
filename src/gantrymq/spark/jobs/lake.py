"""A lake: Parquet files of messages, and the manifest that says which of them count.

    LAKE/data/topic=Orders/day=2026-11-16/b00000012-broker-a-3-100-200.parquet
    LAKE/keys/b00000012-broker-a-3-100-200.bloom      which keys may be in that file
    LAKE/manifest/00000012.json                       one for each batch, made last, never changed

A batch is there when its manifest is. Files come first, forced to the disk; then the manifest is
linked to its name, which fails if it is taken, so that two writers cannot both have batch 12. What
is not in a manifest does not count: a job that was killed leaves files that nobody reads, and the
next run removes them. So that it cannot remove those of a job that still runs, whoever writes holds
LAKE/lock, which the system takes back from a process that is gone.

A manifest has the ranges of queue offsets that its files hold, ends exclusive. All ranges of
a queue, joined, must be one range without a seam: then every message is there once.
"""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import quote

import msgspec

from gantrymq.errors import GantryError, InvalidValue
from gantrymq.spark.offsets import Offsets, decode, encode
from gantrymq.spark.slices import Queue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DATA: Final = "data"
KEYS: Final = "keys"
MANIFEST: Final = "manifest"
VERSION: Final = 1
LAKE_COLUMNS: Final = (
    "brokerName", "queueId", "queueOffset", "physicalOffset", "storeSize", "body", "bodyCrc",
    "flag", "sysFlag", "bornTimestamp", "storeTimestamp", "bornHost", "storeHost",
    "reconsumeTimes", "preparedTransactionOffset", "tags", "keys", "uniqKey", "msgId",
    "properties",
)  # fmt: skip
"""Columns in the files; topic and day are in their paths."""
_NAME: Final = re.compile(r"(\d{8})\.json")


class LakeConflict(GantryError):
    """Another job has written to the lake meanwhile."""


class LakeFile(msgspec.Struct, rename="camel", frozen=True):
    """A range of a queue and the file that holds it; without a path it has no message."""

    topic: str
    broker: str
    queue_id: int
    begin: int
    end: int
    rows: int
    crc_sum: int
    """Sum of the bodies' check sums, as the log has them."""
    path: str = ""
    """Below the lake."""
    day: str = ""
    size: int = 0
    min_store_ms: int = 0
    max_store_ms: int = 0

    @property
    def queue(self) -> Queue:
        """Return whose messages these are."""
        return Queue(self.topic, self.broker, self.queue_id)


class Batch(msgspec.Struct, rename="camel"):
    """What one commit of a job has added or changed."""

    number: int
    kind: Literal["archive", "compact"]
    made_ms: int
    starts: dict[str, object]
    ends: dict[str, object]
    """Offsets as the format writes them, of all queues, also of those without news."""
    files: list[LakeFile]
    replaced: list[str] = msgspec.field(default_factory=list)
    """Paths that these files take the place of."""
    v: int = VERSION


class Lake:
    """A lake directory. What it says is as of the last `load`."""

    def __init__(self, root: str) -> None:
        self.root = Path(root).absolute()
        self.batches: list[Batch] = []

    @classmethod
    def open(cls, root: str, *, must_exist: bool = False) -> Lake:
        """Read the manifests of a lake.

        Raises:
            InvalidValue: there is none and there must be; or a manifest is missing or unreadable.
        """
        lake = cls(root)
        lake.load()
        if must_exist and not lake.batches:
            raise InvalidValue(f"{lake.root} is no lake: it has no {MANIFEST}/00000000.json")
        return lake

    def load(self) -> None:
        """Read the manifests that are there.

        Raises:
            InvalidValue: one is missing, unreadable, or of another version.
        """
        folder = self.root / MANIFEST
        names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        numbers = [int(found[1]) for name in names if (found := _NAME.fullmatch(name))]
        if numbers != list(range(len(numbers))):
            missing = min(set(range(len(numbers))) - set(numbers))
            raise InvalidValue(f"{folder}: {missing:08d}.json is missing; restore it first")
        self.batches = [self._read(folder / f"{number:08d}.json") for number in numbers]

    @staticmethod
    def _read(path: Path) -> Batch:
        try:
            batch = msgspec.json.decode(path.read_bytes(), type=Batch)
        except msgspec.MsgspecError as error:
            raise InvalidValue(f"{path}: no manifest of ours ({error}); restore it") from None
        if batch.v != VERSION:
            raise InvalidValue(f"{path}: version {batch.v}; this gantrymq reads {VERSION}")
        return batch

    # -- what it holds ---------------------------------------------------------------------------

    @property
    def next_number(self) -> int:
        """Return the number of the next batch."""
        return len(self.batches)

    def ends(self) -> Offsets:
        """Return up to which offset each queue was archived."""
        found: Offsets = {}
        for batch in self.batches:
            found |= decode(batch.ends)
        return found

    def files(self) -> list[LakeFile]:
        """Return the ranges that count, by queue and offset."""
        found: dict[tuple[Queue, int, str], LakeFile] = {}
        for batch in self.batches:
            if batch.replaced:
                gone = set(batch.replaced)
                found = {key: one for key, one in found.items() if one.path not in gone}
            found |= {(one.queue, one.begin, one.path): one for one in batch.files}
        return sorted(found.values(), key=lambda one: (one.queue, one.begin, one.end))

    def orphans(self) -> Iterator[Path]:
        """Yield the files that no manifest names."""
        known = {one.path for one in self.files()}
        for path in (self.root / DATA).rglob("*"):
            if path.is_file() and path.relative_to(self.root).as_posix() not in known:
                yield path
        names = {Path(path).stem for path in known}
        for path in (self.root / KEYS).glob("*"):
            if path.stem not in names:
                yield path

    def remove_orphans(self) -> int:
        """Remove what no manifest names; return how many files that were."""
        count = 0
        for path in list(self.orphans()):
            path.unlink(missing_ok=True)
            count += 1
        return count

    # -- committing ------------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only one who writes to the lake for the time of a `with` block.

        Raises:
            LakeConflict: somebody else is.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "lock").open("ab") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise LakeConflict(
                    f"{self.root}: another job writes to this lake; wait until it is done"
                ) from None
            self.load()
            yield

    def commit(self, batch: Batch) -> None:
        """Add a batch, for good.

        Raises:
            LakeConflict: its number is taken, or a file is not what the batch says.
            OSError: a file is not there.
        """
        for one in batch.files:
            if one.path and (self.root / one.path).stat().st_size != one.size:
                raise LakeConflict(f"{one.path} is not the file that was written; run it again")
        folder = self.root / MANIFEST
        folder.mkdir(parents=True, exist_ok=True)
        final = folder / f"{batch.number:08d}.json"
        work = folder / f".{batch.number:08d}.{os.getpid()}.making"
        encoded = msgspec.json.format(msgspec.json.encode(batch), indent=1)
        with work.open("wb") as file:
            file.write(encoded + b"\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(work, final)
        except FileExistsError:
            raise LakeConflict(
                f"{final} is there already: another job writes to this lake; let one of them do it"
            ) from None
        finally:
            work.unlink()
        sync_directory(folder)
        self.batches.append(batch)


def sync_directory(path: Path) -> None:
    """Force the names in a directory to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def file_path(batch: int, queue: Queue, begin: int, end: int, day: str) -> str:
    """Return the path of a file below its lake: the same for the same messages of the same batch.

    Names are escaped as Hive does, so that `%DLQ%group` can be a directory and is read back.
    """
    topic = quote(queue.topic, safe=" -_.!~@$&(),;+")
    broker = quote(queue.broker, safe="-_.")
    name = f"b{batch:08d}-{broker}-{queue.queue_id}-{begin}-{end}.parquet"
    return f"{DATA}/topic={topic}/day={day}/{name}"


class QueueRanges(msgspec.Struct):
    """What the ranges of one queue come to."""

    queue: Queue
    begin: int
    end: int
    rows: int = 0
    crc_sum: int = 0
    seams: list[str] = msgspec.field(default_factory=list)
    """Where two ranges do not touch, or overlap."""


def joined_ranges(files: Iterable[LakeFile]) -> list[QueueRanges]:
    """Join the ranges of each queue; files are in order."""
    found: dict[Queue, QueueRanges] = {}
    for one in files:
        whole = found.setdefault(one.queue, QueueRanges(one.queue, one.begin, one.begin))
        if one.begin != whole.end:
            what = "are missing" if one.begin > whole.end else "are there twice"
            edges = sorted((whole.end, one.begin))
            whole.seams.append(f"{one.queue}: messages {edges[0]} to {edges[1]} {what}")
        whole.end = max(whole.end, one.end)
        whole.rows += one.rows
        whole.crc_sum += one.crc_sum
    return [found[queue] for queue in sorted(found)]


def offsets_json(offsets: Offsets) -> dict[str, object]:
    """Return offsets as manifests have them."""
    return encode(offsets)
