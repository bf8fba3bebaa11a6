"""The extension of a consume queue; a file has 100 bytes here."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantrymq.store.consume_queue_ext import ConsumeQueueExt, ExtUnit, is_ext_address
from gantrymq.store.queue_files import write_out
from gantrymq.testing.disk import SimulatedFiles

DIRECTORY = Path("/store/consumequeue_ext/T/0")
FIRST, SECOND = DIRECTORY / f"{0:020d}", DIRECTORY / f"{100:020d}"
BASE = -(2**63)
FILE_BYTES = 100
UNITS = [ExtUnit(-5 + number, 1000 + number, bytes([number] * 14)) for number in range(7)]
"""Units of 34 bytes, of which two fit into a file."""


@pytest.fixture
def disk() -> SimulatedFiles:
    return SimulatedFiles()


def new(disk: SimulatedFiles, file_bytes: int = FILE_BYTES) -> ConsumeQueueExt:
    return ConsumeQueueExt(DIRECTORY, file_bytes, disk)


def filled(disk: SimulatedFiles) -> tuple[ConsumeQueueExt, list[int]]:
    extension = new(disk)
    addresses = [extension.append(unit) for unit in UNITS]
    return extension, [address for address in addresses if address is not None]


def save(extension: ConsumeQueueExt, disk: SimulatedFiles) -> None:
    end = extension.max_address
    write_out(disk, extension.pending_writes())
    extension.wrote_out(end)


def recovered(disk: SimulatedFiles, last_address: int = 0) -> ConsumeQueueExt:
    extension = new(disk)
    extension.load()
    extension.recover(last_address)
    return extension


def test_addresses_are_lower_than_any_tag() -> None:
    assert is_ext_address(BASE)
    assert is_ext_address(-2147483649)
    assert not is_ext_address(-2147483648)


def test_units_go_to_the_next_file_with_room_to_spare(disk: SimulatedFiles) -> None:
    extension, addresses = filled(disk)
    starts = [0, 34, 100, 134, 200, 234, 300]
    assert addresses == [BASE + start for start in starts]
    assert [extension.read(address) for address in addresses] == UNITS
    save(extension, disk)
    assert [extension.read(address) for address in addresses] == UNITS
    assert disk.read(FIRST) == (
        bytes.fromhex("0022 fffffffffffffffb 00000000000003e8 000e") + bytes(14)
        + bytes.fromhex("0022 fffffffffffffffc 00000000000003e9 000e") + bytes([1] * 14)
        + b"\xff\xff" + bytes(30)
    )  # fmt: skip


@pytest.mark.parametrize(("bitmap_bytes", "start"), [(28, 34), (29, 100)])
def test_four_bytes_stay_free(disk: SimulatedFiles, bitmap_bytes: int, start: int) -> None:
    extension = new(disk)
    extension.append(UNITS[0])
    # 100 - 34 - 4 = 62 bytes are free; the head of a unit has 20.
    assert extension.append(ExtUnit(1, 2, bytes(bitmap_bytes + 14))) == BASE + start


def test_a_unit_that_fits_nowhere_is_refused(disk: SimulatedFiles) -> None:
    assert new(disk).append(ExtUnit(1, 2, bytes(77))) is None
    assert new(disk).append(ExtUnit(1, 2, bytes(76))) == BASE
    large = new(disk, 1 << 20)
    assert large.append(ExtUnit(1, 2, bytes(32768 - 20))) is None
    assert large.append(ExtUnit(1, 2, bytes(32767 - 20))) == BASE
    assert large.append(ExtUnit(1, 2, b"")) == BASE + 32767


def test_addresses_without_a_unit(disk: SimulatedFiles) -> None:
    extension, addresses = filled(disk)
    for address in (0, 5, -2147483648, addresses[-1] + 34, addresses[0] + 1, BASE - 1):
        assert extension.read(address) is None


@pytest.mark.parametrize("last", range(7))
def test_recovery_goes_by_the_last_reference(disk: SimulatedFiles, last: int) -> None:
    extension, addresses = filled(disk)
    save(extension, disk)
    again = recovered(disk, addresses[last])
    assert again.max_address == addresses[last] + 34
    assert [again.read(address) for address in addresses] == [
        *UNITS[: last + 1], *[None] * (6 - last),
    ]  # fmt: skip


def test_recovery_without_a_reference_walks(disk: SimulatedFiles) -> None:
    extension, addresses = filled(disk)
    save(extension, disk)
    again = recovered(disk)
    assert again.max_address == addresses[-1] + 34
    assert not again.is_pending
    assert again.append(UNITS[0]) == BASE + 334
    disk.write_at(SECOND, 34, bytes(66), FILE_BYTES)
    assert recovered(disk).max_address == addresses[-1] + 34
    disk.write_at(SECOND, 0, b"\0\x13", FILE_BYTES)  # a size that no unit has
    assert recovered(disk).max_address == BASE + 68
    assert disk.names(DIRECTORY) == [FIRST.name]


def test_recovery_of_nothing(disk: SimulatedFiles) -> None:
    extension = recovered(disk)
    assert (extension.min_address, extension.max_address) == (BASE, BASE)
    assert not extension.truncate_behind(BASE)
    assert extension.delete() == []


def test_units_after_recovery_end_with_zeros(disk: SimulatedFiles) -> None:
    """Apache would take what follows for the size of a unit."""
    extension, addresses = filled(disk)
    save(extension, disk)
    again = recovered(disk, addresses[0])
    again.append(ExtUnit(9, 9, b"abc"))
    save(again, disk)
    assert disk.read(FIRST)[54:77] == b"abc" + bytes(20)


def test_expiry(disk: SimulatedFiles) -> None:
    extension, addresses = filled(disk)
    save(extension, disk)
    assert extension.files_before(addresses[1])[1] == []
    assert extension.files_before(-5) == (0, []), "no address"
    assert extension.files_before(addresses[3])[1] == [FIRST]
    extension.drop_files(extension.files_before(addresses[3])[0])
    assert extension.min_address == BASE + 100
    assert extension.read(addresses[0]) is None
    assert extension.read(addresses[2]) == UNITS[2]
    assert extension.delete()[0] == SECOND
    assert extension.delete()[-1] == DIRECTORY


def test_syncs(disk: SimulatedFiles) -> None:
    extension, _addresses = filled(disk)
    save(extension, disk)
    assert [Path(one.path) for one in extension.pending_syncs()][:2] == [FIRST, SECOND]
    extension.synced(extension.written_address)
    assert extension.pending_syncs() == []
