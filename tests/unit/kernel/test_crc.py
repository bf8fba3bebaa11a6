"""The check sum of bodies, whatever their length and place: long ones are folded by another way."""

from __future__ import annotations

import random
import zlib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel

LENGTHS = [*range(300), 1023, 1024, 1025, 4096, 65535, 1_000_003]


@pytest.mark.parametrize("offset", [0, 1, 7, 8])
def test_it_is_that_of_zlib(kernel: Kernel, offset: int) -> None:
    data = random.Random(7).randbytes(max(LENGTHS) + 8)
    for length in LENGTHS:
        part = memoryview(data)[offset : offset + length]
        assert kernel.crc32(part) == zlib.crc32(part) & 0x7FFFFFFF, length


@pytest.mark.parametrize("byte", [b"\0", b"\xff", b"a"])
def test_bytes_of_one_kind(kernel: Kernel, byte: bytes) -> None:
    for length in LENGTHS[:300]:
        assert kernel.crc32(byte * length) == zlib.crc32(byte * length) & 0x7FFFFFFF
