"""A standalone Spark cluster on this machine: a master, a worker, executors of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyspark

from gantrymq.spark.launch.session import prepare_environment

if TYPE_CHECKING:
    from types import TracebackType

STARTED_S = 90.0


class StandaloneCluster:
    """A master and one worker with two cores; executors are started for each application."""

    def __init__(self, folder: Path, *, cores: int = 2, memory: str = "1g") -> None:
        self._folder = folder
        self._cores = cores
        self._memory = memory
        self._running: list[subprocess.Popen[bytes]] = []
        self.master = ""

    def __enter__(self) -> Self:
        """Start both; return when the worker has registered."""
        try:
            log = self._start("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1",
                              "--port", "0", "--webui-port", "0")  # fmt: skip
            self.master = self._wait(log, r"Starting Spark master at (spark://\S+)")
            worker = self._start(
                "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--port", "0",
                "--webui-port", "0", "--cores", str(self._cores), "--memory", self._memory,
                "--work-dir", str(self._folder / "work"), self.master,
            )  # fmt: skip
            self._wait(worker, r"(Successfully registered with master)")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop both."""
        self.stop()

    def _start(self, name: str, *arguments: str) -> Path:
        environment = dict(os.environ)
        prepare_environment(environment)
        home = Path(pyspark.__file__).parent
        environment |= {
            "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable,
        }  # fmt: skip
        log = self._folder / f"{name.rpartition('.')[2]}.log"
        command = [str(home / "bin" / "spark-class"), name, *arguments]
        with log.open("wb") as file:
            self._running.append(
                subprocess.Popen(command, stdout=file, stderr=file, env=environment)
            )
        return log

    @staticmethod
    def _wait(log: Path, pattern: str) -> str:
        give_up = time.monotonic() + STARTED_S
        while time.monotonic() < give_up:
            if found := re.search(pattern, log.read_text(errors="replace")):
                return found[1]
            time.sleep(0.1)
        raise TimeoutError(f"{log}: {log.read_text(errors='replace')[-1000:]}")

    def stop(self) -> None:
        """End the processes."""
        for process in reversed(self._running):
            process.terminate()
        for process in self._running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            if process.poll() is None:
                process.kill()
        self._running.clear()
