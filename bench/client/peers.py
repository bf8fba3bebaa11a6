"""The clients that are measured: how each is installed, started and told what to do.

What has to be fetched goes to `build/peers`, once for each clone. A client that cannot be had here
is left out, and the table says why.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.client import plans
from bench.client.plans import NotMeasured, Plan, Sample
from bench.installed import installed_environment

from support import apache, peers, tools

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAMS: Final = Path(__file__).parent / "programs"
INSTALL_S_MAX: Final = 300.0
GRPC: Final = "rocketmq-python-client==5.1.2"
JAVA_VERSION: Final = "5.5.0"


def run_ours(plan: Plan, work: Path) -> list[Sample]:
    """Run gantrymq's client."""
    command = [sys.executable, str(PROGRAMS / "our_client.py"), plan.json()]
    return plans.run(command, work, plan.seconds, installed_environment())


def run_cpp(plan: Plan, work: Path) -> list[Sample]:
    """Run the C++ client of the wheel `rocketmq` 0.4.4."""
    try:
        folder = peers.cpp()[-1]
    except peers.NotInstalled as error:
        raise NotMeasured(str(error)) from None
    command = [sys.executable, str(PROGRAMS / "cpp_client.py"), plan.json(), folder]
    return plans.run(command, work, plan.seconds, os.environ)


def run_grpc(plan: Plan, work: Path) -> list[Sample]:
    """Run `rocketmq-python-client`."""

    def install(folder: Path) -> None:
        _run(
            [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), GRPC],
        )

    folder = _installed("bench-grpc", GRPC.encode(), install)
    # It makes its log's folder under the home directory only if the one above is there.
    (work / "logs").mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(PROGRAMS / "grpc_client.py"), plan.json(), str(folder)]
    return plans.run(command, work, plan.seconds, os.environ)


def run_java(plan: Plan, work: Path) -> list[Sample]:
    """Run the Java client; `how` is its threads when it sends."""
    for name in ("java", "javac"):
        why = tools.problem(name)
        if why is not None:
            raise NotMeasured(f"{name}: {why}")
    try:
        class_path = apache.fetch(JAVA_VERSION)
    except apache.NotFetched as error:
        raise NotMeasured(str(error)) from None
    source = PROGRAMS / "Load.java"

    def install(folder: Path) -> None:
        _run(
            [tools.path("javac"), "-nowarn", "-d", str(folder), "-cp", class_path, str(source)],
        )

    folder = _installed("bench-java", source.read_bytes(), install)
    if plan.mode == "send":
        words = [plan.topic, plan.body_bytes, plan.how, plan.seconds]
    else:
        words = [plan.topic, plan.group, plan.messages, plan.seconds]
    command = [
        tools.path("java"), "-Xms1g", "-Xmx1g", f"-Duser.home={work}",
        "-cp", os.pathsep.join([str(folder), class_path]), "Load",
        plan.mode, plan.address, *(str(word) for word in words),
    ]  # fmt: skip
    return plans.run(command, work, plan.seconds, os.environ)


def _installed(name: str, facts: bytes, install: Callable[[Path], None]) -> Path:
    """Return the folder that `install` has filled, now or in an earlier run."""
    folder = peers.HOME / f"{name}-{hashlib.sha256(facts).hexdigest()[:12]}"
    if not folder.exists():
        unfinished = peers.HOME / f"{name}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        install(unfinished)
        unfinished.rename(folder)
    return folder


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, check=False, timeout=INSTALL_S_MAX
        )
    except subprocess.TimeoutExpired:
        raise NotMeasured(f"not installed after {INSTALL_S_MAX:g} s") from None
    if done.returncode != 0:
        raise NotMeasured(f"it cannot be installed: {(done.stdout + done.stderr)[-500:]}")
