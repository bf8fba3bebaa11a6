"""Compressed bodies: zlib from every client, LZ4 frames and zstd from 5.x Java clients.

A few bytes can say that they stand for gigabytes. Every decompressor here is asked for no more
than the limit and one byte, and so a bomb is refused before it has grown. The zstd binding has no
such question to ask, only "what do these bytes give?"; it is therefore asked about few bytes at a
time. One block of at most 128 KiB takes at least 4 bytes, which bounds what a single step can
give.
"""

from __future__ import annotations

import zlib
from typing import Final

import lz4.frame
import zstandard

from gantrymq.errors import ContentError
from gantrymq.limits import DECOMPRESSED_BODY_BYTES_MAX
from gantrymq.wire.sysflag import Compression, compression

_ZLIB_LEVEL: Final = 5
"""What Apache's producers use."""
_ZSTD_STEP_BYTES: Final = 256
"""At most 8 MiB in one step."""


def compress(body: bytes, kind: Compression) -> bytes:
    """Return the compressed form of a body."""
    if kind is Compression.LZ4:
        packed: bytes = lz4.frame.compress(body)
        return packed
    if kind is Compression.ZSTD:
        return zstandard.ZstdCompressor().compress(body)
    return zlib.compress(body, _ZLIB_LEVEL)


def decompress(
    body: bytes, kind: Compression, bytes_max: int = DECOMPRESSED_BODY_BYTES_MAX
) -> bytes:
    """Return the body that was compressed.

    Raises ContentError if it was not compressed so, is cut off, or is larger than `bytes_max`.
    """
    if kind is Compression.LZ4:
        return _decompress_lz4(body, bytes_max)
    if kind is Compression.ZSTD:
        return _decompress_zstd(body, bytes_max)
    return _decompress_zlib(body, bytes_max)


def plain_body(body: bytes, sys_flag: int, bytes_max: int = DECOMPRESSED_BODY_BYTES_MAX) -> bytes:
    """Return a stored body as its producer gave it, going by the message's system flags.

    Raises ContentError as `decompress` does, and for an unknown kind of compression.
    """
    kind = compression(sys_flag)
    return body if kind is None else decompress(body, kind, bytes_max)


def plain_start(body: bytes, sys_flag: int, bytes_max: int) -> bytes:
    """Return the first bytes of a stored body as its producer gave it; no more is decompressed.

    Raises ContentError if it was not compressed so, and for an unknown kind of compression.
    """
    kind = compression(sys_flag)
    if kind is None:
        return body[:bytes_max]
    try:
        if kind is Compression.LZ4:
            started: bytes = lz4.frame.LZ4FrameDecompressor().decompress(body, max_length=bytes_max)
            return started
        if kind is Compression.ZSTD:
            return _zstd_start(body, bytes_max)[:bytes_max]
        return zlib.decompressobj().decompress(body, bytes_max)
    except (zlib.error, zstandard.ZstdError, RuntimeError, EOFError) as error:
        raise ContentError("body", f"is not {kind.name}: {error}") from error


def _zstd_start(body: bytes, bytes_max: int) -> bytes:
    stream = zstandard.ZstdDecompressor(max_window_size=DECOMPRESSED_BODY_BYTES_MAX).decompressobj()
    parts: list[bytes] = []
    size = 0
    for position in range(0, len(body), _ZSTD_STEP_BYTES):
        if stream.eof or size >= bytes_max:
            break
        parts.append(stream.decompress(body[position : position + _ZSTD_STEP_BYTES]))
        size += len(parts[-1])
    return b"".join(parts)


def _decompress_zlib(body: bytes, bytes_max: int) -> bytes:
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(body, bytes_max + 1)
    except zlib.error as error:
        raise ContentError("body", f"is not zlib: {error}") from error
    return _checked(plain, stream.eof, stream.unused_data, bytes_max)


def _decompress_lz4(body: bytes, bytes_max: int) -> bytes:
    stream = lz4.frame.LZ4FrameDecompressor()
    try:
        plain: bytes = stream.decompress(body, max_length=bytes_max + 1)
    except (RuntimeError, EOFError) as error:
        raise ContentError("body", f"is not an LZ4 frame: {error}") from error
    return _checked(plain, stream.eof, stream.unused_data or b"", bytes_max)


def _decompress_zstd(body: bytes, bytes_max: int) -> bytes:
    # A frame may ask for a window larger than anything that is accepted here.
    stream = zstandard.ZstdDecompressor(max_window_size=DECOMPRESSED_BODY_BYTES_MAX).decompressobj()
    parts: list[bytes] = []
    size = 0
    position = 0
    try:
        while position < len(body) and not stream.eof and size <= bytes_max:
            parts.append(stream.decompress(body[position : position + _ZSTD_STEP_BYTES]))
            size += len(parts[-1])
            position += _ZSTD_STEP_BYTES
    except zstandard.ZstdError as error:
        raise ContentError("body", f"is not zstd: {error}") from error
    behind = stream.unused_data + body[position:] if stream.eof else b""
    return _checked(b"".join(parts), stream.eof, behind, bytes_max)


def _checked(plain: bytes, complete: bool, behind: bytes, bytes_max: int) -> bytes:
    """Return a body that is complete, alone and not too large."""
    if len(plain) > bytes_max:
        raise ContentError("body", f"is more than {bytes_max} bytes when decompressed")
    if not complete:
        raise ContentError("body", "is cut off: the compressed data has no end")
    if behind:
        raise ContentError("body", f"has {len(behind)} bytes behind the compressed data")
    return plain
