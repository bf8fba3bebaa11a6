"""Several broker groups on one machine, one process each: the system's own way to use more cores.

Each shard is a broker of its own, with its own name, port and store; name servers and clients see
as many brokers. The parent starts them, passes signals on, and ends when they have ended. A shard
that ends by itself takes the others with it: whoever watches the parent must learn of it.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.node.broker_node import completed
from gantrymq.node.config import settings_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gantrymq.node.config import BrokerConfig

PORT_STEP: Final = 10
"""Between two shards; each uses its port, the one above and the one two below."""


def shard_properties(
    found: BrokerConfig, properties: Mapping[str, str], number: int
) -> dict[str, str]:
    """Return the settings of one shard: name, port and directory of its own."""
    settings = completed(found.broker)
    shard = dict(properties)
    for name in ("storePathCommitLog", "storePathConsumeQueue", "storePathIndex"):
        shard.pop(name, None)
    shard["brokerName"] = f"{settings.name}-{number}"
    shard["listenPort"] = str(settings.port + number * PORT_STEP)
    shard["storePathRootDir"] = str(found.store.paths.root.absolute() / f"shard-{number}")
    return shard


def run_shards(
    found: BrokerConfig, properties: Mapping[str, str], count: int, say: Callable[[str], None]
) -> int:
    """Run so many brokers until a signal, or until one of them ends; return the exit status."""
    with tempfile.TemporaryDirectory(prefix="gantrymq-shards-") as folder:
        files = []
        for number in range(count):
            path = Path(folder) / f"shard-{number}.conf"
            path.write_text(
                settings_text(shard_properties(found, properties, number)), encoding="utf-8"
            )
            files.append(path)
        return asyncio.run(_life(files, say))


async def _life(files: list[Path], say: Callable[[str], None]) -> int:
    loop = asyncio.get_running_loop()
    children = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gantrymq", "broker", "-c", str(path)
        )
        for path in files
    ]

    def stop() -> None:
        for child in children:
            if child.returncode is None:
                child.terminate()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    say(f"{len(children)} shards, processes {', '.join(str(child.pid) for child in children)}")
    waits = [asyncio.create_task(child.wait()) for child in children]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    stop()
    statuses = await asyncio.gather(*waits)
    return 0 if all(status == 0 for status in statuses) else 1
