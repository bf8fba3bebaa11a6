"""Measures the audit of a store beside a plain read of the same files, both with two cores.

    python -m bench.spark.audit [--gib 4] [--runs 3] [--body-bytes 1024] [--json FILE]
                                [--directory DIR]

A broker fills a store and stops. Then two processes read half of the log and queue files each, and
do nothing with what they read; and a Spark with `local[2]`, which is running already, audits the
store: every check sum, every queue entry. Cold means that the system was told to forget the files
before each run, warm that it was not. Medians are printed; Spark's own start is printed apart.
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
    parser.add_argument("--runs", type=int, default=3, help="runs that count (default 3)")
    parser.add_argument("--body-bytes", type=int, default=1024, help="of a message (1024)")
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


def plain_read(sizes: dict[Path, int]) -> None:
    """Read all files by two processes, half of each file by each."""
    halves = [
        [(path, 0, size // 2) for path, size in sizes.items()],
        [(path, size // 2, size) for path, size in sizes.items()],
    ]
    with multiprocessing.Pool(2) as pool:
        done = sum(pool.map(read_part, halves))
    if done != sum(sizes.values()):
        raise SystemExit("not all bytes were read")


def timed(runs: int, work: Callable[[], object], before: Callable[[], object]) -> list[float]:
    """Return the seconds of some runs, each after what comes before it."""
    seconds = []
    for _ in range(runs):
        before()
        begun = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begun)
    return seconds


def main() -> None:
    """Measure, and print a table."""
    settings = parse_arguments()
    settings.directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=settings.directory) as name:
        store = fill(Path(name), int(settings.gib * (1 << 30)), settings.body_bytes)
        files = files_of(store)
        begun = time.perf_counter()
        make_session("audit", master=MASTER, settings={"spark.driver.host": "127.0.0.1"})
        start_s = time.perf_counter() - begun
        said: dict[str, Any] = {}

        def audit() -> None:
            report = run_job(JOB, AuditOptions(path=str(store)), Common(master=MASTER))
            if not report.is_good:
                raise SystemExit(f"the audit is not good: {report.problems} {report.checks}")
            said.update(report.figures)

        first_s = timed(1, audit, lambda: None)[0]
        sizes = sizes_of(files, int(said["log ends at"]))
        table = {}
        for state, before in (("cold", lambda: forget(files)), ("warm", lambda: None)):
            plain = timed(settings.runs, lambda: plain_read(sizes), before)
            table[state] = {"plain": plain, "audit": timed(settings.runs, audit, before)}
    size = sum(sizes.values())
    print(f"{size / (1 << 30):.2f} GiB in {len(sizes)} files, {said['records']} records; "
          f"Spark started in {start_s:.1f} s, the first audit took {first_s:.1f} s")  # fmt: skip
    print(f"{'':6}{'plain read s':>14}{'audit s':>10}{'GiB/s':>8}{'ratio':>8}")
    for state, found in table.items():
        read_s, audit_s = (statistics.median(found[name]) for name in ("plain", "audit"))
        rate = size / (1 << 30) / audit_s
        print(f"{state:6}{read_s:14.2f}{audit_s:10.2f}{rate:8.2f}{audit_s / read_s:8.2f}")
    if settings.json is not None:
        settings.json.write_text(json.dumps({"bytes": size, "seconds": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
