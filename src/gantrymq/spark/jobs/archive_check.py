"""Whether a lake holds every message once, and the right one; used by archive, compact, migrate.

Three looks: at the manifest alone (ranges without a seam), at the files (rows, offsets, check sums
of the bodies themselves), and at the log, as far as it still has the messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gantrymq.kernel import kernel
from gantrymq.spark.backend import open_backend
from gantrymq.spark.jobs.lake import Lake, LakeFile, joined_ranges
from gantrymq.spark.jobs.log_scan import answers
from gantrymq.spark.reading import read_slice
from gantrymq.spark.schema import WantedColumn
from gantrymq.spark.slices import Slice, Span
from gantrymq.wire.sysflag import SystemFlag

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gantrymq.spark.jobs.job import Context
    from gantrymq.spark.options import SourceOptions
    from gantrymq.spark.report.values import Report

FILE_COLUMNS: Final = "path string, trouble string"
LOG_COLUMNS: Final = "number int, rowCount long, crcSum long"
FILES_A_TASK: Final = 16
SHOWN_MAX: Final = 5
_COMPRESSED: Final = SystemFlag.COMPRESSED.value


def check_manifest(report: Report, lake: Lake) -> None:
    """See that the ranges of each queue are one range."""
    ranges = joined_ranges(lake.files())
    seams = [seam for one in ranges for seam in one.seams]
    report.add_check(
        "manifest ranges", not seams,
        f"{len(ranges)} queues, {sum(one.rows for one in ranges)} messages, "
        + ("; ".join(seams[:SHOWN_MAX]) or "every range begins where the one before it ends"),
    )  # fmt: skip
    ends = lake.ends()
    wrong = [str(one.queue) for one in ranges if ends.get(one.queue) != one.end]
    report.add_check(
        "manifest ends", not wrong,
        "; ".join(wrong[:SHOWN_MAX]) or "the next batch begins where the files end",
    )  # fmt: skip


def check_files(context: Context, lake: Lake) -> None:
    """See that the files hold what the manifest says, message by message."""
    files = [one for one in lake.files() if one.path]
    groups = [tuple(files[at : at + FILES_A_TASK]) for at in range(0, len(files), FILES_A_TASK)]
    with context.progress("reading the lake"):
        rows = answers(context, groups, FileTask(str(lake.root)), FILE_COLUMNS)
    trouble = [f"{row.path}: {row.trouble}" for row in rows]
    context.report.add_check(
        "files", not trouble,
        "; ".join(trouble[:SHOWN_MAX])
        or f"{len(files)} files have the rows, offsets and check sums of the manifest",
    )  # fmt: skip


@dataclass(frozen=True)
class FileTask:
    """Reads files of a lake and says what is wrong with them."""

    root: str

    def __call__(self, files: tuple[LakeFile, ...]) -> Iterator[tuple[object, ...]]:
        """Yield a row for each file that is not what it should be."""
        for one in files:
            if trouble := file_trouble(Path(self.root), one):
                yield one.path, trouble


def file_trouble(root: Path, one: LakeFile) -> str:
    """Return what is wrong with a file; nothing is the usual answer."""
    import pyarrow as pa  # noqa: PLC0415  (of the extra `spark`)
    from pyarrow import parquet  # noqa: PLC0415

    last, rows, crc_sum = one.begin - 1, 0, 0
    try:
        file = parquet.ParquetFile(root / one.path)
        wanted = ["queueOffset", "bodyCrc", "body", "sysFlag"]
        for batch in file.iter_batches(columns=wanted):
            offsets = batch.column("queueOffset").to_pylist()
            if offsets[0] <= last or any(after <= before for before, after in pairwise(offsets)):
                return f"offsets go back behind {last}"
            last, rows = offsets[-1], rows + len(offsets)
            crcs = batch.column("bodyCrc").to_pylist()
            crc_sum += sum(crcs)
            if wrong := _wrong_body(batch, crcs):
                return wrong
    except (OSError, pa.ArrowException) as error:
        return str(error).splitlines()[0]
    if last >= one.end or rows != one.rows or crc_sum != one.crc_sum:
        return f"{rows} rows to {last}, crc sum {crc_sum}; the manifest says {one.rows} rows"
    return ""


def _wrong_body(batch: Any, crcs: list[int]) -> str:  # noqa: ANN401
    bodies = batch.column("body").to_pylist()
    for number, flag in enumerate(batch.column("sysFlag").to_pylist()):
        # The log's check sum is of the compressed body, which is not here.
        if (
            not flag & _COMPRESSED
            and bodies[number]
            and kernel.crc32(bodies[number]) != crcs[number]
        ):
            return f"the body at {batch.column('queueOffset')[number]} has another check sum"
    return ""


def check_log(context: Context, lake: Lake, source: SourceOptions) -> None:
    """Compare with the log: counts and sums of check sums of every range that it still has."""
    backend = open_backend(source)
    try:
        bounds = backend.bounds()
        files = [
            one
            for one in lake.files()
            if one.queue in bounds
            and bounds[one.queue].least <= one.begin
            and one.end <= bounds[one.queue].most
        ]
        slices = backend.slices((one.queue, Span(one.begin, one.end)) for one in files)
    finally:
        backend.close()
    numbered = list(enumerate(slices))
    items = [tuple(numbered[at : at + FILES_A_TASK]) for at in range(0, len(slices), FILES_A_TASK)]
    with context.progress("comparing with the log"):
        rows = answers(context, items, LogTask(source), LOG_COLUMNS)
    found = {row.number: (row.rowCount, row.crcSum) for row in rows}
    wrong = [
        f"{one.queue} {one.begin} to {one.end}: the log has {found.get(number)}, "
        f"the lake {(one.rows, one.crc_sum)}"
        for number, one in enumerate(files)
        if found.get(number) != (one.rows, one.crc_sum)
    ]
    total = sum(one.rows for one in files)
    context.report.add_check(
        "the same as the log", not wrong,
        "; ".join(wrong[:SHOWN_MAX])
        or f"{total} messages in {len(files)} ranges that the log still has: counts and check sums",
    )  # fmt: skip


@dataclass(frozen=True)
class LogTask:
    """Counts the messages of slices and sums up their check sums."""

    options: SourceOptions

    def __call__(self, parts: tuple[tuple[int, Slice], ...]) -> Iterator[tuple[object, ...]]:
        """Yield a row for each slice."""
        import pyarrow.compute as pc  # noqa: PLC0415

        wanted = (WantedColumn("bodyCrc", nullable=True),)
        for number, part in parts:
            rows = crc_sum = 0
            for batch in read_slice(self.options, wanted, part):
                rows += batch.num_rows
                crc_sum += pc.sum(batch.column("bodyCrc")).as_py() or 0
            yield number, rows, crc_sum
