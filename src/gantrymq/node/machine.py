"""What a process must know of the machine that it runs on."""

from __future__ import annotations

import os
import socket


def own_address() -> str:
    """Return the address that others on the network most likely reach this machine by.

    No packet is sent: connecting a datagram socket only asks the routing table.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def host_name() -> str:
    """Return the machine's name: the default of a broker's."""
    return socket.gethostname() or "gantrymq"


def memory_bytes() -> int:
    """Return how much memory the machine has; 0 where it cannot be asked."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0
