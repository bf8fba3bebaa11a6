"""Compact: small files of a lake become large ones, and the manifest swaps them at once.

Files of one queue and one day whose ranges touch are joined, in order, up to a size. The new batch
of the manifest names the new files and those that they replace; before it is there, readers see the
old ones, behind it the new ones. The old files are removed after a while, for readers that have
begun; `--keep-seconds 0` does not wait.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta

from gantrymq.spark.jobs.archive_check import check_files, check_manifest
from gantrymq.spark.jobs.archive_task import force, write_key_filter
from gantrymq.spark.jobs.job import Context, Job, Options
from gantrymq.spark.jobs.lake import (
    Batch,
    Lake,
    LakeFile,
    file_path,
    joined_ranges,
    offsets_json,
    sync_directory,
)
from gantrymq.spark.jobs.log_scan import answers

if TYPE_CHECKING:
    from collections.abc import Iterator

COLUMNS: Final = "payload binary"
MIB: Final = 1 << 20


class CompactOptions(Options, kw_only=True, frozen=True):
    """What `compact` wants to know."""

    lake: Annotated[str, Meta(min_length=1, description="the lake")]
    target_mib: Annotated[int, Meta(ge=1, le=4096, description="size of the files to make")] = 256
    min_files: Annotated[
        int, Meta(ge=2, le=100_000, description="files that are worth being joined")
    ] = 2
    keep_seconds: Annotated[
        float, Meta(ge=0, description="old files are removed when they are this old")
    ] = 3600.0


def groups_of(lake: Lake, options: CompactOptions) -> list[tuple[LakeFile, ...]]:
    """Return the files to join, group by group."""
    limit = options.target_mib * MIB
    groups: list[tuple[LakeFile, ...]] = []
    current: list[LakeFile] = []
    size = 0
    for one in [*lake.files(), None]:
        fits = (
            one is not None
            and bool(one.path)
            and bool(current)
            and (one.queue, one.day) == (current[-1].queue, current[-1].day)
            and one.begin == current[-1].end
            and size + one.size <= limit
        )
        if fits and one is not None:
            current.append(one)
            size += one.size
            continue
        if len(current) >= options.min_files:
            groups.append(tuple(current))
        current, size = ([one], one.size) if one is not None and one.path else ([], 0)
    return groups


def plan(options: CompactOptions, context: Context) -> None:
    """Say which files would be joined."""
    lake = Lake.open(options.lake, must_exist=True)
    groups = groups_of(lake, options)
    context.report.plan.append(
        f"join {sum(map(len, groups))} of {sum(bool(one.path) for one in lake.files())} files of "
        f"{lake.root} to {len(groups)}"
    )


@dataclass(frozen=True)
class JoinTask:
    """Joins the files of a group."""

    root: str
    batch: int

    def __call__(self, files: tuple[LakeFile, ...]) -> Iterator[tuple[object, ...]]:
        """Yield the file that was made."""
        from pyarrow import parquet  # noqa: PLC0415  (of the extra `spark`)

        root, first, last = Path(self.root), files[0], files[-1]
        path = file_path(self.batch, first.queue, first.begin, last.end, first.day)
        place = root / path
        work = root / "data" / ".making" / f"{uuid.uuid4().hex}.parquet"
        work.parent.mkdir(parents=True, exist_ok=True)
        rows = crc_sum = 0
        keys: set[str] = set()
        writer: Any = None
        try:
            for one in files:
                for batch in parquet.ParquetFile(root / one.path).iter_batches(131_072):
                    if writer is None:
                        writer = parquet.ParquetWriter(work, batch.schema, compression="zstd")
                    writer.write_batch(batch)
                    rows += batch.num_rows
                    crc_sum += sum(batch.column("bodyCrc").to_pylist())
                    keys.update(filter(None, batch.column("uniqKey").to_pylist()))
                    for words in batch.column("keys").to_pylist():
                        keys.update((words or "").split())
            writer.close()
            force(work)
            write_key_filter(root, place.stem, keys)
            size = work.stat().st_size
            work.replace(place)
            sync_directory(place.parent)
        finally:
            work.unlink(missing_ok=True)
        made = msgspec.structs.replace(
            first, end=last.end, rows=rows, crc_sum=crc_sum, path=path, size=size,
            min_store_ms=min(one.min_store_ms for one in files),
            max_store_ms=max(one.max_store_ms for one in files),
        )  # fmt: skip
        yield (msgspec.json.encode(made),)


def run(options: CompactOptions, context: Context) -> None:
    """Join files and swap them."""
    lake = Lake.open(options.lake, must_exist=True)
    with lake.writing():
        _run(options, context, lake)


def _run(options: CompactOptions, context: Context, lake: Lake) -> None:
    report, before = context.report, joined_ranges(lake.files())
    groups = groups_of(lake, options)
    made: list[LakeFile] = []
    if groups:
        task = JoinTask(str(lake.root), lake.next_number)
        with context.progress("compact"):
            rows = answers(context, groups, task, COLUMNS)
        made = [msgspec.json.decode(bytes(row[0]), type=LakeFile) for row in rows]
        ends = lake.ends()
        lake.commit(
            Batch(
                number=lake.next_number,
                kind="compact",
                made_ms=context.clock.now_ms(),
                starts=offsets_json(ends),
                ends=offsets_json(ends),
                files=made,
                replaced=[one.path for group in groups for one in group],
            )
        )
    removed = remove_replaced(lake, context.clock.now_ms(), options.keep_seconds)
    report.figures |= {
        "files joined": sum(map(len, groups)),
        "files made": len(made),
        "bytes before": sum(one.size for group in groups for one in group),
        "bytes after": sum(one.size for one in made),
        "old files removed": removed,
    }
    after = joined_ranges(lake.files())
    report.add_check(
        "the same messages", before == after,
        f"{sum(one.rows for one in after)} messages in {len(after)} queues: "
        "ranges, counts and check sums as before",
    )  # fmt: skip


def remove_replaced(lake: Lake, now_ms: int, keep_seconds: float) -> int:
    """Remove files that were replaced long enough ago; return how many."""
    kept = {one.path for one in lake.files()}
    count = 0
    for batch in lake.batches:
        if batch.made_ms + keep_seconds * 1000 > now_ms:
            continue
        for path in batch.replaced:
            place = lake.root / path
            if path not in kept and place.exists():
                place.unlink()
                (lake.root / "keys" / f"{place.stem}.bloom").unlink(missing_ok=True)
                count += 1
    return count


def check(options: CompactOptions, context: Context) -> None:
    """See that every message is still there once."""
    lake = Lake.open(options.lake, must_exist=True)
    check_manifest(context.report, lake)
    check_files(context, lake)


JOB: Final = Job(
    name="compact",
    summary="small files of a lake become large ones",
    text="""\
Join small files of a lake to large ones: same queue, same day, ranges that touch. The manifest
swaps them at once; readers never see a message twice or miss one. Run it while archive rests, or
let the loser of the two try again.""",
    options=CompactOptions,
    plan=plan,
    run=run,
    check=check,
)

if __name__ == "__main__":
    from gantrymq.spark.jobs.command import main
    from gantrymq.spark.jobs.compact import JOB as SELF

    main(SELF)
