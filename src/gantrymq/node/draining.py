"""Draining a running broker from outside: asked for, and waited for until it may be stopped.

* In a group with failover another member becomes master. What clients still send to the old one is
  passed on; it is drained when nothing had to be for a while.
* Any other master tells name servers that it takes no sends, and takes those that come all the
  same: clients look every 30 s. It is drained when none has come for a while.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from gantrymq.errors import GantryError
from gantrymq.node.cluster_listing import list_brokers
from gantrymq.transport.requester import Connections
from gantrymq.wire.bodies.replication import HA_STATUS
from gantrymq.wire.bodies.route import KV_TABLE
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    Sign = Callable[[Command], Command]
    """Makes a request prove who sends it."""

LOOK_S: Final = 0.5
QUIET_S: Final = 2.0
ANSWER_S_MAX: Final = 5.0


class NotDrained(GantryError):
    """It cannot be done; the text says why, and what to do."""


async def undrain(
    address: str, sign: Sign | None = None, tls: ssl.SSLContext | None = None
) -> None:
    """Let a broker take part again.

    Raises:
        GantryError: it does not answer, or refuses.
    """
    connections = Connections(tls=tls, sign=sign)
    try:
        await _set_draining(connections, address, draining=False)
    finally:
        await connections.close()


async def drain(
    address: str,
    seconds: float,
    *,
    alone: bool,
    sign: Sign | None = None,
    tls: ssl.SSLContext | None = None,
) -> None:
    """Drain a broker and wait for that; with `alone` even the only one there is.

    Raises:
        GantryError: it does not answer, refuses, or is still in use when the time is over.
    """
    connections = Connections(tls=tls, sign=sign)
    try:
        settings = await _settings(connections, address)
        has_failover = bool(settings.get("failoverEtcd"))
        if not alone:
            await _check_others(settings, sign, tls)
        await _set_draining(connections, address, draining=True)
        try:
            async with asyncio.timeout(seconds):
                if has_failover:
                    await _until_slave(connections, address)
                await _until_quiet(connections, address, has_failover=has_failover)
        except TimeoutError:
            raise NotDrained(
                f"{address} is still in use after {seconds:g} s; it stays draining: look who sends "
                "to it, wait, or undrain it"
            ) from None
    finally:
        await connections.close()


async def _check_others(
    settings: dict[str, str], sign: Sign | None, tls: ssl.SSLContext | None
) -> None:
    """Refuse to drain the only broker that could take sends."""
    name = settings.get("brokerName", "")
    for name_server in filter(None, settings.get("namesrvAddr", "").split(";")):
        rows = await list_brokers(name_server.strip(), sign=sign, tls=tls)
        if settings.get("failoverEtcd"):
            others = sum(row.name == name for row in rows) - 1
        else:
            others = sum(row.name != name and row.broker_id == 0 for row in rows)
        if others > 0:
            return
    raise NotDrained(
        "no other broker could take its sends; start one first, or give --alone if nobody sends"
    )


async def _ask(connections: Connections, address: str, code: int, body: bytes = b"") -> Command:
    answer = await connections.ask(address, Command.request(code, 0, body=body), ANSWER_S_MAX)
    if answer.code != ResponseCode.SUCCESS:
        raise NotDrained(f"{address} answers {answer.code}: {answer.remark}")
    return answer


async def _settings(connections: Connections, address: str) -> dict[str, str]:
    answer = await _ask(connections, address, RequestCode.GET_BROKER_CONFIG)
    pairs = (line.partition("=") for line in answer.body.decode().splitlines())
    found = {name: value for name, _, value in pairs}
    if "brokerDraining" not in found:
        raise NotDrained(f"{address} is not a gantrymq broker that can be drained")
    return found


async def _set_draining(connections: Connections, address: str, *, draining: bool) -> None:
    body = b"brokerDraining=true\n" if draining else b"brokerDraining=false\n"
    await _ask(connections, address, RequestCode.UPDATE_BROKER_CONFIG, body)


async def _until_slave(connections: Connections, address: str) -> None:
    """Wait until another member of the group is master."""
    while True:
        try:
            answer = await _ask(connections, address, RequestCode.GET_BROKER_HA_STATUS)
            if not HA_STATUS.decode(answer.body).master:
                return
        except GantryError:
            pass  # it is being opened as a slave
        await asyncio.sleep(LOOK_S)


async def _until_quiet(connections: Connections, address: str, *, has_failover: bool) -> None:
    """Wait until clients have found other brokers."""
    figure = "requestsForwardedTotal" if has_failover else "putMessageTimesTotal"
    seen, since = "", 0.0
    loop = asyncio.get_running_loop()
    while not seen or loop.time() - since < QUIET_S:
        try:
            answer = await _ask(connections, address, RequestCode.GET_BROKER_RUNTIME_INFO)
            now = KV_TABLE.decode(answer.body).table[figure]
        except GantryError:
            now = ""
        if now != seen:
            seen, since = now, loop.time()
        await asyncio.sleep(LOOK_S)
