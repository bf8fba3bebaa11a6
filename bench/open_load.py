"""`openload.c`, compiled and run: sends at a rate, whatever comes back."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from bench.compare.brokers import NotMeasured

if TYPE_CHECKING:
    from collections.abc import Sequence

SOURCE: Final = Path(__file__).parent / "openload.c"
COMPILE_S_MAX: Final = 120
GRACE_S: Final = 30
"""What a run may take beyond its time: connecting, and answers that are late."""
QUEUES: Final = 8
SLICE_MS: Final = 10


class Tally(msgspec.Struct):
    """What became of the requests of some time, by when they were made."""

    seconds: float
    offered: int
    accepted: int
    refused: int
    unsent: int
    """That the generator could not get rid of, because the peer does not read."""
    unanswered: int
    p50_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float
    """Of those that were accepted."""
    refused_p99_ms: float
    at_s: float = 0.0


class OpenLoad(msgspec.Struct):
    """What a run says."""

    late_ms: float
    """How late the generator itself was, at worst."""
    closed: int
    """Connections that the peer has closed."""
    unreadable: int
    phases: list[Tally]
    intervals: list[Tally]
    causes: dict[str, int]


class OpenLoader:
    """The compiled generator."""

    def __init__(self, folder: Path) -> None:
        """Compile it.

        Raises:
            NotMeasured: there is no compiler, or it fails.
        """
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise NotMeasured("a C compiler is needed for bench/openload.c: install cc")
        self._program = folder / "openload"
        done = subprocess.run(  # noqa: S603
            [compiler, "-O2", "-o", str(self._program), str(SOURCE)],
            capture_output=True, text=True, check=False, timeout=COMPILE_S_MAX,
        )  # fmt: skip
        if done.returncode != 0:
            raise NotMeasured(f"{SOURCE.name} does not compile: {done.stderr.strip()[:500]}")

    def start(
        self,
        port: int,
        connections: int,
        body_bytes: int,
        phases: Sequence[str],
        *,
        topic: str = "OpenLoad",
        interval_ms: int = 250,
    ) -> Running:
        """Begin; a phase is `RATE:SECONDS`, or `wN:SECONDS` for N in flight on each connection."""
        command = [
            str(self._program), "127.0.0.1", str(port), topic, str(QUEUES), str(connections),
            str(body_bytes), str(SLICE_MS), str(interval_ms), *phases,
        ]  # fmt: skip
        seconds = sum(float(phase.partition(":")[2]) for phase in phases)
        process = subprocess.Popen(  # noqa: S603
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        return Running(process, seconds)

    def run(self, port: int, connections: int, body_bytes: int, phases: Sequence[str]) -> OpenLoad:
        """Do all of it."""
        return self.start(port, connections, body_bytes, phases).result()


class Running:
    """A run under way."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        self._process = process
        self._seconds = seconds

    def result(self) -> OpenLoad:
        """Wait for its end; return what it says.

        Raises:
            NotMeasured: it does not end, or says nothing.
        """
        try:
            said, wrong = self._process.communicate(timeout=self._seconds + GRACE_S)
        except subprocess.TimeoutExpired:
            raise NotMeasured("the generator does not end") from None
        finally:
            self.end()
        try:
            return msgspec.json.decode(said, type=OpenLoad)
        except msgspec.DecodeError:
            raise NotMeasured(
                f"the generator ended with {self._process.returncode}: {wrong.decode()[:300]}"
            ) from None

    def end(self) -> None:
        """End it, whatever it does."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
