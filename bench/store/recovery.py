"""Recovery of a store that nobody closed, beside Apache RocketMQ 5.5.0 on a copy of it.

What is timed is what an operator waits for: from the start of the process until it has answered
one question. A start on an empty directory is timed too; what is above that is the recovery. Apache
is started as its own script does it, with a quarter of the heap.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Final

from bench.store.child import open_elsewhere, write_and_be_killed
from bench.store.place import GIB, QUEUES, TOPIC, Place, Result, read_through

from support import apache, tools

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LOG_BYTES: Final = 2 * GIB
LOG_BYTES_MIN: Final = 3 << 20
BODIES: Final = (128, 1024)
VERSION: Final = "5.5.0"
APACHE_SECONDS_MAX: Final = 1200
NOISE_SECONDS: Final = 0.5
"""By how much two starts on nothing may differ."""
BAR: Final = 0.2


def recovery(place: Place) -> Result:
    """Recover stores of small and of larger messages."""
    empty = _empty(place)
    cases = [_one(place, body_bytes, empty) for body_bytes in BODIES]
    ratios = [case["ratio"] for case in cases if isinstance(case.get("ratio"), float)]
    return {
        "empty": empty,
        "cases": cases,
        "bar_ratio": BAR,
        "reached": all(isinstance(r, float) and r <= BAR for r in ratios) if ratios else None,
    }


def _one(place: Place, body_bytes: int, empty: Mapping[str, object]) -> Result:
    with place.root("killed") as root, place.root("copy") as copy:
        log_bytes = place.amount(LOG_BYTES, LOG_BYTES_MIN)
        messages = write_and_be_killed(place.scale, root, log_bytes, body_bytes)
        _copy(root, copy)
        read_through(root)
        ours = open_elsewhere(place.scale, root)
        result: Result = {
            "log_bytes": log_bytes, "body_bytes": body_bytes, "messages": messages, "ours": ours,
        }  # fmt: skip
        if ours["clean"] or ours["messages"] != messages:
            raise RuntimeError(f"{root} had {messages} messages and was not closed: {ours}")
        _compare(place, copy, result, empty)
        return result


def _compare(place: Place, copy: Path, result: Result, empty: Mapping[str, object]) -> None:
    """Start Apache on the copy and put its time beside ours."""
    read_through(copy)
    seconds, why = _apache_seconds(place, copy, result["messages"])
    result["apache_seconds"] = seconds
    if seconds is None:
        result["apache_left_out"] = why
        return
    ours = result["ours"]
    if isinstance(ours, dict):
        result["ratio"] = round(ours["process_seconds"] / seconds, 4)
        bare, own = empty["apache_seconds"], empty["ours_seconds"]
        if isinstance(bare, float) and isinstance(own, float) and seconds - bare > NOISE_SECONDS:
            gained = (ours["process_seconds"] - own) / (seconds - bare)
            result["ratio_above_an_empty_start"] = round(gained, 4)


def _empty(place: Place) -> Result:
    """Time the start on nothing; the second one, for the first has to find its programs."""
    for _ in range(2):
        with place.root("empty") as root:
            ours = open_elsewhere(place.scale, root)
        with place.root("empty") as root:
            seconds, _why = _apache_seconds(place, root, 0)
    return {"ours_seconds": ours["process_seconds"], "apache_seconds": seconds}


def _apache_seconds(place: Place, root: Path, messages: object) -> tuple[float | None, str]:
    """Return how long Apache takes until it answers, or None and why that is not known."""
    if not place.with_apache:
        return None, "not asked for"
    problem = tools.problem("java")
    if problem is not None:
        return None, f"java: {problem}"
    try:
        apache.fetch(VERSION)
    except apache.NotFetched as error:
        return None, str(error)
    settings = place.properties(root, {"timerWheelEnable": "false"})
    with place.root("apache") as work:
        begun = time.perf_counter()
        with apache.broker(
            VERSION, work, settings, jvm=apache.AS_SHIPPED, wait_seconds=APACHE_SECONDS_MAX
        ) as broker:
            seconds = time.perf_counter() - begun
            with broker.client() as client:
                found = sum(client.max_offset(TOPIC, queue_id) for queue_id in range(QUEUES))
            broker.kill()
    if found != messages:
        raise RuntimeError(f"Apache serves {found} messages of {messages} from {root}")
    return round(seconds, 3), ""


def _copy(root: Path, copy: Path) -> None:
    """Copy a store, holes as holes, where `cp` can do that."""
    program = shutil.which("cp")
    if program is None:
        shutil.copytree(root, copy)
        return
    command = [program, "-a", "--sparse=always", str(root), str(copy)]
    if subprocess.run(command, check=False).returncode != 0:  # noqa: S603  (two paths of ours)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(root, copy)
