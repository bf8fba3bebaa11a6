"""Frames: how commands follow each other on a connection.

    +-----------+------------+--------------+------------------+---------------------+
    | total i32 | serialize  | header size  | header           | body                |
    |           | type u8    | u24          | (header size)    | (total - 4 - size)  |
    +-----------+------------+--------------+------------------+---------------------+
      total counts everything behind itself; serialize type 0 is JSON, 1 is binary

`FrameParser` is a push parser: bytes of any size go in, the commands that are complete come out,
and a frame that is not complete yet is never an error. Lengths are checked as soon as their bytes
are there, so nothing is kept for a frame that will be refused.

Contract for broken input. `feed` itself does not raise for it: it returns the commands that came
before the bad frame, and from then on `error` says what was wrong and the parser is closed. The
driver handles what it got, then looks at `error` and closes the connection; there is no way back
into step with a peer whose lengths cannot be trusted. Feeding a closed parser raises that same
error.

The receive buffer is kept only across calls that end inside a frame. A chunk that arrives while
nothing is kept is parsed where it is; what is kept is cut at the front, which a bytearray does
without moving the rest. Taking n bytes one by one therefore costs n small steps, not n copies.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from gantrymq.errors import InvalidValue, ProtocolError
from gantrymq.kernel import kernel
from gantrymq.limits import FRAME_BYTES_MAX, HEADER_BYTES_MAX
from gantrymq.wire.header_codec import decode_header, encode_header

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Buffer
    from gantrymq.kernel.values import Frame
    from gantrymq.wire.command import Command

__all__ = ["FrameParser", "decode_frame", "encode_frame"]


def decode_frame(buffer: Buffer, frame: Frame) -> Command:
    """Return the command in one frame of a buffer, as `kernel.split_frames` found it.

    Raises ProtocolError for a header that is not one.
    """
    with memoryview(buffer) as view:
        header = bytes(view[frame.header : frame.body])
        body = bytes(view[frame.body : frame.end])
    return decode_header(header, frame.serialize_type, body)


def encode_frame(command: Command, frame_bytes_max: int = FRAME_BYTES_MAX) -> bytes:
    """Return the whole frame of a command.

    Raises InvalidValue if it is larger than a peer accepts, or holds a value that a header cannot.
    """
    header = encode_header(command)
    if len(header) > HEADER_BYTES_MAX:
        raise InvalidValue(f"a header of {len(header)} bytes; at most {HEADER_BYTES_MAX} can be")
    total = 4 + len(header) + len(command.body)
    if total + 4 > frame_bytes_max:
        raise InvalidValue(f"a frame of {total + 4} bytes; at most {frame_bytes_max} are accepted")
    head = struct.pack(">II", total, command.serialize_type << 24 | len(header))
    return b"".join((head, header, command.body))


class FrameParser:
    """Bytes in, commands out; one for each direction of a connection, used by one task."""

    __slots__ = ("_frame_bytes_max", "_kept", "error")

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._kept = bytearray()
        self.error: ProtocolError | None = None
        """Why the parser is closed; None while it is open."""

    @property
    def kept_bytes(self) -> int:
        """Return the size of the frame's beginning that waits for the rest."""
        return len(self._kept)

    def feed(self, chunk: Buffer) -> list[Command]:
        """Take the next bytes; return the commands that are complete now.

        After the call look at `error`. Raises it if the parser was closed before.
        """
        if self.error is not None:
            raise self.error
        if self._kept:
            self._kept += chunk
            commands, position = self._parse(self._kept)
            del self._kept[:position]
        else:
            commands, position = self._parse(chunk)
            if position < len(chunk):
                with memoryview(chunk) as view:
                    self._kept += view[position:]
        return commands

    def _parse(self, buffer: Buffer) -> tuple[list[Command], int]:
        """Return the commands in a buffer and how far it is used up; note what is wrong."""
        commands: list[Command] = []
        position, end = 0, len(buffer)
        try:
            # The kernel stops quietly before a bad frame that is not the first: ask once more.
            while position < end:
                frames, behind = kernel.split_frames(buffer, position, end, self._frame_bytes_max)
                if not frames:
                    break
                for frame in frames:  # one by one: those before a bad one are kept
                    commands.append(decode_frame(buffer, frame))  # noqa: PERF401
                position = behind
        except ProtocolError as error:
            self.error = error
            return commands, end
        return commands, position
