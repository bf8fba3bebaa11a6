"""Appending: one core, everything a broker's store does with a send but the network."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from bench.micro.run import pin_to_one_core
from bench.store.place import QUEUES, TOPIC, OpenStore, Result, buffers_of, percentile

if TYPE_CHECKING:
    from bench.store.place import Place

MESSAGES: Final = 4_000_000
PER_BUFFER: Final = 512
BUFFERS: Final = 100
BODY: Final = b"x" * 128
BAR: Final = 400_000


def append(place: Place) -> Result:
    """Append sends of 128 bytes with dispatch to queues and index; threads share the core."""
    buffers = buffers_of(place.amount(BUFFERS, 2), PER_BUFFER, BODY)
    wanted = place.amount(MESSAGES, len(buffers) * PER_BUFFER)
    core = pin_to_one_core()
    with place.root("append") as root:
        opened = OpenStore(place.properties(root))
        opened.store.open_topic(TOPIC, QUEUES)
        for buffer in buffers:  # the first file is made and the code is warm
            opened.append(buffer)
        rounds: list[int] = []
        done, begun = 0, time.perf_counter_ns()
        while done < wanted:
            for buffer in buffers:
                before = time.perf_counter_ns()
                done += opened.append(buffer)
                rounds.append(time.perf_counter_ns() - before)
                opened.breathe()
        seconds = (time.perf_counter_ns() - begun) / 1e9
        opened.close()
    rounds.sort()
    rate = round(done / seconds)
    return {
        "core": core,
        "messages": done,
        "body_bytes": len(BODY),
        "seconds": round(seconds, 3),
        "messages_per_second": rate,
        "median_ns_per_message": round(percentile(rounds, 0.5) / PER_BUFFER, 1),
        "bar_messages_per_second": BAR,
        "reached": rate >= BAR,
    }
