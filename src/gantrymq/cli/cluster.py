"""`gantrymq cluster demo`: a deployment on this machine, in processes of its own, then removed.

Every process is started like an operator's, with a settings file, on ports that are free, with its
data in a temporary directory. It is ended, and the directory removed, whatever happens.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.cli.arguments import FAILED, PROGRAM, SUCCESS, CommandParser

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from gantrymq.client.producer import Producer
    from gantrymq.node.cluster_listing import BrokerRow
    from gantrymq.node.free_ports import FreePorts

DESCRIPTION: Final = """\
gantrymq cluster demo --layout 2m-2s-sync
  start that deployment on this machine, show its brokers, send and read, and clean up"""
READY_S_MAX: Final = 60.0
STOP_S_MAX: Final = 10.0
MESSAGES: Final = 8
TOPIC: Final = "Demo"
PAUSE_S: Final = 0.05
"""Between two looks at whether everything can be read."""
SMALL: Final = {
    "mappedFileSizeCommitLog": str(16 << 20),
    "maxHashSlotNum": "10000",
    "maxIndexNum": "40000",
    "brokerIP1": "127.0.0.1",
    "bindAddress": "127.0.0.1",
}


def _parser() -> CommandParser:
    parser = CommandParser(prog=f"{PROGRAM} cluster", description=DESCRIPTION, allow_abbrev=False)
    parser.add_argument("what", choices=["demo"], help="what to do")
    parser.add_argument("--layout", default="2m-2s-sync", help="1m, 2m-noslave, 2m-2s-async, "
                        "2m-2s-sync, or failover (needs etcd at 127.0.0.1:2379)")  # fmt: skip
    parser.add_argument("--keep", action="store_true", help="go on until Ctrl-C")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run `gantrymq cluster`; return its exit status."""
    chosen = _parser().parse_args(arguments)
    from gantrymq.errors import GantryError  # noqa: PLC0415

    try:
        return _demo(chosen)
    except GantryError as error:
        sys.stderr.write(f"{PROGRAM} cluster: {error}\n")
        return FAILED
    except KeyboardInterrupt:
        return SUCCESS


def _demo(chosen: Namespace) -> int:
    from gantrymq.node.free_ports import FreePorts  # noqa: PLC0415
    from gantrymq.node.layouts import ABOUT, layout  # noqa: PLC0415

    brokers = layout(chosen.layout)
    _say(f"{chosen.layout}: {ABOUT[chosen.layout]}")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gantrymq-demo-")))
        ports = FreePorts()
        name_server = f"127.0.0.1:{_start_name_server(stack, folder, ports)}"
        for file, settings in brokers.items():
            port = ports.find_for_broker()
            _start_broker(stack, folder, file, settings, name_server, port)
        rows = asyncio.run(_wait_for_brokers(name_server, len(brokers)))
        _say(f"name server {name_server}")
        for row in rows:
            _say(f"  {row.name:12} id {row.broker_id}  {row.role:7} {row.address}")
        if len(rows) < len(brokers):
            _say(f"only {len(rows)} of {len(brokers)} brokers registered in {READY_S_MAX:g} s")
            return FAILED
        status = asyncio.run(_send_and_read(name_server))
        if chosen.keep:
            _say("running until Ctrl-C")
            _wait_for_ever()
    _say("stopped and removed")
    return status


def _start_name_server(stack: ExitStack, folder: Path, ports: FreePorts) -> int:
    port = ports.find()
    conf = folder / "namesrv.properties"
    conf.write_text(
        f"listenPort={port}\nbindAddress=127.0.0.1\nkvConfigPath={folder / 'kv.json'}\n"
    )
    _start(stack, "namesrv", conf)
    return port


def _start_broker(
    stack: ExitStack,
    folder: Path,
    file: str,
    settings: Mapping[str, str],
    name_server: str,
    port: int,
) -> None:
    own = {
        **settings,
        **SMALL,
        "namesrvAddr": name_server,
        "listenPort": str(port),
        "storePathRootDir": str(folder / file),
    }
    conf = folder / f"{file}.properties"
    conf.write_text("".join(f"{name}={value}\n" for name, value in own.items()))
    _start(stack, "broker", conf)


def _start(stack: ExitStack, role: str, conf: Path) -> None:
    with conf.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603  (this program itself)
            [sys.executable, "-m", "gantrymq", role, "-c", str(conf)], stdout=log, stderr=log
        )
    stack.callback(_stop, process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


async def _wait_for_brokers(name_server: str, count: int) -> list[BrokerRow]:
    from gantrymq.node.cluster_listing import list_brokers  # noqa: PLC0415

    rows: list[BrokerRow] = []
    deadline = asyncio.get_running_loop().time() + READY_S_MAX
    while len(rows) < count and asyncio.get_running_loop().time() < deadline:
        rows = await list_brokers(name_server)
        await asyncio.sleep(0.1)
    return rows


async def _send_and_read(name_server: str) -> int:
    from gantrymq.client.errors import NoRoute  # noqa: PLC0415
    from gantrymq.client.producer import Producer  # noqa: PLC0415
    from gantrymq.client.pull_consumer import PullConsumer  # noqa: PLC0415

    async with Producer(name_server, group="demo", timeout_s=10) as producer:
        await _until_slaves_follow(producer)
        for number in range(MESSAGES):
            sent = await producer.send(TOPIC, b"message %d" % number)
            _say(f"  sent {number}: {sent.status.name} on {sent.queue.broker_name}")
    found, deadline = 0, asyncio.get_running_loop().time() + READY_S_MAX
    while found < MESSAGES and asyncio.get_running_loop().time() < deadline:
        # A name server learns of the topic on each broker a moment after the first send to it.
        with suppress(NoRoute):
            async with PullConsumer(name_server, group="demo-readers") as consumer:
                pulls = [await consumer.pull(queue, 0) for queue in await consumer.queues(TOPIC)]
            found = sum(len(pulled.messages) for pulled in pulls)
        await asyncio.sleep(PAUSE_S)
    _say(f"  read {found} of {MESSAGES}")
    return SUCCESS if found >= MESSAGES else FAILED


async def _until_slaves_follow(producer: Producer) -> None:
    """Send to another topic until sends are as safe as the layout promises, or time is up."""
    deadline = asyncio.get_running_loop().time() + READY_S_MAX
    while asyncio.get_running_loop().time() < deadline:
        sent = [await producer.send("Warm-up", b"is a slave there?") for _ in range(MESSAGES)]
        if all(one.is_ok for one in sent):
            return
        await asyncio.sleep(0.2)


def _wait_for_ever() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    asyncio.run(wait())


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
