"""Servers that die under load: clients go on by themselves, and lose nothing acknowledged.

Short here; GANTRYMQ_LONG_FAULTS=1 makes it minutes.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gantrymq.client.errors import NoRoute, NoRouteCause
from gantrymq.client.producer import Producer
from support.consuming import until
from support.fault_world import IS_LONG, Program, Traffic, broker, name_server, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


ROOT = Path(__file__).parents[2]
MEMBER = str(ROOT / "tests" / "support" / "member_process.py")
SOURCES = str(ROOT / "src")
KILLS = 20 if IS_LONG else 2


@pytest.fixture
def start() -> Iterator[Callable[[Program], Program]]:
    """Return what starts a server; all of them are killed when the test has ended."""
    running: list[Program] = []

    def start_one(program: Program) -> Program:
        running.append(program)
        program.start()
        return program

    yield start_one
    for program in running:
        program.kill()


def test_kill_9_of_the_broker_under_load(
    tmp_path: Path, start: Callable[[Program], Program]
) -> None:
    names = start(name_server(tmp_path))
    killed = start(broker(tmp_path, names))
    traffic = Traffic(names.address, "Killed", "killed_group", senders=64)

    async def main() -> None:
        async with traffic.flowing():
            for _ in range(KILLS):
                await asyncio.sleep(0.5)
                killed.kill()
                await asyncio.sleep(0.3)
                await asyncio.to_thread(killed.start)
                await traffic.resumes()

    run(main())
    traffic.check()
    assert traffic.failed, "no send was under way when the broker was killed"


def test_a_broker_that_is_frozen_and_goes_on(
    tmp_path: Path, start: Callable[[Program], Program]
) -> None:
    names = start(name_server(tmp_path))
    frozen = start(broker(tmp_path, names))
    traffic = Traffic(names.address, "Frozen", "frozen_group")

    async def main() -> None:
        async with traffic.flowing():
            frozen.freeze()
            # Longer than the time limit of a send.
            await until(lambda: traffic.failed)
            frozen.thaw()
            await traffic.resumes()

    run(main())
    traffic.check()


def test_kill_9_of_one_of_two_name_servers_then_of_both(
    tmp_path: Path, start: Callable[[Program], Program]
) -> None:
    first, second = start(name_server(tmp_path)), start(name_server(tmp_path))
    start(broker(tmp_path, first, second))
    both = f"{first.address};{second.address}"
    traffic = Traffic(both, "Names", "names_group")

    async def new_client_sends(topic: str) -> None:
        async with Producer(both, "latecomers") as producer:
            await producer.send(topic, b"x", timeout_s=10.0)

    async def main() -> None:
        async with traffic.flowing():
            first.kill()
            await traffic.resumes()
            for _ in range(4):  # each asks one of both first, at random
                await new_client_sends("Latecomers")
            second.kill()
            # Routes that are known stay known: at least two refreshes fail.
            await asyncio.sleep(2.5)
            await traffic.resumes()
            async with Producer(both, "latecomers") as producer:
                with pytest.raises(NoRoute) as refused:
                    await producer.send("Names", b"x")
            assert refused.value.cause is NoRouteCause.NO_NAME_SERVER
            assert refused.value.retriable
            for program in (first, second):
                await asyncio.to_thread(program.start)
            # They know nothing until the broker registers again, which it does every ten seconds.
            async with asyncio.timeout(25):
                while True:
                    try:
                        await new_client_sends("Latecomers")
                    except NoRoute:
                        await asyncio.sleep(0.2)
                    else:
                        break
            await traffic.resumes()

    run(main())
    assert "NoRoute" not in traffic.failed, "a producer with routes needs no name server"
    traffic.check()


def test_kill_9_of_a_member_under_load(tmp_path: Path, start: Callable[[Program], Program]) -> None:
    names = start(name_server(tmp_path))
    start(broker(tmp_path, names))
    traffic = Traffic(names.address, "Members", "members_group")

    async def main() -> int:
        handled = 0
        async with traffic.flowing():
            for _ in range(KILLS):
                member = await asyncio.create_subprocess_exec(
                    sys.executable, MEMBER, names.address, "members_group", "Members",
                    stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": SOURCES},
                )  # fmt: skip
                assert member.stdout is not None
                try:
                    # It has queues of its own, and offsets of them were committed.
                    for _ in range(200):
                        line = await asyncio.wait_for(member.stdout.readline(), 20)
                        traffic.delivered[line.strip()] += 1
                finally:
                    member.kill()
                said = await member.stdout.read()
                # A line that is not whole was not handled.
                traffic.delivered.update(said.split(b"\n")[:-1])
                await member.wait()
                handled += 200
                await traffic.resumes()
        return handled

    assert run(main()) == 200 * KILLS
    traffic.check()
