"""From arguments to what was measured: a loop of its own, the brokers found, the load brought."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gantrymq.client.load import LoadFailed, Measured, find_brokers, make_topic
from gantrymq.client.load_latency import LatencyLoad, LatencyPlan
from gantrymq.client.load_pull import PullLoad, PullPlan
from gantrymq.client.load_send import IN_FLIGHT_BYTES_MAX, SendLoad, SendPlan
from gantrymq.clock import SystemClock
from gantrymq.transport.loop import run
from gantrymq.transport.requester import Connections

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from gantrymq.client.load import Progress


class Ran(NamedTuple):
    """A load that was brought: where, and what was measured, by name."""

    brokers: tuple[str, ...]
    measured: dict[str, Measured]


def run_send(
    address: str,
    progress: Progress,
    *,
    topic: str,
    queues: int,
    connections: int,
    window: int,
    body_bytes: int,
    batch: int,
    seconds: float,
) -> Ran:
    """Send to all masters.

    Raises:
        GantryError: the load cannot be brought; see `LoadFailed`.
    """
    plan = SendPlan(
        topic=topic, queues=queues, connections=connections, window=window,
        body_bytes=body_bytes, batch=batch, seconds=seconds,
    )  # fmt: skip
    if plan.in_flight_bytes > IN_FLIGHT_BYTES_MAX:
        raise LoadFailed(
            f"{plan.in_flight_bytes >> 20} MiB would be in flight, at most "
            f"{IN_FLIGHT_BYTES_MAX >> 20} can be: fewer connections, requests or bytes"
        )
    load = SendLoad(plan, SystemClock())

    async def bring(brokers: Sequence[str]) -> dict[str, Measured]:
        return {"sends": await load.run(brokers, progress)}

    return run(_ran(address, bring, topic, queues))


def run_pull(
    address: str, progress: Progress, *, topic: str, queues: int, count: int, seconds: float
) -> Ran:
    """Read a topic from all masters.

    Raises:
        GantryError: the load cannot be brought; see `LoadFailed`.
    """
    load = PullLoad(
        PullPlan(topic=topic, queues=queues, count=count, seconds=seconds), SystemClock()
    )

    async def bring(brokers: Sequence[str]) -> dict[str, Measured]:
        return {"pulls": await load.run(brokers, progress)}

    return run(_ran(address, bring))


def run_latency(
    address: str, progress: Progress, *, topic: str, body_bytes: int, seconds: float
) -> Ran:
    """Deliver single messages through the first master.

    Raises:
        GantryError: the load cannot be brought; see `LoadFailed`.
    """
    plan = LatencyPlan(topic=topic, body_bytes=body_bytes, seconds=seconds)
    load = LatencyLoad(plan, SystemClock())

    async def bring(brokers: Sequence[str]) -> dict[str, Measured]:
        found = await load.run(brokers[0], progress)
        return {"sends": found.sends, "deliveries": found.deliveries}

    return run(_ran(address, bring, topic, 8, only_first=True))


async def _ran(
    address: str,
    bring: Callable[[Sequence[str]], Coroutine[Any, Any, dict[str, Measured]]],
    topic: str | None = None,
    queues: int = 8,
    *,
    only_first: bool = False,
) -> Ran:
    """Find the brokers, make the topic if there is one to be made, bring the load."""
    connections = Connections()
    try:
        brokers = await find_brokers(connections, address)
        if only_first:
            brokers = brokers[:1]
        if topic is not None:
            for broker in brokers:
                await make_topic(connections, broker, topic, queues)
    finally:
        await connections.close()
    return Ran(tuple(brokers), await bring(brokers))
