"""A producer while its broker is killed and comes back: every acknowledged message is there."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from gantrymq.client.producer import Producer
from gantrymq.errors import GantryError
from support import ports
from support.targets import SETTINGS, Target

if TYPE_CHECKING:
    from pathlib import Path

    from support.transport import Run

TASKS = 20
TOPIC = "Killed"


class Killable:
    """Our own server on ports that stay, and in a directory that stays."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self.namesrv_port, self.port = ports.free_port(), ports.free_broker_port()
        self._process: subprocess.Popen[bytes] | None = None
        settings = {**SETTINGS, "brokerIP1": "127.0.0.1", "bindAddress": "127.0.0.1"}
        lines = [f"{name}={value}\n" for name, value in settings.items()]
        (work / "broker.conf").write_text("".join(lines), encoding="utf-8")

    def start(self) -> None:
        """Start it; it is not waited for."""
        command = [
            sys.executable, "-m", "gantrymq", "server", "--data", str(self._work / "data"),
            "--namesrv-port", str(self.namesrv_port), "--port", str(self.port),
            "-c", str(self._work / "broker.conf"),
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": "src"}
        with (self._work / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def kill(self) -> None:
        """End it as a power cut of the process does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None


def test_nothing_that_was_acknowledged_is_lost(run: Run, tmp_path: Path) -> None:
    server = Killable(tmp_path)
    target = Target("gantrymq", f"127.0.0.1:{server.namesrv_port}", f"127.0.0.1:{server.port}")
    acknowledged: set[str] = set()
    failures: list[GantryError] = []

    async def send_on(producer: Producer, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                result = await producer.send(TOPIC, b"x" * 200)
            except GantryError as error:
                failures.append(error)
                await asyncio.sleep(0.02)
            else:
                acknowledged.add(result.message_id)

    async def more_than(count: int) -> None:
        async with asyncio.timeout(20):
            while len(acknowledged) <= count:  # noqa: ASYNC110  (what a user would see)
                await asyncio.sleep(0.005)

    async def main() -> None:
        async with Producer(target.namesrv, timeout_s=2) as producer:
            stop = asyncio.Event()
            tasks = [asyncio.ensure_future(send_on(producer, stop)) for _ in range(TASKS)]
            for _ in range(2):
                await more_than(len(acknowledged) + 300)
                server.kill()
                failed = len(failures)
                while len(failures) == failed:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
                server.start()
            await more_than(len(acknowledged) + 300)
            stop.set()
            await asyncio.gather(*tasks)
        stored = await asyncio.to_thread(target.messages, TOPIC)
        assert acknowledged <= {each.unique_key for each in stored}
        assert len(acknowledged) >= 900
        assert all(error.retriable for error in failures)

    server.start()
    try:
        target.wait_for_route("TBW102")
        run(main())
    finally:
        server.kill()
