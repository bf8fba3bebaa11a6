"""Processes that benchmarks start: one that is killed while it writes, one that opens a store.

    python -m bench.store.child write SCALE ROOT LOG_BYTES BODY_BYTES    says "written N", waits
    python -m bench.store.child open SCALE ROOT [TOPICS QUEUES]          says a line of JSON, ends

A store that is opened in a process of its own has that process's memory and start to itself.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from bench.installed import ROOT, installed_environment

WRITE_SECONDS_MAX: Final = 1800
OPEN_SECONDS_MAX: Final = 600
BUFFERS: Final = 64
BUFFER_BYTES: Final = 1 << 18


# -- in the child --------------------------------------------------------------------------------


def _write(scale: float, root: Path, log_bytes: int, body_bytes: int) -> None:
    """Write a store as a broker does and leave it open."""
    from bench.store.place import QUEUES, TOPIC, OpenStore, Place, buffers_of  # noqa: PLC0415

    opened = OpenStore(Place(root.parent, scale).properties(root))
    opened.store.open_topic(TOPIC, QUEUES)
    count = max(1, BUFFER_BYTES // (body_bytes + 200))
    messages = opened.fill(log_bytes, buffers_of(BUFFERS, count, b"x" * body_bytes))
    print("written", messages, flush=True)
    signal.pause()


def _open(scale: float, root: Path, topics: int, queues: int) -> None:
    """Open a store, take and read one message, and say how it went."""
    from bench.store.place import OpenStore, Place  # noqa: PLC0415

    begun = time.perf_counter()
    opened = OpenStore(Place(root.parent, scale).properties(root))
    for number in range(topics):
        opened.store.open_topic(topic_name(number), queues)
    seconds = time.perf_counter() - begun
    table = opened.store.queues
    memory = _memory_kib()
    found = opened.store.get("BenchTopic" if not topics else topic_name(0), 0, 0, 1)
    said = {
        "open_seconds": round(seconds, 4),
        "clean": opened.report.clean,
        "records_walked": opened.report.log_end.records,
        "queues": len(table),
        "messages": sum(queue.max_offset for queue in table),
        "served": len(found.records),
        "anonymous_mib": round(memory["RssAnon"] / 1024, 1),
        "mapped_mib": round(memory["RssFile"] / 1024, 1),
    }
    print(json.dumps(said), flush=True)
    # Not closed: what was recovered is on the disk, and closing is not what is measured.
    os._exit(0)


def topic_name(number: int) -> str:
    """Return the name of one of many topics."""
    return f"Topic{number:05d}"


def _memory_kib() -> dict[str, int]:
    """Return what the system says of this process: private memory, and pages of mapped files."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    pairs = (line.split() for line in lines if line.startswith("Rss"))
    return {words[0].rstrip(":"): int(words[1]) for words in pairs}


def main(arguments: list[str]) -> None:
    """Do one of the two."""
    what, scale, root, *numbers = arguments
    if what == "write":
        log_bytes, body_bytes = map(int, numbers)
        _write(float(scale), Path(root), log_bytes, body_bytes)
    else:
        topics, queues = map(int, numbers or ("0", "0"))
        _open(float(scale), Path(root), topics, queues)


# -- in the parent -------------------------------------------------------------------------------


def _command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "bench.store.child", *map(str, arguments)]


def write_and_be_killed(scale: float, root: Path, log_bytes: int, body_bytes: int) -> int:
    """Leave a store behind that nobody closed; return its number of messages."""
    command = _command("write", scale, root, log_bytes, body_bytes)
    with subprocess.Popen(  # noqa: S603  (this very module)
        command, cwd=ROOT, env=installed_environment(ROOT), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            if process.stdout is None:
                raise RuntimeError("no pipe")
            words = process.stdout.readline().split()
        finally:
            process.kill()
    if not words:
        raise RuntimeError(f"the writer of {root} ended before it was done")
    return int(words[1])


def open_elsewhere(scale: float, root: Path, topics: int = 0, queues: int = 0) -> dict[str, object]:
    """Open a store in a new process; return what it said, and how long it was from its start."""
    begun = time.perf_counter()
    with subprocess.Popen(  # noqa: S603  (this very module)
        _command("open", scale, root, topics, queues),
        cwd=ROOT,
        env=installed_environment(ROOT),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        if process.stdout is None:
            raise RuntimeError("no pipe")
        line = process.stdout.readline()
        seconds = time.perf_counter() - begun
    if not line:
        raise RuntimeError(f"{root} could not be opened")
    said: dict[str, object] = json.loads(line)
    return {"process_seconds": round(seconds, 3), **said}


if __name__ == "__main__":
    main(sys.argv[1:])
