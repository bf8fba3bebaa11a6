"""A connection for rows of pulls: many of them out in one write, their answers read as they come.

A broker gives 32 messages to a pull unless it is set otherwise, so five million messages are
156,000 answers, and a future and a turn of the event loop for each costs more than to decode what
it brings. Here a thread waits for all answers of a row together: one buffer, frames found by the
kernel, five numbers read out of each header. Whatever is not plain goes through the general codec.

A broker does not read a connection whose answers pile up, and nobody reads them here while pulls
are written; so no more are under way than the system's own buffers hold.

Owned by whoever took it from `PullLines`; nothing else is asked over it.
"""

from __future__ import annotations

import select
import socket
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.client.consuming.pull_requests import Pulled, read_answer
from gantrymq.clock import SystemClock
from gantrymq.errors import ProtocolError
from gantrymq.kernel import kernel
from gantrymq.limits import FRAME_BYTES_MAX
from gantrymq.transport.addresses import split_address
from gantrymq.wire.frame import decode_frame
from gantrymq.wire.peer import PeerGone, PeerLate

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

    from gantrymq.client.consuming.pull_requests import PullRequests
    from gantrymq.kernel import Frame

BUFFER_BYTES: Final = 4 << 20
READ_BYTES_MIN: Final = 256 << 10
"""Room in the buffer below which it grows, or what is done with is moved out of the way."""
IDLE_MAX: Final = 8
"""Connections of one address that are kept for later."""
IDLE_S_MAX: Final = 60.0
"""For how long; brokers close what is idle after two minutes."""
WINDOW_BYTES: Final = 32 << 10
"""Pulls that are under way and not answered: less than any system holds for a socket."""
OPAQUE_MAX: Final = 1 << 30
_CLOCK: Final = SystemClock()


class _Fields(msgspec.Struct):
    suggestWhichBrokerId: int
    nextBeginOffset: int
    minOffset: int
    maxOffset: int


class _Header(msgspec.Struct):
    code: int
    flag: int
    opaque: int
    extFields: _Fields


_PLAIN: Final = frozenset({0, 19, 20, 21})


class PullLine:
    """One connection to a broker. Its calls block."""

    def __init__(self, address: str, context: ssl.SSLContext | None, timeout_s: float) -> None:
        """Connect.

        Raises:
            PeerGone, PeerLate: nobody is there.
        """
        self.address = address
        host, port = split_address(address)
        try:
            line = socket.create_connection((host, port), timeout_s)
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                line = context.wrap_socket(line, server_hostname=host)
        except TimeoutError as error:
            raise PeerLate(f"{address}: no connection within {timeout_s:g} s") from error
        except OSError as error:
            raise PeerGone(f"{address}: {error}") from error
        self._line = line
        self._timeout_s = timeout_s
        self._buffer = bytearray(BUFFER_BYTES)
        self._opaque = 0
        self._used_at = _CLOCK.monotonic()

    def close(self) -> None:
        """Close the connection."""
        self._line.close()

    def is_fresh(self) -> bool:
        """Tell whether an idle connection can be used: nobody closed it, or said anything."""
        if _CLOCK.monotonic() - self._used_at > IDLE_S_MAX:
            return False
        poll = select.poll()
        poll.register(self._line, select.POLLIN)
        return not poll.poll(0)

    def ask(self, requests: PullRequests, offsets: Sequence[int]) -> list[Pulled]:
        """Return the answers to pulls from some offsets on, in their order.

        Raises:
            ResponseError: one is no ordinary ending of a pull.
            PeerGone, PeerLate: the connection is of no use any more.
        """
        if self._opaque + len(offsets) > OPAQUE_MAX:
            self._opaque = 0
        first = self._opaque + 1
        self._opaque += len(offsets)
        frames = [requests.frame(first + at, one) for at, one in enumerate(offsets)]
        answers: list[Pulled | None] = [None] * len(frames)
        try:
            self._exchange(frames, first, answers)
        except TimeoutError as error:
            raise PeerLate(
                f"{self.address}: no answer to a pull within {self._timeout_s:g} s"
            ) from error
        except (OSError, ProtocolError) as error:
            raise PeerGone(f"{self.address}: {error}") from error
        self._used_at = _CLOCK.monotonic()
        return [answer for answer in answers if answer is not None]

    def _exchange(self, frames: list[bytes], first: int, answers: list[Pulled | None]) -> None:
        """Write pulls and take their answers, until all are there."""
        window = max(WINDOW_BYTES // len(frames[0]), 1)
        sent = done = start = end = 0
        late_at = _CLOCK.monotonic() + self._timeout_s
        while done < len(frames):
            if sent < len(frames) and sent - done <= window // 2:
                part = frames[sent : done + window]
                self._line.sendall(b"".join(part))
                sent += len(part)
            start, end = self._room(start, end)
            with memoryview(self._buffer) as view:
                count = self._line.recv_into(view[end:])
            if not count:
                raise PeerGone(f"{self.address}: the broker closed the connection")
            end += count
            found, start = kernel.split_frames(self._buffer, start, end, FRAME_BYTES_MAX)
            taken = sum(self._take(frame, first, answers) for frame in found)
            done += taken
            now = _CLOCK.monotonic()
            if taken:
                late_at = now + self._timeout_s
            elif now > late_at:
                raise TimeoutError  # bytes come, and no answer among them

    def _room(self, start: int, end: int) -> tuple[int, int]:
        """Have room for more behind what is not taken yet."""
        if start == end:
            return 0, 0
        if len(self._buffer) - end < READ_BYTES_MIN:
            self._buffer[: end - start] = self._buffer[start:end]
            start, end = 0, end - start
            if len(self._buffer) - end < READ_BYTES_MIN:
                # One frame is larger than all of it; the kernel has bounded what it may be.
                self._buffer.extend(bytes(len(self._buffer)))
        return start, end

    def _take(self, frame: Frame, first: int, answers: list[Pulled | None]) -> int:
        """Note an answer; return how many were waited for that are not any more."""
        buffer = self._buffer
        with memoryview(buffer) as view:
            try:
                header = msgspec.json.decode(
                    view[frame.header : frame.body], type=_Header, strict=False
                )
            except msgspec.DecodeError:
                header = None
            if header is not None and header.flag & 1 and header.code in _PLAIN:
                fields, opaque = header.extFields, header.opaque
                pulled = Pulled(
                    header.code,
                    fields.nextBeginOffset,
                    fields.minOffset,
                    fields.maxOffset,
                    fields.suggestWhichBrokerId,
                    bytes(view[frame.body : frame.end]),
                )
            else:
                command = decode_frame(buffer, frame)
                opaque = command.opaque
                if not command.is_response or not first <= opaque < first + len(answers):
                    return 0  # a broker may ask something; nobody here answers
                pulled = read_answer(command)
        if not first <= opaque < first + len(answers) or answers[opaque - first] is not None:
            return 0
        answers[opaque - first] = pulled
        return 1


class PullLines:
    """The idle connections of a process, by address. Used by several threads, a list at a time."""

    def __init__(self, context: ssl.SSLContext | None, timeout_s: float) -> None:
        self._context = context
        self._timeout_s = timeout_s
        self._idle: dict[str, list[PullLine]] = {}

    def ask(self, address: str, requests: PullRequests, offsets: Sequence[int]) -> list[Pulled]:
        """Return the answers to pulls over a connection of their own; blocks.

        Raises:
            ResponseError: one is no ordinary ending of a pull.
            PeerGone, PeerLate: nobody answers.
        """
        idle = self._idle.setdefault(address, [])
        line = self._taken(idle) or PullLine(address, self._context, self._timeout_s)
        try:
            answers = line.ask(requests, offsets)
        except BaseException:
            line.close()
            raise
        if len(idle) < IDLE_MAX:
            idle.append(line)
        else:
            line.close()
        return answers

    @staticmethod
    def _taken(idle: list[PullLine]) -> PullLine | None:
        """Return an idle connection that can be used; those that cannot are closed."""
        while True:
            try:
                line = idle.pop()
            except IndexError:
                return None
            if line.is_fresh():
                return line
            line.close()

    def close(self) -> None:
        """Close what is idle."""
        for lines in self._idle.values():
            while lines:
                lines.pop().close()
