"""What passes through a connection: the peer's requests to the service, ours to the peer.

What arrives lies in the buffer that all connections of a table share (see `arrivals`). The service
takes the whole frames of it in one call; what it returns goes out in one write. A small read of a
connection that sends plain requests waits for those of others in the same turn. Only the beginning
of a frame that is not complete is kept, in a bytearray of its own that grows as the rest comes, up
to the length that the frame has announced, and is given up then. A connection where nothing
happens therefore has no buffer.

A service stops when its answers are many bytes. The requests behind are then kept back as they are.
They are taken when others had their turn (see `table`) and the peer has taken the answers: who asks
for much and reads nothing has one write waiting here, not one for each of its requests.

Who separates responses from requests: the service stops in front of a response (flag bit 0), and
the connection gives it to who asked. A connection that has asked something looks at the first
frames itself, so that a client's service does not see every answer.
"""

from __future__ import annotations

import logging
import struct
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.errors import ProtocolError
from gantrymq.kernel import kernel
from gantrymq.limits import FRAME_BYTES_MAX
from gantrymq.transport.ages import lay_ms
from gantrymq.transport.arrivals import HEADROOM, SMALL_BYTES
from gantrymq.transport.asks import Asks
from gantrymq.transport.sending import BACK, MEMORY, UNSENT, Sender
from gantrymq.transport.table import connection_numbers
from gantrymq.wire.frame import encode_frame
from gantrymq.wire.header_codec import decode_header
from gantrymq.wire.peer import DATA_BYTES_ENOUGH, PeerGone, PeerLate

if TYPE_CHECKING:
    import asyncio

    from gantrymq.transport.table import ConnectionTable
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Service

logger = logging.getLogger(__name__)

LENGTH: Final = struct.Struct(">I")
ONEWAY: Final = 2


class Exchange(Sender):
    """What `Connection` reads and asks with. Owned by the event loop's thread."""

    __slots__ = (
        "_asks",
        "_gathers",
        "_is_gathered",
        "_kept",
        "_need",
        "_reason",
        "_service",
        "certificate",
        "host",
        "listener",
        "number",
        "waited_ms",
    )

    def __init__(self, table: ConnectionTable, service: Service, *, reads_always: bool) -> None:
        super().__init__(table, reads_always=reads_always)
        self._service = service
        self.number = next(connection_numbers)
        self.host = b""
        self.listener = ""
        self.certificate: tuple[str, ...] = ()
        """Names of the peer's verified certificate; see `identity`."""
        self.waited_ms = 0
        """How long the bytes that are taken now lay unread, at least; see `ages`."""
        self._reason = "the peer closed the connection"
        self._asks: Asks | None = None
        self._gathers = service.takes_turns
        """Whether its small reads wait for the end of a turn: what it sent last was plain."""
        self._is_gathered = False
        self._kept: bytearray | None = None
        self._need = 0  # size that makes another look at what is kept worth while

    def close(self, reason: str) -> None:
        """Close the connection: `Connection` knows how."""
        raise NotImplementedError

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes go; called by the loop, which fills it at once."""
        return self._table.arrivals.room

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes that arrived; called by the loop."""
        self._is_active = True
        if not self._open:
            return
        times = self._table.read_times
        if times is not None and (times.read() or self._was_stopped):
            self._note_age()
        arrivals = self._table.arrivals
        start = arrivals.position
        if self._is_gathered:
            arrivals.take()  # what it sent before this comes first
        elif (
            self._gathers
            and nbytes <= SMALL_BYTES
            and self._kept is None
            and not (self._asks or self.waited_ms)
            and arrivals.last != self.number
        ):
            self._is_gathered = True
            arrivals.gather(self, self._service, nbytes)
            return
        try:
            if self._kept is None:
                self._take(arrivals.buffer, start, start + nbytes)
            else:
                self._take_behind_kept(self._kept, start, nbytes)
        except Exception as error:  # noqa: BLE001  (whatever it is ends this connection only)
            self._end_for(error)

    def took(self, position: int, stop: int, replies: bytes) -> None:
        """Learn how far a read came that was gathered; the rest is taken by itself."""
        self._is_gathered = False
        if replies:
            self._send_piece(replies, len(replies))
        if position < stop:
            try:
                self._take(self._table.arrivals.buffer, position, stop)
            except Exception as error:  # noqa: BLE001  (as when bytes arrive)
                self._end_for(error)

    def _take_gathered(self) -> None:
        """Have what was gathered taken before the connection ends."""
        if self._is_gathered:
            self._table.arrivals.take()

    def _end_for(self, error: Exception) -> None:
        """Close the connection: what came is not the protocol, or the service failed."""
        if isinstance(error, ProtocolError):
            self._table.rare_log.warning(
                f"frame {self.address.rpartition(':')[0]}", f"closing {self.address}: {error}"
            )
            self.close(f"not the protocol: {error}")
        else:
            logger.error("closing %s: the service failed", self.address, exc_info=error)
            self.close("the service failed")

    def _note_age(self) -> None:
        """Ask how long the bytes of this read lay, and those of the next until some are new."""
        self.waited_ms = lay_ms(self._transport)
        self._was_stopped = self.waited_ms > 0

    def _take_behind_kept(self, kept: bytearray, start: int, nbytes: int) -> None:
        """Join what is kept and what arrived; take it if a frame may be complete."""
        arrivals, size = self._table.arrivals, len(kept)
        view, stop = arrivals.view, start + nbytes
        if size + nbytes < self._need or self._halt & BACK:
            kept += view[start:stop]
            self._table.held_bytes += nbytes
            if self._table.is_full:
                self._stop_without_memory(size + nbytes)
            return
        if size <= HEADROOM:
            arrivals.take()  # the place in front is needed
            view[start - size : start] = kept
            self._release()
            self._take(arrivals.buffer, start - size, stop)
            return
        behind = start + self._need - size
        kept += view[start:behind]
        self._table.held_bytes += behind - start
        self._release()
        self._take(kept, 0, len(kept))
        if behind < stop and self._open and self._kept is None:
            self._take(arrivals.buffer, behind, stop)

    def _take(self, buffer: bytearray, position: int, stop: int) -> None:
        """Give the service all frames of a range, and keep what is behind them."""
        while position < stop and self._open:
            if self._asks:
                position = self._take_responses(buffer, position, stop)
                if position == stop:
                    return
            before = position
            position, answers, self._gathers = self._service.take(buffer, position, stop, self)
            given = self._answer(answers) if answers else 0
            if position == stop or not self._open:
                return
            if given > DATA_BYTES_ENOUGH or self._halt & self._stops:
                self._keep_back(buffer, position, stop)
                return
            # Either the rest is not complete, or the service stopped: for a response, or because
            # what follows is no frame, which is an error here.
            frames, _behind = kernel.split_frames(buffer, position, stop, FRAME_BYTES_MAX)
            if not frames:
                self._keep(buffer, position, stop)
                return
            taken = position > before
            before, position = position, self._take_responses(buffer, position, stop)
            if not taken and position == before:
                raise RuntimeError("the service took nothing of a complete request")

    def _take_responses(self, buffer: bytearray, position: int, stop: int) -> int:
        """Give the responses in front to who asked; return where the first other frame is."""
        frames, behind = kernel.split_frames(buffer, position, stop, FRAME_BYTES_MAX)
        with memoryview(buffer) as view:
            for frame in frames:
                header = bytes(view[frame.header : frame.body])
                answer = decode_header(header, frame.serialize_type)
                if not answer.is_response:
                    return frame.start
                if frame.body < frame.end:
                    body = bytes(view[frame.body : frame.end])
                    answer = msgspec.structs.replace(answer, body=body)
                if self._asks is None or not self._asks.settle(answer):
                    logger.debug("%s answered %d, too late", self.address, answer.opaque)
        return behind

    def _keep_back(self, buffer: bytearray, position: int, stop: int) -> None:
        """Keep what was read and is not to be taken now, and read no more until it is."""
        with memoryview(buffer) as view:
            self._kept = bytearray(view[position:stop])
        self._table.held_bytes += stop - position
        if not self._halt & self._stops:
            self._table.take_turn(self._take_back)
        self._stop_reading(BACK)

    def _take_back(self) -> None:
        """Take what was kept back, and read on if that does not stop the connection again."""
        kept = self._kept
        if not self._open or kept is None or self._halt & self._stops != BACK:
            return
        self._release()
        self._halt &= ~BACK
        if self._table.read_times is not None:
            self._note_age()
        try:
            self._take(kept, 0, len(kept))
        except Exception as error:  # noqa: BLE001  (as when bytes arrive)
            self._end_for(error)
        if self._open and self._transport is not None and not self._halt & self._stops:
            self._was_stopped = True
            self._transport.resume_reading()

    def _keep(self, buffer: bytearray, position: int, stop: int) -> None:
        """Keep the beginning of a frame, whose lengths are good as far as they are there."""
        table = self._table
        size = stop - position
        if size >= 8:
            self._need = 4 + LENGTH.unpack_from(buffer, position)[0]
        else:
            self._need = 8 if size >= 4 else 4
        with memoryview(buffer) as view:
            self._kept = bytearray(view[position:stop])
        table.held_bytes += size
        if table.is_full:
            self._stop_without_memory(size)

    def _stop_without_memory(self, size: int) -> None:
        """Let the frame grow no more while memory is short; a small one may for longer."""
        if size > HEADROOM or self._table.held_bytes > self._table.settings.buffered_bytes_max:
            self._stop_reading(MEMORY)

    def _release(self) -> None:
        if self._kept is not None:
            self._table.held_bytes -= len(self._kept)
            self._kept = None

    # -- requests of ours -----------------------------------------------------------------------

    def ask(self, request: Command, timeout_s: float) -> asyncio.Future[Command]:
        """Send a request, whose opaque is replaced, and return its answer when it comes.

        The future raises PeerGone, or PeerLate: also at once, for a peer that does not read or has
        not answered `asks_max` others.

        Raises:
            InvalidValue: the request cannot be encoded.
        """
        future: asyncio.Future[Command] = self._table.loop.create_future()
        if self._asks is None:
            self._asks = Asks(self._table.loop)
        if not self._open:
            future.set_exception(PeerGone(f"{self.address}: {self._reason}"))
        elif self._halt & UNSENT:
            future.set_exception(
                PeerLate(f"{self.address} does not read: {self.unsent_bytes} bytes wait already")
            )
        elif len(self._asks) >= self._table.settings.asks_max:
            future.set_exception(
                PeerLate(f"{self.address} has not answered {len(self._asks)} requests")
            )
        else:
            opaque = self._asks.next_opaque()
            flag = request.flag & ~ONEWAY
            frame = encode_frame(msgspec.structs.replace(request, opaque=opaque, flag=flag))
            self._asks.add(opaque, future, timeout_s, self._table.loop.time())
            self._send([frame], len(frame))
        return future

    def tell(self, request: Command) -> bool:
        """Send a request that gets no answer; False if the other end is gone or does not read.

        Raises:
            InvalidValue: the request cannot be encoded.
        """
        if not self._open or self._halt & UNSENT:
            return False
        told, frame = self._table.told  # many peers are told the same, one after the other
        if told is not request:
            frame = encode_frame(msgspec.structs.replace(request, flag=request.flag | ONEWAY))
            self._table.told = request, frame
        self._send([frame], len(frame))
        return True
