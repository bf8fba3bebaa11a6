"""A client's end of a connection: frames of one turn in one write, answers of one read in one go.

A producer with many sends under way makes a frame for each of them in the same turn of the loop,
and gets the answers many in one read. So frames wait until the turn ends and leave together, and
the plain answers at the front of a read are found by one call of the kernel; the first that is
anything else goes the general way.

A peer that does not read lets unsent bytes pile up. Who sends messages waits for `writable` first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.kernel import kernel
from gantrymq.limits import FRAME_BYTES_MAX
from gantrymq.transport.asks import SEND_OPAQUE_MIN, Asks
from gantrymq.transport.connection import Connection
from gantrymq.transport.sending import UNSENT
from gantrymq.wire.peer import PeerGone

if TYPE_CHECKING:
    import asyncio

    from gantrymq.kernel.interface import Buffer
    from gantrymq.kernel.values import SendAnswer
    from gantrymq.transport.table import ConnectionTable
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Service

FLUSH_BYTES: Final = 32 * 1024
"""So many bytes do not wait for the end of the turn: the peer can begin with them."""

SILENT_S_MIN: Final = 1.0
"""Less is not silence: a caller with a short time limit must not cut the others off."""


class ClientConnection(Connection):
    """A `Connection` that a client has opened. Owned by the event loop's thread."""

    __slots__ = (
        "_blocked",
        "_heard_at",
        "_new_future",
        "_outbox",
        "_outbox_bytes",
        "is_ready",
        "sends",
    )

    def __init__(
        self, table: ConnectionTable, service: Service, *, reads_always: bool = True
    ) -> None:
        super().__init__(table, service, reads_always=reads_always)
        self.sends = self._asks = Asks(table.loop, self._was_late)
        """What waits for an answer; its `next_send_opaque` is what a send's frame is to have."""
        self.is_ready = False
        """Whether a frame may be sent now: it is open, and not congested."""
        self._heard_at = 0.0
        self._new_future = table.loop.create_future
        self._outbox: list[Buffer] = []
        self._outbox_bytes = 0
        self._blocked: list[asyncio.Future[None]] = []

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes that arrived; called by the loop."""
        self._heard_at = self._table.loop.time()
        super().buffer_updated(nbytes)

    def _was_late(self, asked_at: float) -> None:
        """Give the connection up if nothing at all has come since a late request was sent.

        The peer's machine may be gone without a word; a new connection tells. One slow request
        among others that are answered is no reason.
        """
        silent_s = self._table.loop.time() - asked_at
        if self._heard_at < asked_at and silent_s >= SILENT_S_MIN:
            self.abort(f"nothing came for {silent_s:.1f} s")

    @property
    def is_congested(self) -> bool:
        """Tell whether as many bytes wait as may; `writable` says when that is over."""
        return bool(self._halt & UNSENT)

    def ask_frame(
        self, opaque: int, frame: bytes, timeout_s: float, now: float
    ) -> asyncio.Future[SendAnswer | Command]:
        """Send the frame of a send and return its answer when it comes.

        A plain success is a SendAnswer, all else a Command. The future raises PeerGone or PeerLate.
        `now` is the loop's time.
        """
        future: asyncio.Future[SendAnswer | Command] = self._new_future()
        if self._open:
            self.sends.add(opaque, future, timeout_s, now)
            self.post(frame)
        else:
            future.set_exception(PeerGone(f"{self.address}: {self._reason}"))
        return future

    def post(self, frame: bytes) -> None:
        """Send a frame with others of this turn of the loop."""
        if not self._outbox:
            self._table.loop.call_soon(self._flush_outbox)
        self._outbox.append(frame)
        self._outbox_bytes += len(frame)
        if self._outbox_bytes >= FLUSH_BYTES:
            self._flush_outbox()

    def _flush_outbox(self) -> None:
        outbox, size = self._outbox, self._outbox_bytes
        if outbox:
            self._outbox, self._outbox_bytes = [], 0
            self._send(outbox, size)

    async def writable(self) -> None:
        """Return when bytes may be sent again, or never will be."""
        while self._open and self._halt & UNSENT:
            waiter: asyncio.Future[None] = self._table.loop.create_future()
            self._blocked.append(waiter)
            await waiter

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; called by the loop."""
        super().connection_made(transport)
        self.is_ready = self._open

    def pause_writing(self) -> None:
        """Learn that as many bytes wait as may; called by the transport."""
        super().pause_writing()
        self.is_ready = False

    def resume_writing(self) -> None:
        """Go on with a peer that has caught up; called by the transport."""
        super().resume_writing()
        self.is_ready = self._open
        self._unblock()

    def close(self, reason: str) -> None:
        """Close the connection when what was written has gone out; nothing more is read."""
        self._flush_outbox()
        super().close(reason)

    def _shut(self) -> None:
        super()._shut()
        self.is_ready = False
        self._outbox, self._outbox_bytes = [], 0
        self._unblock()

    def _unblock(self) -> None:
        blocked, self._blocked = self._blocked, []
        for waiter in blocked:
            if not waiter.done():
                waiter.set_result(None)

    def _take_responses(self, buffer: bytearray, position: int, stop: int) -> int:
        """Give the responses in front to who asked; return where the first other frame is."""
        replies, position = kernel.split_send_replies(
            buffer, position, stop, FRAME_BYTES_MAX, SEND_OPAQUE_MIN
        )
        if replies:
            self.sends.settle_sends(replies)
        if position == stop:
            return stop
        return super()._take_responses(buffer, position, stop)
