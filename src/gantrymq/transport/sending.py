"""The sending half of a connection, and what stops its reading.

Answers that a service returns from one call leave in one write, at once: who asked goes on while
the requests of others are taken. Answers that come later are collected while the loop runs through
one turn, so that all those that one flush of the disk sets free leave together too.

Reading stops, for one or more of these reasons, while

- `UNSENT`: more than `write_high_bytes` are unsent; the peer asks and does not read the answers;
- `UNANSWERED`: `unanswered_max` requests have no answer yet;
- `MEMORY`: all connections together hold more than `buffered_bytes_max`; this one needs more;
- `BACK`: requests that were read are kept back, because reading stopped before they were taken;
- `FINISHING`: what was asked is answered, then the connection is closed.

`UNSENT` stops only a server's reading. A client that did not read answers because it has requests
to send, while the server reads no requests because it has answers to send, would wait for ever.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Final

from gantrymq.transport.outgoing import busy_instead, encode_answer, gather
from gantrymq.wire.command import Command
from gantrymq.wire.peer import RawReply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.kernel.interface import Buffer
    from gantrymq.transport.table import ConnectionTable
    from gantrymq.wire.peer import Answer, Pending

logger = logging.getLogger(__name__)

# Bits, and plain integers: they are asked for with every answer, where an enum would cost more.
UNSENT: Final = 1
UNANSWERED: Final = 2
MEMORY: Final = 4
FINISHING: Final = 8
BACK: Final = 16

UNCHECKED_BYTES: Final = 64 * 1024
"""Answers of one write that are sent without a look at what the peer has not taken yet."""


class Sender(asyncio.BufferedProtocol):
    """What `Connection` writes with. Owned by the event loop's thread."""

    __slots__ = (
        "__weakref__",
        "_flushing",
        "_halt",
        "_handle",
        "_is_active",
        "_noted",
        "_open",
        "_promises",
        "_ready",
        "_sent",
        "_stops",
        "_table",
        "_transport",
        "_was_stopped",
        "address",
    )

    def __init__(self, table: ConnectionTable, *, reads_always: bool) -> None:
        self._table = table
        self.address = ""
        self._transport: asyncio.Transport | None = None
        self._handle = -1
        """Of a plain socket, which can be written to without the loop; -1: there is none."""
        self._open = False
        self._halt = 0
        self._stops = UNANSWERED | MEMORY | FINISHING | BACK | (0 if reads_always else UNSENT)
        self._promises: set[asyncio.Future[Answer]] | None = None
        self._ready: list[Answer] | None = None
        self._flushing = False
        self._is_active = True  # read or written since the last look
        self._sent = 0  # bytes given to the transport, ever
        self._was_stopped = True  # not read for a while, or ever: what is read next may be old
        self._noted = 0  # of those unsent, what the table has been told of

    @property
    def is_open(self) -> bool:
        """Tell whether anything can still be sent."""
        return self._open

    @property
    def unsent_bytes(self) -> int:
        """Return how many bytes wait for the peer to take them."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def _answer(self, answers: Sequence[Pending]) -> int:
        """Write the answers that are there, and wait for the others.

        Returns how many bytes were given, those of answers that were replaced included: they were
        as much work.
        """
        if len(answers) == 1:
            only = answers[0]
            if isinstance(only, RawReply) and len(only.parts) == 1 and not self._halt & UNSENT:
                piece = only.parts[0]
                size = len(piece)
                # One small piece, as most answers are.
                if isinstance(piece, bytes) and size <= UNCHECKED_BYTES:
                    self._send_piece(piece, size)
                    return size
        parts: list[Buffer] = []
        room = -1  # asked for when there is something large
        size = given = unsent = 0
        for answer in answers:
            if answer is None:
                continue
            if isinstance(answer, RawReply):
                raw: tuple[Buffer, ...] = answer.parts
            elif isinstance(answer, Command):
                raw = (encode_answer(answer),)
            else:
                self._await(answer)
                continue
            added = sum(map(len, raw))
            given += added
            if size + added > UNCHECKED_BYTES or self._halt & UNSENT:
                if room < 0:
                    unsent = self.unsent_bytes
                    room = self._room(unsent)
                # Who has taken everything gets one answer, however much others have not taken.
                is_behind = unsent > 0 or size > UNCHECKED_BYTES
                if is_behind and size + added > room and (busy := busy_instead(answer)) is not None:
                    raw, added = (busy,), len(busy)
                    self._table.busy_answers += 1
            parts += raw
            size += added
        if parts:
            self._send(parts, size)
        return given

    def _room(self, unsent: int) -> int:
        """Return how many bytes may still be added before data is refused."""
        table = self._table
        settings = table.settings
        left = settings.buffered_bytes_max - table.held_bytes - table.unsent_bytes
        return max(min(settings.unsent_bytes_max - unsent, left), 0)

    def _send(self, parts: list[Buffer], size: int) -> None:
        pieces = gather(parts)
        if len(pieces) == 1:
            self._send_piece(pieces[0], size)
            return
        transport = self._transport
        if transport is None or not self._open or transport.is_closing():
            return
        self._is_active = True
        self._sent += size
        transport.writelines(pieces)
        if self._halt & UNSENT:
            self._note_unsent(self._noted + size)

    def _send_piece(self, piece: bytes | bytearray | memoryview, size: int) -> None:
        transport = self._transport
        if transport is None or not self._open or transport.is_closing():
            return
        self._is_active = True
        self._sent += size
        if self._handle >= 0 and not transport.get_write_buffer_size():
            # A loop would write it when its turn is over. The peer can work on it meanwhile.
            try:
                done = os.write(self._handle, piece)
            except OSError:  # the transport finds the same, and knows what to do
                done = 0
            if done == size:
                return
            piece = memoryview(piece)[done:]
        transport.write(piece)
        if self._halt & UNSENT:
            self._note_unsent(self._noted + size)

    def _await(self, promise: object) -> None:
        """Write the answer of a future or a coroutine when it comes."""
        if asyncio.iscoroutine(promise):
            future: asyncio.Future[Answer] = self._table.loop.create_task(promise)
        elif asyncio.isfuture(promise):
            future = promise
        else:
            raise TypeError(f"a service answered with {type(promise).__name__}")
        if self._promises is None:
            self._promises = set()
        self._promises.add(future)
        future.add_done_callback(self._on_promise)
        if len(self._promises) >= self._table.settings.unanswered_max:
            self._stop_reading(UNANSWERED)

    def _on_promise(self, future: asyncio.Future[Answer]) -> None:
        """Collect an answer. Those of one turn of the loop, as of one flush, leave together."""
        assert self._promises is not None  # noqa: S101  (the callback was added with it)
        self._promises.discard(future)
        if not future.cancelled():
            error = future.exception()
            if error is not None:
                logger.error(
                    "%s gets no answer: a service must settle its promises",
                    self.address,
                    exc_info=error,
                )
            elif self._open:
                if self._ready is None:
                    self._ready = []
                self._ready.append(future.result())
        if not self._flushing:
            self._flushing = True
            self._table.loop.call_soon(self._flush_ready)

    def _flush_ready(self) -> None:
        self._flushing = False
        ready, self._ready = self._ready, None
        if not self._open:
            return
        if ready:
            self._answer(ready)
        if self._halt & UNANSWERED and (
            len(self._promises or ()) <= self._table.settings.unanswered_max // 2
        ):
            self._resume_reading(UNANSWERED)
        self._on_flushed()

    def pause_writing(self) -> None:
        """Stop reading a peer that does not read; called by the transport."""
        self._note_unsent(self.unsent_bytes)
        self._stop_reading(UNSENT)

    def resume_writing(self) -> None:
        """Go on with a peer that has caught up; called by the transport."""
        self._note_unsent(self.unsent_bytes)
        self._resume_reading(UNSENT)

    def _note_unsent(self, size: int) -> None:
        """Let the table know how much waits here. Small amounts it learns with each look."""
        self._table.unsent_bytes += size - self._noted
        self._noted = size

    def _take_back(self) -> None:
        """Take what was kept back: `Exchange` knows how."""
        raise NotImplementedError

    def _on_flushed(self) -> None:
        """Learn that answers which came later have been written."""

    def _stop_reading(self, why: int) -> None:
        if why & self._stops and not self._halt & self._stops and self._transport is not None:
            self._transport.pause_reading()
        self._halt |= why

    def _resume_reading(self, why: int) -> None:
        halted, self._halt = self._halt & self._stops, self._halt & ~why
        left = self._halt & self._stops
        if left == BACK:
            self._table.take_turn(self._take_back)
        if not halted or left:
            return
        if self._open and self._transport is not None:
            self._was_stopped = True
            self._transport.resume_reading()
