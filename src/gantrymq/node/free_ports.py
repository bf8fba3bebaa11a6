"""Ports that nobody listens at, for servers that are given none, for demonstrations and tests.

They lie below those that systems give to outgoing connections: one of those could come in between
the look and the listening.
"""

from __future__ import annotations

import errno
import random
import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from gantrymq.errors import GantryError

if TYPE_CHECKING:
    from collections.abc import Sequence

PORTS: Final = range(15_000, 32_000)
TRIES_MAX: Final = 1_000
VIP_PORT_STEP: Final = -2
"""From a broker's port to that of its VIP listener."""
HA_PORT_STEP: Final = 1
"""From a broker's port to the one for its slaves."""


class FreePorts:
    """Finds ports of one address, and gives none twice: a server takes its own some time later."""

    def __init__(self, bind_address: str = "127.0.0.1") -> None:
        self._address = bind_address
        self._given: set[int] = set()
        # Not the generator that tests seed: many of them would try the same ports in one order.
        self._random = random.SystemRandom()

    def find(self, beside: Sequence[int] = ()) -> int:
        """Return a port that is free, as are those so many further on.

        Raises:
            GantryError: there is none.
            OSError: the address is not of this machine.
        """
        for _ in range(TRIES_MAX):
            port = self._random.choice(PORTS)
            wanted = [port, *(port + step for step in beside)]
            if self._given.isdisjoint(wanted) and _are_free(self._address, wanted):
                self._given.update(wanted)
                return port
        raise GantryError(
            f"no {1 + len(beside)} free ports side by side between {PORTS[0]} and {PORTS[-1]}, "
            f"in {TRIES_MAX} tries; name one yourself",
        )

    def find_for_broker(self) -> int:
        """Return a port for a broker: those that it takes beside it are free as well.

        Raises:
            GantryError, OSError: as `find`.
        """
        return self.find((VIP_PORT_STEP, HA_PORT_STEP))


def _are_free(bind_address: str, ports: Sequence[int]) -> bool:
    """Tell whether all of them can be bound, at the same time."""
    family = socket.AF_INET6 if ":" in bind_address else socket.AF_INET
    with ExitStack() as stack:
        for port in ports:
            probe = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
            try:
                probe.bind((bind_address, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                return False
    return True
