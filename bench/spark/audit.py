"""Measures the audit of a store beside a plain read of the same files, both with two cores.

    python -m bench.spark.audit [--gib 4] [--runs 5] [--body-bytes 1024] [--store DIR]
                                [--json FILE] [--directory DIR]

A broker fills a store and stops (`--store` takes one that is there). Then, run by run in turn:

- plain read: two processes that are running already read half of each log and queue file, four
  mebibytes at a time into the same memory, and do nothing with them. The clock runs from the first
  to the last byte.
- audit: the job as `gantrymq pipeline run audit` runs it, from options to report: planning, the
  Spark job on `local[2]`, every check sum and every queue entry, the join, the job's own check. The
  session is running already, as it is where jobs follow one another; its start, and the first
  audit, which also starts the Python workers, are printed apart.

Cold means that the system was told to forget the files before each run, warm that all of it was
read before. Both read exactly the same bytes: those of the log up to its end, and the queue files.
Medians are printed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src"), str(ROOT / "tests")]

from bench.compare.load import Generator, compile_generator  # noqa: E402
from bench.spark.run import queue_ends  # noqa: E402

from gantrymq.spark.jobs.arguments import Common  # noqa: E402
from gantrymq.spark.jobs.audit import JOB, AuditOptions  # noqa: E402
from gantrymq.spark.jobs.command import run_job  # noqa: E402
from gantrymq.spark.launch.session import make_session  # noqa: E402
from gantrymq.spark.options import read_source_options  # noqa: E402
from support import gantry  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.pool import Pool

MASTER = "local[2]"
READ_BYTES = 4 << 20
FILL_SECONDS = 5.0
FILL_ROUNDS_MAX = 500
QUEUES = 8
HEAD_BYTES = 128
"""What a record has beside its body, at the least."""


def parse_arguments() -> argparse.Namespace:
    """Return the settings."""
    parser = argparse.ArgumentParser(prog="python -m bench.spark.audit", description=__doc__)
    parser.add_argument("--gib", type=float, default=4.0, help="size of the log (default 4)")
    parser.add_argument("--runs", type=int, default=5, help="runs that count (default 5)")
    parser.add_argument("--body-bytes", type=int, default=1024, help="of a message (1024)")
    parser.add_argument("--store", type=Path, help="a store directory that is there already")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    parser.add_argument("--directory", type=Path, default=ROOT / "build", help="where to write")
    return parser.parse_args()


def fill(work: Path, size: int, body_bytes: int) -> Path:
    """Let a broker write so many bytes of log; return its store."""
    store = work / "server" / "data" / "store"
    settings = {"mappedFileSizeCommitLog": str(1 << 30), "brokerName": "broker-a"}
    with gantry.server(work / "server", settings) as server:
        generator = Generator(compile_generator(work), server.port)
        options = read_source_options({"nameServer": server.name_server, "topic": "Audited"})
        for _ in range(FILL_ROUNDS_MAX):
            generator.send("Audited", QUEUES, 8, body_bytes, FILL_SECONDS, batch=32, queues=QUEUES)
            if sum(queue_ends(options, QUEUES)) * (body_bytes + HEAD_BYTES) >= size:
                return store
    raise SystemExit(f"{size} bytes were not written in {FILL_ROUNDS_MAX} rounds")


def files_of(store: Path) -> list[Path]:
    """Return the files that an audit reads."""
    return sorted(
        path
        for folder in ("commitlog", "consumequeue")
        for path in (store / folder).rglob("*")
        if path.is_file()
    )


def forget(files: list[Path]) -> None:
    """Tell the system to keep nothing of some files in memory."""
    for path in files:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_part(parts: list[tuple[Path, int, int]]) -> int:
    """Read parts of files; return how many bytes that were."""
    done, buffer = 0, bytearray(READ_BYTES)
    for path, begin, end in parts:
        left = end - begin
        with path.open("rb", buffering=0) as file:
            file.seek(begin)
            while left > 0 and (count := file.readinto(memoryview(buffer)[:left])):
                left -= count
                done += count
    return done


def sizes_of(files: list[Path], log_end: int) -> dict[Path, int]:
    """Return how much of each file there is to read: behind its end a log file is empty."""
    return {
        path: min(path.stat().st_size, log_end - int(path.name))
        if path.parent.name == "commitlog"
        else path.stat().st_size
        for path in files
        if path.parent.name != "commitlog" or int(path.name) < log_end
    }


def plain_read(pool: Pool, sizes: dict[Path, int]) -> None:
    """Read all files by two processes, half of each file by each."""
    halves = [
        [(path, 0, size // 2) for path, size in sizes.items()],
        [(path, size // 2, size) for path, size in sizes.items()],
    ]
    done = sum(pool.map(read_part, halves, chunksize=1))
    if done != sum(sizes.values()):
        raise SystemExit("not all bytes were read")


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that something takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


class Audited:
    """A store that is audited again and again, in one session."""

    def __init__(self, store: Path) -> None:
        self._options = AuditOptions(path=str(store))
        self.figures: dict[str, Any] = {}

    def __call__(self) -> None:
        """Run the job; it must find nothing wrong."""
        report = run_job(JOB, self._options, Common(master=MASTER))
        if not report.is_good:
            raise SystemExit(f"the audit is not good: {report.problems} {report.checks}")
        self.figures.update(report.figures)


def measure(store: Path, runs: int, pool: Pool) -> dict[str, Any]:
    """Return sizes and seconds of everything."""
    files, audit = files_of(store), Audited(store)
    local = {"spark.driver.host": "127.0.0.1"}
    start_s = timed(lambda: make_session("audit", master=MASTER, settings=local))
    first_s = timed(audit)
    sizes = sizes_of(files, int(audit.figures["log ends at"]))
    seconds: dict[str, dict[str, list[float]]] = {}
    for state in ("cold", "warm"):
        plain_read(pool, sizes)
        seconds[state] = {"plain": [], "audit": []}
        for _ in range(runs):
            for name, work in (("plain", lambda: plain_read(pool, sizes)), ("audit", audit)):
                if state == "cold":
                    forget(files)
                seconds[state][name].append(timed(work))
    return {
        "bytes": sum(sizes.values()), "files": len(sizes), "records": audit.figures["records"],
        "start_s": start_s, "first_s": first_s, "seconds": seconds,
    }  # fmt: skip


def show(told: dict[str, Any]) -> None:
    """Print the table."""
    gib = told["bytes"] / (1 << 30)
    print(f"{gib:.2f} GiB in {told['files']} files, {told['records']} records; Spark started in "
          f"{told['start_s']:.1f} s, the first audit took {told['first_s']:.1f} s")  # fmt: skip
    print(f"{'':6}{'plain read s':>14}{'audit s':>10}{'GiB/s':>8}{'ratio':>8}")
    for state, found in told["seconds"].items():
        read_s, audit_s = (statistics.median(found[name]) for name in ("plain", "audit"))
        print(f"{state:6}{read_s:14.2f}{audit_s:10.2f}{gib / audit_s:8.2f}{audit_s / read_s:8.2f}")


def main() -> None:
    """Measure, and print a table."""
    settings = parse_arguments()
    settings.directory.mkdir(parents=True, exist_ok=True)
    # Before Spark: a process that is forked later would hold what the session has open.
    with (
        multiprocessing.Pool(2) as pool,
        tempfile.TemporaryDirectory(dir=settings.directory) as name,
    ):
        store = settings.store or fill(
            Path(name), int(settings.gib * (1 << 30)), settings.body_bytes
        )
        told = measure(store, settings.runs, pool)
    show(told)
    if settings.json is not None:
        settings.json.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
