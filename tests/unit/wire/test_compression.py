from __future__ import annotations

import tracemalloc
import zlib

import pytest
import zstandard

from gantrymq.errors import ProtocolError
from gantrymq.wire.compression import compress, decompress, plain_body
from gantrymq.wire.sysflag import Compression, with_compression

every_kind = pytest.mark.parametrize("kind", Compression)
BODY = b"to be, or not to be " * 1000


@every_kind
@pytest.mark.parametrize("body", [b"", b"x", BODY, bytes(1_000_000)])
def test_both_ways(kind: Compression, body: bytes) -> None:
    packed = compress(body, kind)
    assert decompress(packed, kind, len(body)) == body
    assert plain_body(packed, with_compression(0, kind)) == body


def test_uncompressed() -> None:
    assert plain_body(b"x\x9c not really", 0) == b"x\x9c not really"


def test_clients_that_set_one_bit_mean_zlib() -> None:
    assert plain_body(zlib.compress(b"body"), 1) == b"body"


@every_kind
def test_the_limit_is_exact(kind: Compression) -> None:
    packed = compress(BODY, kind)
    assert decompress(packed, kind, len(BODY)) == BODY
    with pytest.raises(ProtocolError, match="more than") as caught:
        decompress(packed, kind, len(BODY) - 1)
    assert caught.value.field == "body"


@every_kind
def test_a_bomb_does_not_grow(kind: Compression) -> None:
    bomb = compress(bytes(256 * 1024 * 1024), kind)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match="more than"):
            decompress(bomb, kind, 1024 * 1024)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * 1024 * 1024


def test_a_zstd_window_beyond_all_bounds_is_refused() -> None:
    wide = zstandard.ZstdCompressionParameters(window_log=30)
    stream = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    packed = stream.compress(b"body") + stream.flush()
    with pytest.raises(ProtocolError, match="not zstd"):
        decompress(packed, Compression.ZSTD)


@every_kind
def test_cut_off(kind: Compression) -> None:
    packed = compress(BODY, kind)
    for size in range(0, len(packed), 7):
        with pytest.raises(ProtocolError) as caught:
            decompress(packed[:size], kind)
        assert caught.value.field == "body"


@every_kind
@pytest.mark.parametrize("tail", [b"x", b"x" * 1000])
def test_bytes_behind(kind: Compression, tail: bytes) -> None:
    with pytest.raises(ProtocolError, match=f"{len(tail)} bytes behind"):
        decompress(compress(BODY, kind) + tail, kind)


@every_kind
def test_something_else(kind: Compression) -> None:
    with pytest.raises(ProtocolError, match="is not"):
        decompress(b"these bytes were never compressed", kind)
