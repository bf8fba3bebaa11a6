"""What a connection may take of this process: the bounds of the transport, as one value."""

from __future__ import annotations

from dataclasses import dataclass, fields

from gantrymq.errors import InvalidValue

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class TransportSettings:
    """Bounds for the connections of one server, or of one client.

    Times are in seconds, sizes in bytes. All must be positive, but where 0 is said to be none.
    """

    idle_s: float = 120.0
    """A connection without reads and writes for this long is closed, as Apache does."""
    write_timeout_s: float = 30.0
    """A peer that takes none of the bytes waiting for it, for this long, is closed. Also how long
    a connection may wait for memory in the middle of a frame."""
    handshake_s: float = 10.0
    """A TLS handshake takes no longer."""
    sweep_s: float = 1.0
    """How often connections are looked at for the two times above."""
    write_high_bytes: int = MIB
    """Above this many unsent bytes a connection is not read, and takes no requests of ours."""
    write_low_bytes: int = 256 * KIB
    """At or below this many it is read again."""
    unsent_bytes_max: int = 64 * MIB
    """Of one connection; past it the answers that carry data become SYSTEM_BUSY."""
    buffered_bytes_max: int = 512 * MIB
    """Of all connections together, unfinished frames and unsent bytes. Past it no unfinished frame
    grows, answers that carry data become SYSTEM_BUSY for peers that do not keep up, and the worst
    of those that take nothing are closed."""
    unanswered_max: int = 8192
    """Requests of one connection whose answers are not there yet; then it is not read."""
    asks_max: int = 65536
    """Requests of ours on one connection that wait for the peer's answer."""
    connections_max: int = 20_000
    """Sockets of a server, those that have not said anything yet included."""
    address_connections_max: int = 0
    """Of those, how many may be of one address; 0 is any number."""
    backlog: int = 1024
    """Connections that wait to be accepted; the system may have a lower bound of its own."""
    receive_bytes: int = 512 * KIB
    """The receive buffer that all connections share: what one read can take."""

    def __post_init__(self) -> None:
        """Refuse bounds that are none; all problems are named at once."""
        problems = [
            f"{field.name} is {getattr(self, field.name)!r}: give a number above 0"
            for field in fields(self)
            if field.name != "address_connections_max" and not getattr(self, field.name) > 0
        ]
        if self.address_connections_max < 0:
            problems.append(
                f"address_connections_max is {self.address_connections_max}: give 0 for any number"
            )
        if self.write_low_bytes > self.write_high_bytes:
            problems.append(
                f"write_low_bytes {self.write_low_bytes} is above"
                f" write_high_bytes {self.write_high_bytes}"
            )
        if problems:
            raise InvalidValue("; ".join(problems))
