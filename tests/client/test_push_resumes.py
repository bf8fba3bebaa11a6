"""Servers that are killed and come back, connections that are cut: reading goes on by itself."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from gantrymq.client.errors import NoRoute, NoRouteCause
from gantrymq.client.push_consumer import PushConsumer
from support import gantry, ports
from support.consuming import numbered, send, until
from support.targets import Target

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gantrymq.client.received import ReceivedMessage
    from support.transport import Run


class Killable:
    """Our own name server and broker in one process that is ended as a crash does."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self.port, self.namesrv_port = ports.free_broker_port(), ports.free_port()
        self._process: subprocess.Popen[bytes] | None = None
        config = work / "broker.conf"
        config.write_text(
            "mappedFileSizeCommitLog=16777216\nbrokerIP1=127.0.0.1\nbindAddress=127.0.0.1\n"
            "maxHashSlotNum=10000\nmaxIndexNum=40000\n"
            "diskSpaceWarningLevelRatio=0.99\ndiskSpaceCleanForciblyRatio=0.99\n"
        )

    @property
    def target(self) -> Target:
        """Return it as other tests know theirs."""
        return Target("gantrymq", f"127.0.0.1:{self.namesrv_port}", f"127.0.0.1:{self.port}")

    def start(self) -> None:
        """Start it, on the same files and ports each time."""
        command = [
            sys.executable, "-m", "gantrymq", "server", "--data", str(self._work / "data"),
            "--namesrv-port", str(self.namesrv_port), "--port", str(self.port),
            "-c", str(self._work / "broker.conf"),
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(gantry.ROOT / "src")}
        with (self._work / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def killable(work: Path) -> Iterator[Killable]:
    """Run one for the time of a block."""
    made = Killable(work)
    made.start()
    try:
        yield made
    finally:
        made.kill()


def when_it_answers(target: Target, topic: str) -> None:
    """Make a topic on a server that may still be starting."""
    for _ in range(500):
        try:
            target.create_topic(topic)
        except OSError:
            time.sleep(0.02)
        else:
            return


@pytest.mark.parametrize("orderly", [False, True])
def test_a_server_that_is_killed_and_comes_back(tmp_path: Path, run: Run, *, orderly: bool) -> None:
    handled: Counter[bytes] = Counter()

    async def handler(message: ReceivedMessage) -> None:
        handled[message.body] += 1
        await asyncio.sleep(0.001)

    async def main(server: Killable) -> None:
        target = server.target
        await asyncio.to_thread(when_it_answers, target, "Kill")
        consumer = PushConsumer(target.namesrv, "Kill_group", start="first", orderly=orderly)
        consumer.subscribe("Kill", "*", handler)
        async with consumer:
            for number in range(2):
                bodies = numbered(200, f"round{number}-")
                await asyncio.to_thread(send, target, "Kill", bodies)
                await until(lambda number=number: len(handled) > 200 * number + 50)  # type: ignore[misc]
                server.kill()
                await asyncio.sleep(0.3)
                server.start()
                await asyncio.to_thread(when_it_answers, target, "Kill")
                await until(lambda number=number: len(handled) == 200 * (number + 1), 90)  # type: ignore[misc]

    with killable(tmp_path) as server:
        run(main(server))
    assert set(handled) == {*numbered(200, "round0-"), *numbered(200, "round1-")}


def test_connections_that_are_cut(target: Target, run: Run) -> None:
    topic, group = target.create_topic(target.name("cut")), target.name("cut_group")
    send(target, topic, numbered(2000))
    handled: Counter[bytes] = Counter()

    async def handler(message: ReceivedMessage) -> None:
        handled[message.body] += 1
        await asyncio.sleep(0.001)

    async def main() -> None:
        consumer = PushConsumer(target.namesrv, group, start="first", hold_messages=50)
        consumer.subscribe(topic, "*", handler)
        async with consumer:
            for number in range(8):
                await until(lambda number=number: len(handled) > 100 * number)  # type: ignore[misc]
                for connection in tuple(consumer._core.connections.table.connections.values()):
                    connection.abort("cut by a test")
            await until(lambda: len(handled) == 2000, 90)

    run(main())
    assert set(handled) == set(numbered(2000))


def test_no_name_server_is_said_at_the_start(run: Run) -> None:
    nowhere = f"127.0.0.1:{ports.free_port()}"

    async def main() -> None:
        consumer = PushConsumer(nowhere, "G")
        consumer.subscribe("T", "*", print)
        with pytest.raises(NoRoute, match=nowhere) as caught:
            await consumer.start()
        assert caught.value.cause is NoRouteCause.NO_NAME_SERVER

    run(main())
