"""`gantrymq dashboard` as a process of its own, and a cluster with something for its pages."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from gantrymq.admin import groups, topics
from gantrymq.admin.offsets import commit
from gantrymq.admin.sending import Copier, producer_for
from gantrymq.admin.session import Session
from gantrymq.client.outgoing import Outgoing
from gantrymq.client.push_consumer import PushConsumer
from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.model.topic import TopicConfig
from gantrymq.wire.properties import encode_properties
from support.gantry import ROOT, START_SECONDS_MAX, STOP_SECONDS_MAX, NotRunning, log_end

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from pathlib import Path

    from gantrymq.client.received import ReceivedMessage

Result = TypeVar("Result")

_READY: Final = re.compile(r"the dashboard is ready: (\S+)")
_PASSWORD: Final = re.compile(r"log in as (\S+) with the password (\S+)")
SCRIPT: Final = "<script>document.title='owned'</script><img src=x onerror=alert(1)>"
"""What must be shown as it is written."""


class RunningDashboard(NamedTuple):
    """A dashboard that answers."""

    url: str
    user: str
    password: str
    data: Path
    log: Path


@contextmanager
def dashboard(work: Path, name_server: str, *options: str) -> Iterator[RunningDashboard]:
    """Run `gantrymq dashboard` for a cluster to the end of the block.

    Raises:
        NotRunning: it did not start, or would not stop.
    """
    work.mkdir(parents=True, exist_ok=True)
    log, data = work / "dashboard.log", work / "dashboard"
    command = [
        sys.executable, "-m", "gantrymq", "dashboard", "-n", name_server, "--port", "0",
        "--data", str(data), *options,
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        text = _when_ready(process, log)
        ready, password = _READY.search(text), _PASSWORD.search(text)
        assert ready is not None
        user, word = (password[1], password[2]) if password else ("", "")
        yield RunningDashboard(ready[1], user, word, data, log)
        process.terminate()
        if process.wait(STOP_SECONDS_MAX) != 0:
            raise NotRunning(f"it stopped with {process.returncode}:\n{log_end(log)}")
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _when_ready(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        text = log.read_text(encoding="utf-8", errors="replace")
        if _READY.search(text) and text.endswith("\n"):
            return text
        if process.poll() is not None:
            raise NotRunning(f"it ended with {process.returncode}:\n{log_end(log)}")
        time.sleep(0.02)
    raise NotRunning(f"not ready after {START_SECONDS_MAX} s:\n{log_end(log)}")


def seed(name_server: str) -> None:
    """Have a cluster with something on every page: topics, messages, groups, dead letters."""
    apart(_seed(name_server))


def apart(work: Coroutine[object, object, Result]) -> Result:
    """Run a coroutine on a thread: a browser under test has a running loop on this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def _seed(name_server: str) -> None:
    async with Session(name_server) as session:
        (address,) = (await session.masters()).values()
        (broker,) = await session.masters()
        for name in ("Orders", "Payments", "%RETRY%billing", "%DLQ%billing"):
            queues = 1 if name.startswith("%") else 4
            made = TopicConfig(name=name, read_queues=queues, write_queues=queues)
            await topics.create_topic(session, address, made)
            await topics.wait_until_known(session, made, [address])
        await groups.create_group(session, address, SubscriptionGroup(name="billing"))
        async with producer_for(session) as producer:
            for number in range(40):
                body = b'{"order": %d, "city": "Lisbon"}' % number
                await producer.send(
                    "Orders", body, tags="new", keys=f"order-{number}",
                    queue=MessageQueue("Orders", broker, QueueId(number % 4)),
                )  # fmt: skip
            await producer.send(
                "Orders", SCRIPT.encode(), tags="<b>", keys="hostile",
                properties={"note": SCRIPT},
            )  # fmt: skip
            await producer.send("Orders", bytes(range(256)), keys="binary")
        for queue in range(4):
            place = MessageQueue("Orders", broker, QueueId(queue))
            await commit(session, address, "billing", place, 4 + queue)
        async with Copier(session) as copier:
            for number in range(3):
                told = {"UNIQ_KEY": f"letter{number}", "RETRY_TOPIC": "Orders", "TAGS": "new"}
                letter = Outgoing(
                    "%DLQ%billing", told["UNIQ_KEY"], encode_properties(told),
                    b"letter %d" % number,
                )  # fmt: skip
                sending = copier._sending
                await sending.send(letter, None, sending.deadline(10))


@contextmanager
def members(name_server: str, group: str, topic: str) -> Iterator[None]:
    """Have two members of a group that subscribe differently, in a thread, to the block's end."""
    ended = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(asyncio.run, _members(name_server, group, topic, ended))
        try:
            yield
        finally:
            ended.set()
            running.result(STOP_SECONDS_MAX)


async def _members(name_server: str, group: str, topic: str, ended: threading.Event) -> None:
    async def take(_message: ReceivedMessage) -> None:
        return None

    one = PushConsumer(name_server, group, start="first", trace=True, instance="one<b>1</b>")
    other = PushConsumer(name_server, group, start="first", trace=True, instance="two")
    one.subscribe(topic, "*", take)
    other.subscribe(topic, "other", take)
    async with one, other:
        await asyncio.to_thread(ended.wait)
