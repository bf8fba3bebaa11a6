"""Which brokers a name server knows, as rows for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gantrymq.errors import GantryError
from gantrymq.transport.requester import Connections
from gantrymq.wire.bodies.route import CLUSTER_INFO
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable


class BrokerRow(NamedTuple):
    """One broker."""

    name: str
    broker_id: int
    address: str

    @property
    def role(self) -> str:
        """Return what it is to its group."""
        return "slave" if self.broker_id else "master"


async def list_brokers(
    name_server: str,
    timeout_s: float = 3.0,
    sign: Callable[[Command], Command] | None = None,
    tls: ssl.SSLContext | None = None,
) -> list[BrokerRow]:
    """Return all brokers, by name and id; none if the name server does not answer."""
    connections = Connections(tls=tls, sign=sign)
    try:
        request = Command.request(RequestCode.GET_BROKER_CLUSTER_INFO, 0)
        answer = await connections.ask(name_server, request, timeout_s)
        if answer.code != ResponseCode.SUCCESS:
            return []
        table = CLUSTER_INFO.decode(answer.body).broker_addr_table
    except GantryError:
        return []
    finally:
        await connections.close()
    return sorted(
        BrokerRow(name, broker_id, address)
        for name, broker in table.items()
        for broker_id, address in broker.addresses.items()
    )
