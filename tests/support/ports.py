"""Free ports for servers that are restarted, or started by others."""

from __future__ import annotations

from gantrymq.node.free_ports import FreePorts


def free_port(*, beside: tuple[int, ...] = ()) -> int:
    """Return a port that nobody listens at, nor at those so many further on."""
    return FreePorts().find(beside)


def free_broker_port() -> int:
    """Return a port whose neighbours that a broker takes too are free."""
    return FreePorts().find_for_broker()
