"""Load for a broker of any make: what its parts share.

Finds the brokers behind an address, makes sure of the topic, and keeps what was measured. The loads
themselves are `load_send`, `load_pull` and `load_latency`. One event loop owns all of it; nothing
here knows of a terminal.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from gantrymq.errors import ContentError, GantryError
from gantrymq.wire.bodies.route import CLUSTER_INFO
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.headers.send import SendMessageV2Request
from gantrymq.wire.peer import PeerGone, PeerLate

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.transport.requester import Connections

Progress: TypeAlias = "Callable[[float, int], None]"
"""Told seconds and messages so far, a few times a second."""

ASK_S: Final = 10.0
PROGRESS_S: Final = 0.25
TIMES_MAX: Final = 10_000_000
"""Latencies that are kept; those behind are counted as messages only. 40 MB."""
GROUP: Final = "gantrymq_bench"
TEMPLATE_TOPIC: Final = "TBW102"


class LoadFailed(GantryError):
    """The load could not be brought; the text says why and what to do."""


@dataclass
class Measured:
    """What came of a load."""

    messages: int = 0
    requests: int = 0
    body_bytes: int = 0
    seconds: float = 0.0
    refused: int = 0
    first_refusal: str = ""
    times_us: array[int] = field(default_factory=lambda: array("I"))

    def note(self, seconds: float) -> None:
        """Keep how long an answer took."""
        if len(self.times_us) < TIMES_MAX:
            self.times_us.append(min(int(seconds * 1_000_000), 0xFFFFFFFF))

    def refuse(self, code: int, remark: str | None) -> None:
        """Count a request that was answered with another code than it should."""
        self.refused += 1
        if not self.first_refusal:
            self.first_refusal = f"code {code}: {remark or 'no reason was given'}"

    @property
    def per_second(self) -> float:
        """Return messages by second."""
        return self.messages / self.seconds if self.seconds else 0.0

    def percentiles_us(self) -> dict[str, int]:
        """Return what half, 99 % and 99.9 % of the answers did not exceed, and the slowest."""
        ordered = sorted(self.times_us)
        if not ordered:
            return {}
        last = len(ordered) - 1
        parts = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
        found = {name: ordered[min(int(part * len(ordered)), last)] for name, part in parts.items()}
        return {**found, "max": ordered[last]}


async def find_brokers(connections: Connections, address: str) -> list[str]:
    """Return the brokers to work on: the masters that a name server knows, or the broker itself.

    Raises:
        LoadFailed: nobody answers there, or the name server knows no master.
        InvalidValue: the address is none.
    """
    request = Command.request(RequestCode.GET_BROKER_CLUSTER_INFO, 0)
    reply = await asked(connections, address, request)
    if reply.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
        return [address]  # a broker
    if reply.code != ResponseCode.SUCCESS:
        raise LoadFailed(f"{address} answered {reply.code}: {reply.remark}")
    try:
        groups = CLUSTER_INFO.decode(reply.body).broker_addr_table.values()
    except ContentError as error:
        raise LoadFailed(f"{address} says something else than a name server: {error}") from None
    masters = sorted(group.master for group in groups if group.master is not None)
    if not masters:
        raise LoadFailed(f"the name server {address} knows no broker: start one, or wait a moment")
    return masters


async def asked(connections: Connections, address: str, request: Command) -> Command:
    """Return the answer to a request.

    Raises:
        LoadFailed: nobody answers.
        InvalidValue: the address is none.
    """
    try:
        return await connections.ask(address, request, ASK_S)
    except (PeerGone, PeerLate) as error:
        raise LoadFailed(f"{error}: is a broker or name server running there?") from None


async def make_topic(connections: Connections, broker: str, topic: str, queues: int) -> None:
    """Send one message, so that the topic is there.

    Raises:
        LoadFailed: the broker does not take it.
    """
    header = send_header(topic, queues, 0, "WAIT\x01true", connections.table.clock.now_ms())
    request = Command.request(RequestCode.SEND_MESSAGE_V2, 0, header.encode(), b"x")
    reply = await asked(connections, broker, request)
    if reply.code != ResponseCode.SUCCESS:
        raise LoadFailed(
            f"{broker} does not take a message for topic {topic!r}: code {reply.code}, "
            f"{reply.remark}; make the topic there first, or choose another with --topic"
        )


def send_header(
    topic: str, queues: int, queue_id: int, properties: str, born_ms: int, *, batch: bool = False
) -> SendMessageV2Request:
    """Return the header of a send."""
    return SendMessageV2Request(
        producer_group=GROUP,
        topic=topic,
        default_topic=TEMPLATE_TOPIC,
        default_topic_queue_nums=queues,
        queue_id=queue_id,
        sys_flag=0,
        born_timestamp=born_ms,
        flag=0,
        properties=properties,
        reconsume_times=0,
        unit_mode=False,
        max_reconsume_times=0,
        batch=batch,
    )
