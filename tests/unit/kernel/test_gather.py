"""Records copied by way of consume queue units: the body of a pull's answer."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.kernel.values import PRE_BLANK_SIZE, Gathered

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel

LOG = bytes(range(100))
BASE = 1000
ALL = 1 << 20
EXTENSION = -(2**31) - 1


def units(*parts: tuple[int, int, int]) -> bytes:
    return b"".join(struct.pack(">qiq", BASE + at, size, tag) for at, size, tag in parts)


QUEUE = units((0, 10, 1), (20, 5, 2), (40, 10, 1), (70, 30, 3))


def gather(
    kernel: Kernel,
    queue: bytes = QUEUE,
    hashes: tuple[int, ...] = (),
    messages_max: int = 32,
    bytes_max: int = ALL,
    log_end: int = len(LOG),
) -> Gathered:
    return kernel.gather_records(
        queue, 0, len(queue), LOG, 0, log_end, BASE, hashes, messages_max, bytes_max
    )


def test_records_lie_behind_one_another(kernel: Kernel) -> None:
    found = gather(kernel)
    assert found == Gathered(LOG[0:10] + LOG[20:25] + LOG[40:50] + LOG[70:100], 4, 80, 1070)
    assert type(found) is Gathered


def test_tags_choose(kernel: Kernel) -> None:
    assert gather(kernel, hashes=(1, 9)) == Gathered(LOG[0:10] + LOG[40:50], 2, 80, 1040)
    assert gather(kernel, hashes=(9,)) == Gathered(b"", 0, 80, -1)


def test_as_many_as_asked_for(kernel: Kernel) -> None:
    assert gather(kernel, messages_max=2) == Gathered(LOG[0:10] + LOG[20:25], 2, 40, 1020)


def test_as_many_bytes_and_at_least_one(kernel: Kernel) -> None:
    assert gather(kernel, bytes_max=15).messages == 2
    assert gather(kernel, bytes_max=14).messages == 1
    assert gather(kernel, bytes_max=1) == Gathered(LOG[0:10], 1, 20, 1000)


def test_a_record_that_is_not_here_ends_it(kernel: Kernel) -> None:
    assert gather(kernel, log_end=99).messages == 3
    assert gather(kernel, log_end=44) == Gathered(LOG[0:10] + LOG[20:25], 2, 40, 1020)
    assert gather(kernel, units((-1, 10, 1))) == Gathered(b"", 0, 0, -1)


def test_blank_units_are_passed_over_and_empty_ones_end_it(kernel: Kernel) -> None:
    blank = units((0, PRE_BLANK_SIZE, 1), (5, 5, 1), (0, 0, 0), (20, 5, 1))
    assert gather(kernel, blank) == Gathered(LOG[5:10], 1, 40, 1005)


def test_an_address_in_the_extension_is_for_python(kernel: Kernel) -> None:
    queue = units((0, 5, 1), (10, 5, EXTENSION), (20, 5, 1))
    assert gather(kernel, queue, hashes=(1,)) == Gathered(LOG[0:5], 1, 20, 1000)
    assert gather(kernel, queue).messages == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"messages_max": 0}, "gather: messages_max must be positive"),
        ({"bytes_max": 0}, "gather: bytes_max must be positive"),
        ({"hashes": (2**31,)}, "gather: hashes must be 32-bit numbers"),
    ],
)
def test_what_cannot_be(kernel: Kernel, change: dict[str, int], said: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        gather(kernel, **change)  # type: ignore[arg-type]
    assert str(caught.value) == said


def test_the_log_offset_must_be_known(kernel: Kernel) -> None:
    with pytest.raises(InvalidValue, match=r"^gather: log_base must be known$"):
        kernel.gather_records(QUEUE, 0, 80, LOG, 0, 100, -1, (), 1, 1)
