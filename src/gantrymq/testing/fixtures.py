"""Fixtures for pytest. In your `conftest.py`:

    pytest_plugins = ["gantrymq.testing.fixtures"]

    def test_order(gantrymq_broker):
        asyncio.run(place_order(gantrymq_broker.namesrv))
        assert len(gantrymq_broker.messages("Orders")) == 1

They are not registered by an entry point: that would be imported by every run of pytest in the
environment, whether it uses them or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gantrymq.testing.threaded import ThreadedBroker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["gantrymq_broker", "gantrymq_namesrv", "gantrymq_settings"]


@pytest.fixture
def gantrymq_settings() -> dict[str, str]:
    """Return settings of the broker, under RocketMQ's names; define your own to change them."""
    return {}


@pytest.fixture
def gantrymq_broker(tmp_path: Path, gantrymq_settings: dict[str, str]) -> Iterator[ThreadedBroker]:
    """Return a broker of this test's own, empty; it stops when the test ends."""
    with ThreadedBroker(directory=tmp_path / "gantrymq", settings=gantrymq_settings) as broker:
        yield broker


@pytest.fixture
def gantrymq_namesrv(gantrymq_broker: ThreadedBroker) -> str:
    """Return the address to give to clients."""
    return gantrymq_broker.namesrv
