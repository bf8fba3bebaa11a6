"""`mqload.c`, compiled and run: the generator that both brokers get."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import msgspec
from bench.compare.brokers import NotMeasured

SOURCE: Final = Path(__file__).parents[1] / "mqload.c"
COMPILE_SECONDS_MAX: Final = 120
GRACE_SECONDS: Final = 60
"""What a run may take beyond its time: connecting, answers that are late, sorting."""
QUEUES: Final = 8
BATCH: Final = 32


class Load(msgspec.Struct):
    """What a run of mqload says."""

    messages: int
    seconds: float
    per_second: float
    p50_us: int
    p99_us: int
    p999_us: int
    max_us: int
    errors: int
    mb_per_second: float | None = None
    first_error: int | None = None


def compile_generator(folder: Path) -> Path:
    """Build mqload; return the program.

    Raises:
        NotMeasured: there is no compiler, or it fails.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise NotMeasured("a C compiler is needed for bench/mqload.c: install cc (package gcc)")
    program = folder / "mqload"
    done = subprocess.run(  # noqa: S603
        [compiler, "-O2", "-o", str(program), str(SOURCE)],
        capture_output=True, text=True, check=False, timeout=COMPILE_SECONDS_MAX,
    )  # fmt: skip
    if done.returncode != 0:
        raise NotMeasured(f"{SOURCE.name} does not compile: {done.stderr.strip()[:500]}")
    return program


class Generator:
    """mqload pointed at a broker."""

    def __init__(self, program: Path, port: int) -> None:
        self._program = program
        self._port = str(port)

    def send(
        self,
        topic: str,
        connections: int,
        window: int,
        body_bytes: int,
        seconds: float,
        *,
        batch: int = 1,
        topics: int = 1,
        queues: int = QUEUES,
        rate: float = 0.0,
    ) -> Load:
        """Send for so long, with `rate` no more requests than so many a second."""
        return self._run(
            seconds, "send", topic, queues, connections, window, body_bytes, f"{seconds:.3f}",
            batch, topics, rate,
        )  # fmt: skip

    def pull(self, topic: str, count: int, seconds: float) -> Load:
        """Read a topic from its start to its end, or for so long."""
        return self._run(seconds, "pull", topic, QUEUES, QUEUES, count, f"{seconds:.3f}")

    def _run(self, seconds: float, mode: str, *arguments: object) -> Load:
        command = [
            str(self._program), mode, "127.0.0.1", self._port, *(str(one) for one in arguments)
        ]  # fmt: skip
        try:
            done = subprocess.run(  # noqa: S603
                command, capture_output=True, check=False, timeout=seconds + GRACE_SECONDS
            )
            return msgspec.json.decode(done.stdout, type=Load)
        except subprocess.TimeoutExpired:
            raise NotMeasured(f"{mode} {arguments} does not end") from None
        except msgspec.DecodeError:
            said = done.stderr.decode(errors="replace").strip()[:300]
            raise NotMeasured(f"{mode} {arguments} ended with {done.returncode}: {said}") from None
