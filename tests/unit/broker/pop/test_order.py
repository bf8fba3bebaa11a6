"""What orderly pops keep is bounded, however many groups there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.broker.pop import order
from gantrymq.broker.pop.offsets import QueueKey
from gantrymq.broker.pop.order import OrderInfo
from gantrymq.testing.clock import VirtualClock

if TYPE_CHECKING:
    import pytest


def test_the_oldest_batch_is_given_up_where_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(order, "BATCHES_MAX", 3)
    kept = OrderInfo(VirtualClock())
    keys = [QueueKey(f"g{number}", "T", 0) for number in range(5)]
    for key in keys:
        kept.handed_out(key, None, 1, 60_000_000_000_000, [7])
    assert [kept.is_blocked(key, None) for key in keys] == [False, False, True, True, True]
