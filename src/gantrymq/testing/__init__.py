"""What a test of gantrymq, or of a program that uses it, puts in place of clock, disk and servers.

`TestBroker` and `ThreadedBroker` are a broker and its name server inside a test; `fixtures` has
them for pytest. They are loaded when they are asked for: a test of the clock needs no broker.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gantrymq.testing.clock import RunningClock, VirtualClock

if TYPE_CHECKING:
    from gantrymq.testing.broker import TestBroker
    from gantrymq.testing.faults import READS, SENDS
    from gantrymq.testing.threaded import ThreadedBroker

__all__ = ["READS", "SENDS", "RunningClock", "TestBroker", "ThreadedBroker", "VirtualClock"]

_FROM = {"TestBroker": "broker", "ThreadedBroker": "threaded", "READS": "faults", "SENDS": "faults"}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module's attributes are of any type
    if name in _FROM:
        return getattr(import_module(f"{__name__}.{_FROM[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
