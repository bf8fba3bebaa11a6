"""Opening a store that was stopped cleanly: little is read, and doubts are followed up."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from gantrymq.kernel import Stop, kernel
from gantrymq.store import clean_walk
from gantrymq.store.put import PREPARED
from support.store_rig import LOG, ROOT, Rig

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from gantrymq.testing.disk import SimulatedFiles

FILE = 65536


def path_of(number: int) -> Path:
    return LOG / f"{number * FILE:020d}"


def stopped(count: int) -> Rig:
    """Return a store with so many messages, stopped."""
    rig = Rig({"mappedFileSizeCommitLog": str(FILE)})
    for number in range(count):
        rig.put(b"%03d" % number + bytes(900))
    assert rig.store.close()
    return rig


def numbers(rig: Rig) -> list[int]:
    return [int(body[:3]) for body in rig.bodies()]


def spoil(disk: SimulatedFiles, number: int, body: bytes) -> None:
    """Change a byte of a body in a file."""
    path = path_of(number)
    at = disk.read(path).index(body) + 500
    disk.write_at(path, at, b"X", 0)


def test_only_the_end_is_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clean_walk, "CLOSE_BYTES", 10_000)
    rig = stopped(200)
    again = rig.again(rig.disk)
    assert again.report.clean
    assert again.report.log_end.records <= 11
    assert again.report.log_end.offset == rig.store.log.wrote_offset
    assert numbers(again) == list(range(200))


def test_what_no_queue_has_is_found_behind_it() -> None:
    rig = Rig({"mappedFileSizeCommitLog": str(FILE)})
    rig.put(b"000")
    for _ in range(3):
        rig.put(b"half", sys_flag=PREPARED)
    end = rig.store.log.wrote_offset
    rig.store.close()
    again = rig.again(rig.disk)
    assert (again.report.log_end.offset, again.report.log_end.records) == (end, 4)


def test_damage_close_to_the_end_costs_one_message_and_not_the_rest_of_the_log() -> None:
    rig = stopped(20)
    spoil(rig.disk, 0, b"012")
    again = rig.again(rig.disk)
    assert again.report.clean
    assert again.report.log_end.offset == rig.store.log.wrote_offset
    found = again.store.get("T", 0, 0, 32)
    bodies = [kernel.decode_record(raw, 0, len(raw), True)[0].body for raw in found.records]
    assert [int(body[:3]) for body in bodies] == [*range(12), *range(13, 20)]
    assert found.next_offset == 20
    assert again.store.read_check.damaged == 1
    again.put(b"020")
    assert again.store.get("T", 0, 20, 32).messages == 1


def test_damage_to_the_last_message_ends_the_log_before_it() -> None:
    rig = stopped(20)
    spoil(rig.disk, 0, b"019")
    again = rig.again(rig.disk)
    assert again.report.log_end.stop is Stop.BAD_CRC
    assert numbers(again) == list(range(19))


def test_a_damaged_unit_does_not_hide_the_queue_behind_it() -> None:
    rig = stopped(20)
    path = ROOT / "consumequeue" / "T" / "0" / f"{0:020d}"
    for position in (0, 3, 8):
        disk = rig.disk.kill()
        disk.write_at(path, position, b"\x70", 0)
        assert numbers(rig.again(disk)) == list(range(20))
    disk = rig.disk.kill()
    disk.write_at(
        path.with_name(f"{200:020d}"), 9 * 20 + 7, b"\x05", 0
    )  # the last one: the log seems to end before that
    assert numbers(rig.again(disk)) == list(range(20))
    disk = rig.disk.kill()
    disk.write_at(path, 11, b"\x70", 0)  # a length that could be, and is not
    again = rig.again(disk)
    assert again.store.get("T", 0, 0, 32).messages == 19
    assert again.store.read_check.damaged == 1


def test_damage_further_back_costs_nobody_else_his_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clean_walk, "CLOSE_BYTES", 5_000)
    rig = stopped(50)
    spoil(rig.disk, 0, b"012")
    again = rig.again(rig.disk)
    found = again.store.get("T", 0, 40, 32)
    assert (found.min_offset, found.max_offset) == (0, 50)
    assert len(found.records) == 10


def test_a_queue_that_knows_more_than_there_is() -> None:
    rig = stopped(10)
    queue = ROOT / "consumequeue" / "T" / "0"
    end = rig.store.log.wrote_offset
    unit = struct.pack(">qiq", end + 5000, 500, 0)
    rig.disk.write_at(queue / f"{0:020d}", 9 * 20, unit, 0)  # in the place of the last one
    again = rig.again(rig.disk)
    assert again.report.log_end.offset == end
    assert numbers(again) == list(range(10))


def test_a_file_made_ahead_and_never_used() -> None:
    rig = stopped(10)
    rig.disk.place(path_of(1), bytes(FILE))
    again = rig.again(rig.disk)
    assert again.report.files_dropped == 1
    assert numbers(again) == list(range(10))
    again.put(b"010")
    assert numbers(again.again()) == list(range(11))


def test_stale_bytes_of_apache_are_wiped_and_zeros_are_left_alone() -> None:
    rig = stopped(10)
    end = rig.store.log.wrote_offset
    rig.disk.write_at(path_of(0), end + 300, b"stale", 0)
    again = rig.again(rig.disk)
    assert again.report.bytes_wiped == 305
    assert not any(again.disk.read(path_of(0))[end:])


def test_prepared_messages_alone_in_the_last_file() -> None:
    rig = Rig({"mappedFileSizeCommitLog": "4096"})
    rig.put(b"000" + bytes(3000))
    for _ in range(3):
        rig.put(b"half" + bytes(1000), sys_flag=PREPARED)
    end = rig.store.log.wrote_offset
    assert end > 4096
    rig.store.close()
    again = rig.again(rig.disk)
    assert (again.report.log_end.offset, again.report.log_end.records) == (end, 4)
    assert again.report.log_end.began_at == 0


def test_a_hole_before_a_later_file_is_not_taken_for_the_end() -> None:
    rig = stopped(100)
    end = rig.store.log.wrote_offset
    assert end > FILE
    again = rig.again(rig.disk)
    assert again.report.log_end.offset == end
    # The queue knows the first file alone, whose rest is gone; the second goes on behind it.
    disk = again.disk
    again.store.close()
    queue = ROOT / "consumequeue" / "T" / "0"
    for name in disk.names(queue)[3:]:
        disk.remove(queue / name)
    raw = disk.read(path_of(0))
    at = raw.index(b"040") - 88
    disk.write_at(path_of(0), at, bytes(FILE - at), 0)
    found = rig.again(disk)
    assert found.report.log_end.offset == at
    assert found.report.files_dropped == 1
