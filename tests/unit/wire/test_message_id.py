from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.model.message import Host
from gantrymq.model.queue import LogOffset
from gantrymq.wire.hosts import encode_host
from gantrymq.wire.message_id import OffsetId, UniqueKey, UniqueKeys, offset_id_text


def ms(year: int, month: int, day: int, milliseconds: int = 0) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp()) * 1000 + milliseconds


class Clock:
    def __init__(self, now: int) -> None:
        self.now = now

    def now_ms(self) -> int:
        return self.now

    def monotonic(self) -> float:
        return 0.0


@pytest.mark.parametrize(
    ("host", "text"),
    [
        (Host("127.0.0.1", 20911), "7F000001000051AF0000000000000133"),
        (Host("fd00::2", 10911), "FD00000000000000000000000000000200002A9F0000000000000133"),
    ],
)
def test_offset_id(host: Host, text: str) -> None:
    assert offset_id_text(encode_host(host), 0x133) == text
    assert OffsetId.parse(text) == OffsetId(host, LogOffset(0x133))


@pytest.mark.parametrize(
    "text",
    [
        "C000020247964E0E2F2A4CB18D7F0352",
        "FD00000000000000000000000000000246CA4E0E2F2A4CB133250000",
    ],
)
def test_unique_key(text: str) -> None:
    key = UniqueKey.parse(text)
    assert key.text == text
    assert UniqueKey.parse(text.lower()) == key
    assert key.address in {"192.0.2.2", "fd00::2"}


def test_parts_of_a_unique_key() -> None:
    key = UniqueKey.parse("C000020247964E0E2F2A4CB18D7F0352")
    assert key == UniqueKey("192.0.2.2", 0x4796, 0x4E0E2F2A, 0x4CB18D7F, 0x0352)
    now = 1794777904512  # the born timestamp of that message
    assert abs(key.made_at_ms(now + 1000) - now) < 86_400_000


def test_made_last_month() -> None:
    key = UniqueKey("192.0.2.2", 1, 2, 29 * 86_400_000, 3)
    assert key.made_at_ms(ms(2026, 3, 1, 5)) == ms(2026, 2, 1) + 29 * 86_400_000
    assert key.made_at_ms(ms(2026, 3, 31)) == ms(2026, 3, 30)


@pytest.mark.parametrize("text", ["", "0", "XY" * 16, "C0 " * 16, "00" * 15, "00" * 17, "ü" * 32])
def test_texts_that_are_no_unique_key(text: str) -> None:
    with pytest.raises(InvalidValue, match="32 or 56"):
        UniqueKey.parse(text)


@pytest.mark.parametrize(
    "key",
    [UniqueKey("192.0.2.2", 65536, 0, 0, 0), UniqueKey("somewhere", 1, 1, 1, 1)],
)
def test_values_that_make_no_key(key: UniqueKey) -> None:
    with pytest.raises(InvalidValue, match="no unique key"):
        _ = key.text


@pytest.mark.parametrize("address", ["192.0.2.2", "fd00::2"])
def test_generator(address: str) -> None:
    clock = Clock(ms(2026, 11, 15, 250))
    keys = UniqueKeys(address, 0x12345, 0x1_0000_0007, clock)
    first = UniqueKey.parse(keys.next())
    assert first == UniqueKey(address, 0x2345, 7, 14 * 86_400_000 + 250, 0)
    assert UniqueKey.parse(keys.next()).count == 1
    clock.now = ms(2026, 12, 1, 1)
    assert UniqueKey.parse(keys.next()) == UniqueKey(address, 0x2345, 7, 1, 2)
    clock.now = ms(2026, 11, 30)
    assert UniqueKey.parse(keys.next()).month_ms == 29 * 86_400_000


def test_the_count_wraps() -> None:
    keys = UniqueKeys("192.0.2.2", 1, 2, Clock(ms(2026, 1, 1)))
    made = [keys.next() for _ in range(65537)]
    assert made[65536] == made[0]
    assert len(set(made)) == 65536
