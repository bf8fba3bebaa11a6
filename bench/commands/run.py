"""Measures the command line: how soon commands answer, how fast dead letters are redriven.

    python -m bench.commands [--letters 100000] [--repetitions 7]

A server of its own is started and ended. Commands are processes, as a shell starts them. Every
letter must have its outcome, once, before its time counts. The status is 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

ROOT = Path(__file__).parents[2]
# `tests/support` knows how to start a server; the rest is for being started as a script.
sys.path[:0] = [str(ROOT), str(ROOT / "src"), str(ROOT / "tests")]

from support import gantry  # noqa: E402
from support.dead_letters import prepare  # noqa: E402
from support.shell import Shell  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence

ANSWER_MS_MAX: Final = 200
LETTERS_PER_SECOND: Final = 20_000
COMMAND_S_MAX: Final = 600


def command(*words: str) -> list[str]:
    """Return a command as a shell would start it."""
    return [str(Path(sys.executable).parent / "gantrymq"), *words]


def answer_ms(words: list[str], repetitions: int) -> float:
    """Return the median time that a command takes."""
    took = []
    for _ in range(repetitions + 1):
        begun = time.perf_counter()
        subprocess.run(  # noqa: S603
            words, check=True, stdout=subprocess.DEVNULL, timeout=COMMAND_S_MAX
        )
        took.append(1000 * (time.perf_counter() - begun))
    return round(statistics.median(took[1:]), 1)  # the first one finds its files


def letters_per_second(shell: Shell, to: str, letters: int, work: Path) -> int:
    """Redrive so many dead letters to their topic, or to their group; return how many a second."""
    group = f"measured-{to}"
    prepare(shell, group, f"Measured-{to}", letters)
    job = work / f"{to}.jsonl"
    words = command(
        "dlq", "redrive", group, "--to", to, "--job", str(job), "-n", shell.server.name_server
    )
    begun = time.perf_counter()
    subprocess.run(  # noqa: S603
        words, check=True, stdout=subprocess.DEVNULL, timeout=COMMAND_S_MAX
    )
    seconds = time.perf_counter() - begun
    lines = map(json.loads, job.read_text(encoding="utf-8").splitlines())
    outcomes = [line["o"] for line in lines if "o" in line]
    if len(outcomes) != letters or len(set(outcomes)) != letters:
        raise SystemExit(f"{len(outcomes)} outcomes of {letters} letters: see {job}")
    return round(letters / seconds)


def measured(letters: int, repetitions: int, work: Path) -> dict[str, float]:
    """Return every figure."""
    with gantry.server(work, {"brokerName": "broker-a"}) as server:
        shell = Shell(server)
        listing = command("topic", "list", "-n", server.name_server)
        return {
            "help_ms": answer_ms(command("--help"), repetitions),
            "topic_list_ms": answer_ms(listing, repetitions),
            "redriven_to_topic_per_second": letters_per_second(shell, "topic", letters, work),
            "redriven_to_group_per_second": letters_per_second(shell, "group", letters, work),
        }


def is_reached(figures: dict[str, float]) -> bool:
    """Tell whether every bar is reached."""
    return all(
        value < ANSWER_MS_MAX if name.endswith("_ms") else value >= LETTERS_PER_SECOND
        for name, value in figures.items()
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description="Measures the command line.")
    parser.add_argument("--letters", type=int, default=100_000)
    parser.add_argument("--repetitions", type=int, default=7)
    settings = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="gantrymq-bench-") as folder:
        figures = measured(settings.letters, settings.repetitions, Path(folder))
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")
    sys.exit(0 if is_reached(figures) else 1)


if __name__ == "__main__":
    main()
