"""Apache's admin tool in a JVM that stays: many commands in the time that one takes to start."""

from __future__ import annotations

import base64
import os
import shlex
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from support import apache, tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROBE: Final = apache.POM.with_name("AdminProbe.java")
_QUIET: Final = '<configuration><root level="OFF"/></configuration>'


class MqAdmin:
    """Runs commands."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log

    def run(self, *commands: str) -> list[str]:
        """Run commands side by side; return what each of them printed."""
        line = "|".join(
            " ".join(base64.b64encode(word.encode()).decode() for word in shlex.split(command))
            for command in commands
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().split()
        # A command whose options are wrong ends the JVM.
        assert len(answer) == len(commands), (commands, self._log.read_text(encoding="utf-8"))
        return [base64.b64decode(said[1:]).decode() for said in answer]

    def one(self, command: str) -> str:
        """Run one command."""
        (said,) = self.run(command)
        return said


@contextmanager
def mqadmin(version: str, work: Path, name_server: str) -> Iterator[MqAdmin]:
    """Have the tool of a release ready; its files go to `work`."""
    conf = work / "conf"
    conf.mkdir(parents=True)
    for name in ("logback_tools.xml", "rmq.tools.logback.xml"):
        (conf / name).write_text(_QUIET, encoding="utf-8")
    command = [
        tools.path("java"), *apache.QUICK_START, f"-Duser.home={work}",
        f"-Drocketmq.home.dir={work}", f"-Drocketmq.namesrv.addr={name_server}",
        f"-Drmq.logback.configurationFile={conf / 'rmq.tools.logback.xml'}",
        f"-Drocketmq.client.logRoot={work / 'logs'}",
        "-cp", apache.fetch(version), str(PROBE),
    ]  # fmt: skip
    environment = {**os.environ, "ROCKETMQ_HOME": str(work)}
    environment.pop("NAMESRV_ADDR", None)
    log = work / "mqadmin.log"
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            command, env=environment, cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=output, text=True, encoding="utf-8",
        )  # fmt: skip
    try:
        yield MqAdmin(process, log)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
