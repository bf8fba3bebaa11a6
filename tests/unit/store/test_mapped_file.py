"""A file of the log and its positions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.store.mapped_file import MappedFile

if TYPE_CHECKING:
    from gantrymq.store.files import Region

SIZE = 4096


class _Noted:
    """A map that keeps what is written to it, and in which order."""

    def __init__(self) -> None:
        self.path = Path("/file")
        self.size = SIZE
        self.buffer = self
        self.data = bytearray(SIZE)
        self.order: list[tuple[int, int]] = []

    def __setitem__(self, where: slice, data: memoryview) -> None:
        self.order.append((where.start, where.stop))
        self.data[where] = data


def test_a_commit_brings_the_head_of_its_first_record_last() -> None:
    region, buffer = _Noted(), memoryview(bytearray(range(256)) * 16)
    file = MappedFile(0, cast("Region", region), buffer)
    file.advance(1000)
    assert file.commit() == 1000
    assert region.order == [(8, 1000), (0, 8)], "a kill in between leaves no record"
    file.advance(2000)
    assert file.commit() == 1000
    assert region.order[2:] == [(1008, 2000), (1000, 1008)]
    assert region.data[:2000] == buffer[:2000]
    assert not any(region.data[2000:])
    file.advance(2004)
    assert file.commit() == 4
    assert file.commit() == 0
    assert region.data[:2004] == buffer[:2004]


def test_a_buffer_of_another_length_is_refused() -> None:
    with pytest.raises(InvalidValue, match="100 bytes for a file of 4096"):
        MappedFile(0, cast("Region", _Noted()), memoryview(bytearray(100)))


def test_positions_only_grow() -> None:
    file = MappedFile(0, cast("Region", _Noted()))
    file.advance(100)
    with pytest.raises(InvalidValue):
        file.advance(99)
    with pytest.raises(InvalidValue):
        file.advance(SIZE + 1)
