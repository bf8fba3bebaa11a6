"""Both brokers recover copies of one store that was written by ours and killed.

What is timed is what an operator waits for: from the start of the process to the first accepted
send. The copies are in the cache. Every message that was acknowledged must be there afterwards.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from bench.compare.brokers import OURS, NotMeasured, started
from bench.compare.cases import Settings, fill
from bench.compare.load import QUEUES, Generator
from bench.store.place import read_through

from support.remoting import RemotingClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bench.compare.rows import Figures

LOG_BYTES: Final = 1 << 30
LOG_BYTES_MIN: Final = 8 << 20
BODY_BYTES: Final = 1024
RECORD_BYTES: Final = 1230
"""A message of that body in the log, about."""
TOPIC: Final = "Recovered"
COPY_SECONDS_MAX: Final = 600


class KilledStore:
    """A store that nobody closed, and how many messages its writer was told are safe."""

    def __init__(self, root: Path, messages: int) -> None:
        self.root = root
        self.messages = messages


@contextmanager
def killed_store(settings: Settings) -> Iterator[KilledStore]:
    """Write a store through our broker and kill that."""
    with settings.folder("killed") as work:
        root = work / "store"
        messages = settings.amount(LOG_BYTES, LOG_BYTES_MIN) // RECORD_BYTES
        with started(OURS, work, settings.store(root)) as broker:
            generator = Generator(settings.program, broker.process.port)
            sent = fill(generator, TOPIC, messages, BODY_BYTES, settings)
            broker.process.kill()
        yield KilledStore(root, sent)


def recovery(settings: Settings, maker: str, killed: KilledStore) -> Figures:
    """Start a broker on copies of the store.

    Raises:
        NotMeasured: it lost messages, or does not start.
    """
    times = []
    for _ in range(settings.repetitions):
        with settings.folder("copy") as work:
            root = work / "store"
            _copy(killed.root, root)
            read_through(root)
            with started(maker, work, settings.store(root)) as broker:
                times.append(broker.seconds)
                with RemotingClient("127.0.0.1", broker.process.port) as client:
                    found = sum(client.max_offset(TOPIC, number) for number in range(QUEUES))
                broker.process.kill()
            if found < killed.messages:
                raise NotMeasured(f"{found} of {killed.messages} acknowledged messages are left")
    return {"recovery": statistics.median(times)}


def _copy(root: Path, copy: Path) -> None:
    """Copy a store, holes as holes, where `cp` can do that."""
    program = shutil.which("cp")
    if program is not None:
        command = [program, "-a", "--sparse=always", str(root), str(copy)]
        if subprocess.run(command, check=False, timeout=COPY_SECONDS_MAX).returncode == 0:  # noqa: S603
            return
        shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(root, copy)
