"""Touching pages, and finding records that a power cut has torn."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue
from support.samples import GOLDEN_RECORD, log_of

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.kernel.interface import Kernel

PAGE = 4096


def test_touching_changes_nothing(kernel: Kernel) -> None:
    target = bytearray(range(256)) * 64
    before = bytes(target)
    kernel.touch_pages(target, 100, len(target), 1000)
    assert target == before


def test_touching_reserves_the_pages_of_a_sparse_file(kernel: Kernel, tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("w+b") as file:
        file.truncate(64 * PAGE)
        with mmap.mmap(file.fileno(), 64 * PAGE) as target:
            kernel.touch_pages(target, 0, 32 * PAGE, PAGE)
            target.flush()
    assert path.stat().st_blocks * 512 >= 32 * PAGE, "they are on the disk now"
    assert not any(path.read_bytes())


@pytest.mark.parametrize(("position", "limit", "step"), [(0, 11, 1), (5, 4, 1), (0, 10, 0)])
def test_what_cannot_be_touched(kernel: Kernel, position: int, limit: int, step: int) -> None:
    with pytest.raises(InvalidValue):
        kernel.touch_pages(bytearray(10), position, limit, step)


def test_a_tear_is_found_where_it_begins(kernel: Kernel) -> None:
    records = [
        GOLDEN_RECORD._replace(body=b"x" * 300, properties=b"k" * count) for count in (40, 600, 40)
    ]
    ends = [len(log_of(records[:count])) for count in range(4)]
    raw = bytearray(log_of(records))
    assert kernel.find_torn(raw, 0, len(raw), 512) == -1
    border = -(-(ends[2] - 600) // 512) * 512
    raw[border : min(border + 512, ends[2])] = bytes(min(512, ends[2] - border))
    assert kernel.find_torn(raw, 0, len(raw), 512) == ends[1]
    assert kernel.find_torn(raw, ends[2], len(raw), 512) == -1


def test_a_sector_has_a_length(kernel: Kernel) -> None:
    with pytest.raises(InvalidValue, match="a sector"):
        kernel.find_torn(b"", 0, 0, 0)
