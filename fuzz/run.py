"""Runs one target with one engine, watches it, and reports.

    python -m fuzz.run frame --seconds 600 --engine auto

`atheris` is guided by coverage and taken where it can be imported; `builtin` works anywhere. Either
runs in a child: what it finds may kill it (the kernel is compiled code) or make it hang. What must
not be is saved in fuzz/crashes/, and the exit status is 1; `--replay FILE` tries it again.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import logging
import mmap
import multiprocessing
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from fuzz import builtin, limits
from fuzz.builtin import FLIGHT_BYTES, Finding, Flight, Report
from fuzz.mutation import INPUT_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

FOLDER: Final = Path(__file__).parent
CRASHES: Final = FOLDER / "crashes"
CORPUS: Final = FOLDER / "corpus"

GUIDED_SECONDS_MAX: Final = 5
"""What libFuzzer takes for a hang; code that is measured is slower."""
STUCK_SECONDS_MAX: Final = 10
"""For compiled code that never comes back, which the engine's own alarm cannot interrupt."""


def _child(name: str, seconds: float, seed: int, flight: Flight, answer: Connection) -> None:
    """Fuzz in a process of its own and send the report."""
    from fuzz import seeds, targets  # noqa: PLC0415  (the parent must survive a broken kernel)

    logging.disable(logging.CRITICAL)  # what services say of bad input is not what is looked for
    inputs = seeds.for_target(name)
    if sys.platform == "linux":
        limits.limit_memory()
    target = limits.bounded(targets.TARGETS[name])
    report = builtin.fuzz(name, target, inputs, seconds=seconds, seed=seed, flight=flight)
    answer.send_bytes(msgspec.msgpack.encode(report))


def run_builtin(name: str, seconds: float, seed: int) -> Report:
    """Run the built-in engine in a child; a child that dies or is stuck is a finding too."""
    context = multiprocessing.get_context("fork")
    flight = Flight(memoryview(mmap.mmap(-1, FLIGHT_BYTES)))
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(name, seconds, seed, flight, sender))
    start = time.monotonic()
    child.start()
    sender.close()
    seen, moved = 0, start
    try:
        while not receiver.poll(0.2):
            count, data = flight.read()
            if count != seen:
                seen, moved = count, time.monotonic()
            elif count and time.monotonic() - moved > STUCK_SECONDS_MAX:
                found = Finding(
                    data, f"stuck for {STUCK_SECONDS_MAX} s in compiled code", hang=True
                )
                break
        else:
            return msgspec.msgpack.decode(receiver.recv_bytes(), type=Report)
    except EOFError:
        child.join()
        count, data = flight.read()
        if count == 0:
            raise RuntimeError("the engine did not start; what it said is above") from None
        found = Finding(data, f"the process died with status {child.exitcode}", hang=False)
    finally:
        child.kill()
        child.join()
    return Report(
        target=name,
        engine="builtin",
        executions=count,
        seconds=time.monotonic() - start,
        findings=[found],
    )


def run_atheris(name: str, seconds: float, seed: int) -> Report:
    """Run atheris in a child and read what libFuzzer says at its end."""
    from fuzz import seeds  # noqa: PLC0415  (as above)

    corpus = CORPUS / name
    corpus.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        begin, artifacts = Path(folder, "seeds"), Path(folder, "artifacts")
        begin.mkdir()
        artifacts.mkdir()
        for data in seeds.for_target(name):
            (begin / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)
        command = [sys.executable, "-m", "fuzz.guided", name, f"-max_total_time={int(seconds)}"]
        command += [f"-artifact_prefix={artifacts}/", f"-seed={seed or 1}", "-print_final_stats=1"]
        command += [f"-timeout={GUIDED_SECONDS_MAX}", "-rss_limit_mb=2048"]
        command += [f"-max_len={INPUT_BYTES_MAX}", str(corpus), str(begin)]
        start = time.monotonic()
        done = subprocess.run(command, capture_output=True, check=False, cwd=FOLDER.parent)
        log = (done.stderr + done.stdout).decode(errors="replace")
        executed = re.search(r"number_of_executed_units:\s+(\d+)", log)
        peak = re.search(r"peak_rss_mb:\s+(\d+)", log)
        report = Report(
            target=name,
            engine="atheris",
            executions=int(executed[1]) if executed else 0,
            seconds=time.monotonic() - start,
            corpus=len(list(corpus.iterdir())),
            memory_bytes=int(peak[1]) << 20 if peak else 0,
        )
        tail = "\n".join(log.splitlines()[-40:])
        for path in sorted(artifacts.iterdir()):
            hang = path.name.startswith("timeout")
            report.findings.append(Finding(path.read_bytes(), tail, hang=hang))
        if done.returncode and not report.findings:
            report.findings.append(Finding(b"", f"status {done.returncode}:\n{tail}", hang=False))
    return report


def save(report: Report, folder: Path) -> list[Path]:
    """Write the inputs that must not be, and beside each what it did."""
    folder.mkdir(parents=True, exist_ok=True)
    saved = []
    for finding in report.findings:
        name = hashlib.sha1(finding.data, usedforsecurity=False).hexdigest()[:16]
        path = folder / f"{report.target}-{'hang' if finding.hang else 'crash'}-{name}"
        path.write_bytes(finding.data)
        path.with_suffix(".txt").write_text(finding.what, encoding="utf-8")
        saved.append(path)
    return saved


def summary(report: Report) -> str:
    """Return the one line that a run comes to."""
    rate = report.executions / report.seconds if report.seconds else 0
    return (
        f"fuzz {report.target}: engine {report.engine}, {report.executions} executions in "
        f"{report.seconds:.0f} s ({rate:.0f}/s), corpus {report.corpus}, "
        f"crashes {report.crashes}, hangs {report.hangs}, memory {report.memory_bytes >> 20} MiB"
        f" ({report.grown_bytes >> 20:+d})"
    )


def replay(name: str, path: Path) -> int:
    """Try one saved input, without any net under it."""
    from fuzz import targets  # noqa: PLC0415  (as above)

    print(f"fuzz {name}: {targets.TARGETS[name](path.read_bytes())}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0 when nothing was found, 1 when something was."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.run", description=__doc__.splitlines()[0])
    parser.add_argument("target", help="which: the names in fuzz/targets.py")
    parser.add_argument("--seconds", type=float, default=60, help="how long (default 60)")
    parser.add_argument("--engine", choices=["auto", "atheris", "builtin"], default="auto")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers (default 0)")
    parser.add_argument("--crashes", type=Path, default=CRASHES, help="where findings are saved")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="try one saved input instead")
    chosen = parser.parse_args(arguments)
    if chosen.replay:
        return replay(chosen.target, chosen.replay)
    engine = chosen.engine
    if engine == "auto":
        engine = "atheris" if importlib.util.find_spec("atheris") else "builtin"
    run = run_atheris if engine == "atheris" else run_builtin
    report = run(chosen.target, chosen.seconds, chosen.seed)
    print(summary(report), flush=True)
    for path in save(report, chosen.crashes):
        print(f"fuzz {report.target}: saved {path}, and what it did beside it")
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
