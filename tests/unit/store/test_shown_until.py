"""With failover, consumers are shown what everybody has who may become master, and no more."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import pytest

from gantrymq.store import live_dispatch
from gantrymq.store.promotion import dispatch_all, whole_end
from support.store_rig import Rig, sync_rig

if TYPE_CHECKING:
    from collections.abc import Callable


class Behind:
    """Slaves that have the log up to an offset."""

    def __init__(self, rig: Rig) -> None:
        self._store = rig.store
        self._store.replicas = self
        self.until: int | None = 0

    def is_available(self, _end: int) -> bool:
        return True

    def moved(self) -> None: ...

    def shown_until(self) -> int | None:
        return self.until

    def have(self, offset: int | None) -> None:
        self.until = offset
        self._store.retry_dispatch()


@pytest.mark.parametrize("made", [Rig, sync_rig])
def test_a_message_is_shown_when_slaves_have_all_of_it(made: type[Rig]) -> None:
    rig = made()
    slaves = Behind(rig)
    first, second = rig.put(b"one"), rig.put(b"two")
    rig.settle()
    assert rig.bodies() == []
    slaves.have(first.end)
    assert rig.bodies() == [b"one"]
    slaves.have(second.end - 1)
    assert rig.bodies() == [b"one"]
    slaves.have(second.end)
    assert rig.bodies() == [b"one", b"two"]
    slaves.have(None)
    rig.put(b"three")
    rig.settle()
    assert rig.bodies() == [b"one", b"two", b"three"]


def test_queue_offsets_go_on_behind_what_is_not_shown() -> None:
    rig = Rig()
    slaves = Behind(rig)
    assert [rig.put(b"x").queue_offset for _ in range(3)] == [0, 1, 2]
    slaves.have(None)
    assert rig.bodies() == [b"x"] * 3


def test_what_was_not_shown_is_there_after_a_clean_stop() -> None:
    rig = Rig()
    Behind(rig)
    rig.put(b"one")
    assert rig.store.close()
    again = rig.again(rig.disk)
    assert again.report.clean
    assert again.bodies() == [b"one"]


def test_much_that_was_held_back_is_shown_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: deque[Callable[[], None]] = deque()
    rig = Rig(soon=turns.append)
    monkeypatch.setattr(live_dispatch, "SLICE_BYTES", 1000)
    slaves = Behind(rig)
    sent = [b"%d" % number for number in range(30)] + [bytes(3000), b"last"]
    for body in sent:
        rig.put(body)
    slaves.have(None)
    shown = [len(rig.bodies())]
    while turns:
        turns.popleft()()
        shown.append(len(rig.bodies()))
    assert rig.bodies() == sent
    parts = sorted(set(shown))
    assert 0 < parts[0] < 15, "others have their turn before all is done"
    assert len(parts) > 3


def test_what_comes_meanwhile_does_not_fall_further_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns: deque[Callable[[], None]] = deque()
    rig = Rig(soon=turns.append)
    monkeypatch.setattr(live_dispatch, "SLICE_BYTES", 500)
    slaves = Behind(rig)
    for _ in range(30):
        rig.put(b"held back")
    slaves.have(None)
    behind = []
    for _ in range(40):
        for _ in range(20):  # far more than a slice in each turn
            rig.put(b"new")
        for _ in range(len(turns)):
            turns.popleft()()
        behind.append(rig.store.log.committed_offset - rig.store.dispatched_offset)
    assert behind[0] > 1000
    assert behind[-1] == 0, "while messages come, too, all is shown at last"


@pytest.mark.parametrize("role", ["SLAVE", "SYNC_MASTER"])
def test_where_an_epoch_begins_is_behind_every_slice(
    role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too early, and the others would drop what is acknowledged."""
    turns: deque[Callable[[], None]] = deque()
    rig = Rig({"brokerRole": role}, soon=turns.append)
    monkeypatch.setattr(live_dispatch, "SLICE_BYTES", 500)
    slaves = Behind(rig)
    rig.store.writability.is_slave = False
    for _ in range(30):
        rig.put(b"held back")
    rig.store.writability.is_slave = role == "SLAVE"
    slaves.until = None
    end = rig.store.log.wrote_offset
    if role == "SLAVE":
        assert whole_end(rig.store) == end
        return
    assert whole_end(rig.store) < end, "a master that serves has time"
    dispatch_all(rig.store)
    assert whole_end(rig.store) == end


def test_a_turn_of_any_size_can_be_read_when_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: deque[Callable[[], None]] = deque()
    rig = Rig(soon=turns.append)
    monkeypatch.setattr(live_dispatch, "SLICE_BYTES", 500)
    rig.put(b"the first")
    while turns:
        turns.popleft()()
    for _ in range(40):
        rig.put(b"x")
    for _ in range(len(turns)):
        turns.popleft()()
    assert len(rig.bodies()) == 41
