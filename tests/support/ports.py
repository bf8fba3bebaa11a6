"""Free ports for servers that are restarted, or started by others.

They lie below those that the system gives to outgoing connections, which could take one while its
server is down.
"""

from __future__ import annotations

import random
import socket

PORTS = range(15_000, 32_000)
TRIES_MAX = 1000


def free_port(*, beside: tuple[int, ...] = ()) -> int:
    """Return a port that nobody listens at, nor at those so many further on."""
    for _ in range(TRIES_MAX):
        port = random.SystemRandom().choice(PORTS)
        try:
            for step in (0, *beside):
                socket.create_server(("127.0.0.1", port + step)).close()
        except OSError:
            continue
        return port
    raise OSError(f"no free port in {TRIES_MAX} tries")


def free_broker_port() -> int:
    """Return a port whose neighbours that a broker takes too (-2 and +1) are free."""
    return free_port(beside=(-2, 1))
