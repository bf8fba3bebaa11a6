"""Who a client is: its id among the members of its groups, its message ids, its process.

The id is `address@instance`, as Java clients have it, with the address that the first name server
would see. The address is found without sending anything: connecting a datagram socket only asks
the system which way it would take.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from typing import TYPE_CHECKING, Final

from gantrymq.client.errors import UsedAfterFork
from gantrymq.model.names import check_client_id
from gantrymq.transport.addresses import split_address
from gantrymq.wire.message_id import UniqueKeys

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gantrymq.clock import Clock

LOOPBACK: Final = "127.0.0.1"


async def local_address(name_servers: Iterable[str], timeout_s: float) -> str:
    """Return this machine's address on the way to the first name server that has a name.

    The loopback where there is no way to any of them: a client that cannot reach a name server
    fails later, with an error that says so.
    """
    loop = asyncio.get_running_loop()
    for name_server in name_servers:
        try:
            async with asyncio.timeout(timeout_s):
                found = await loop.getaddrinfo(
                    *split_address(name_server), type=socket.SOCK_DGRAM, family=socket.AF_UNSPEC
                )
        except (OSError, TimeoutError, UnicodeError):  # the last: a name that no DNS can have
            continue
        for family, kind, protocol, _name, target in found:
            try:
                with socket.socket(family, kind, protocol) as way:
                    way.connect(target)
                    return str(way.getsockname()[0]).partition("%")[0]
            except OSError:
                continue
    return LOOPBACK


class _Process:
    """This process, as far as it differs from the one that it was forked from."""

    forks = 0
    """How many forks lie between it and the first process that had this module."""

    @classmethod
    def note_fork(cls) -> None:
        """Learn that this is a child."""
        cls.forks += 1


# Asking the system for the process id with every send would cost more than making its frame.
os.register_at_fork(after_in_child=_Process.note_fork)


class Identity:
    """The identity of one started client."""

    __slots__ = ("_forks", "address", "client_id", "keys", "pid")

    def __init__(self, address: str, instance: str | None, clock: Clock) -> None:
        """Make it up in the process that runs now.

        Raises:
            InvalidValue: the instance cannot be part of a client id.
        """
        self.pid = os.getpid()
        self._forks = _Process.forks
        self.address = address
        number = secrets.randbits(48)
        self.client_id = check_client_id(f"{address}@{instance or f'{self.pid}#{number}'}")
        self.keys = UniqueKeys(address, self.pid, number, clock)

    def check_process(self) -> None:
        """Refuse to work in a child of the process that started the client.

        Raises:
            UsedAfterFork: this is another process.
        """
        if _Process.forks != self._forks:
            raise UsedAfterFork(self.pid, os.getpid())
