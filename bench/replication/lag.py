"""How far a slave is behind: from a master's answer to the moment that a slave serves the message.

While a load of fixed rate goes to the master, a probe sends a message of its own every few
milliseconds and looks at the slave until it is there.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from bench.compare.brokers import NotMeasured, send_header
from bench.compare.load import Generator

from support.remoting import RemotingClient

if TYPE_CHECKING:
    from pathlib import Path

    from bench.replication.pairs import Pair

PROBE: Final = "Probe"
SEND: Final = 310
PAUSE_S: Final = 0.01
BATCH: Final = 8
SEEN_S_MAX: Final = 10.0


def slave_lag_ms(pair: Pair, program: Path, rate: int, seconds: float) -> tuple[list[float], float]:
    """Return lags in milliseconds, sorted, and the rate that the master really took."""
    taken: list[float] = []

    def load() -> None:
        generator = Generator(program, pair.master.port)
        done = generator.send("Load", 8, 64, 128, seconds, batch=BATCH, rate=rate / BATCH)
        taken.append(done.per_second)

    thread = threading.Thread(target=load)
    thread.start()
    try:
        lags = _probe(pair, time.monotonic() + seconds)
    finally:
        thread.join()
    if not taken:
        raise NotMeasured("the load did not run")
    return sorted(lags), taken[0]


def _probe(pair: Pair, deadline: float) -> list[float]:
    lags: list[float] = []
    with (
        RemotingClient("127.0.0.1", pair.master.port) as master,
        RemotingClient("127.0.0.1", pair.slave.port) as slave,
    ):
        while time.monotonic() < deadline:
            answer = master.ask(SEND, send_header(PROBE, 0), b"x")
            sent = time.perf_counter()
            offset = int(answer.fields["queueOffset"])
            while slave.max_offset(PROBE, 0) <= offset:
                if time.perf_counter() - sent > SEEN_S_MAX:
                    raise NotMeasured(f"the slave has no message after {SEEN_S_MAX:g} s")
            lags.append((time.perf_counter() - sent) * 1000)
            time.sleep(PAUSE_S)
    return lags
