"""How long puts take, as operators see it: counted once each, slow ones in the log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from gantrymq.store.status import PutStatus
from support.broker_rig import BrokerRig
from support.store_rig import BORN_HOST, Rig, frames, sync_rig

if TYPE_CHECKING:
    from collections.abc import Mapping


def table(rig: Rig | BrokerRig) -> dict[str, int]:
    """Return the distribution of put times once a minute is over, without its zeros."""
    rig.clock.jump(61)
    rig.store.statistics.sample()
    text = rig.store.statistics.runtime()["putMessageDistributeTime"]
    counts = {label: int(count) for label, count in re.findall(r"(\[[^\]]+\]):(\d+)", text)}
    return {label: count for label, count in counts.items() if count}


def told(figures: Mapping[str, str], *names: str) -> list[int]:
    """Return some figures."""
    return [int(figures[name]) for name in names]


def lane(rig: Rig, *bodies: bytes) -> None:
    """Send messages as the lane takes them."""
    buffer = frames(bodies)
    assert rig.store.append_sends(buffer, 0, len(buffer), BORN_HOST).requests == len(bodies)


def slow_append(rig: Rig, seconds: float) -> None:
    """Let the next append take so long: it needs a new file, and forcing that is slow."""
    rig.disk.on_sync = lambda _path: rig.clock.jump(seconds)
    lane(rig, b"slow")
    rig.disk.on_sync = None


def test_a_known_run_of_a_broker_is_counted_exactly() -> None:
    rig = BrokerRig()
    for _ in range(3):
        rig.send(b"lane")
    for _ in range(2):
        rig.send(b"policy", i="WAIT\x01false")
    rig.send(b"delayed", i="DELAY\x013")
    rig.store.writability.forbid("test", "not now")
    for _ in range(4):
        assert rig.send(b"refused").code == 14
    rig.store.writability.allow("test")
    rig.turns()
    rig.broker.counting.collect()
    figures = rig.store.statistics.runtime()
    assert told(figures, "putMessageTimesTotal", "putMessageFailedTimes") == [6, 4]
    assert int(figures["putMessageSizeTotal"]) == rig.store.log.wrote_offset
    topics = {topic: count for topic, (count, _) in rig.store.statistics.topics.items()}
    assert topics == {"T": 5, "SCHEDULE_TOPIC_XXXX": 1}
    assert table(rig) == {"[<=0ms]": 10}


def test_a_put_that_waits_is_as_long_as_its_wait() -> None:
    rig = sync_rig()
    lane(rig, b"a", b"b")
    out = rig.hold(rig.put(b"c"))  # one answer for three
    rig.clock.jump(0.3)
    rig.log_flush.drain()
    assert out == [PutStatus.PUT_OK]
    assert told(rig.store.statistics.runtime(), "putMessageEntireTimeMax") == [300]
    assert table(rig) == {"[200~500ms]": 3}


def test_a_put_that_need_not_wait_does_not_seem_to() -> None:
    rig = sync_rig()
    assert rig.hold(rig.put(b"x"), waits=False) == [PutStatus.PUT_OK]
    rig.clock.jump(3)
    rig.log_flush.drain()
    assert table(rig) == {"[<=0ms]": 1}


def test_a_late_answer_is_no_failed_put_and_an_unknown_one_is() -> None:
    rig = sync_rig()
    late = rig.hold(rig.put(b"late"))
    rig.tick(6)
    assert late == [PutStatus.FLUSH_DISK_TIMEOUT]
    assert told(rig.store.statistics.runtime(), "putMessageFailedTimes") == [0]
    rig.disk.on_sync = _broken
    unknown = rig.hold(rig.put(b"unknown"))
    rig.log_flush.drain()
    assert unknown == [PutStatus.UNKNOWN_ERROR]
    assert told(rig.store.statistics.runtime(), "putMessageFailedTimes") == [1]


def _broken(_path: object) -> None:
    raise OSError(5, "the disk is broken")


def test_an_append_that_holds_everybody_up_is_said(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig()
    slow_append(rig, 0.2)
    assert "append took" not in caplog.text
    rig = Rig()
    slow_append(rig, 0.7)
    took = told(rig.store.statistics.runtime(), "putMessageEntireTimeMax")[0]
    assert took > 500
    assert f"an append took {took} ms" in caplog.text


def test_many_late_answers_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    rig = sync_rig()
    outs = [rig.hold(rig.put(b"x")) for _ in range(50)]
    rig.clock.jump(0.6)
    rig.log_flush.drain()
    assert outs == [[PutStatus.PUT_OK]] * 50
    assert caplog.text.count("waited 600 ms for the disk or a slave (PUT_OK)") == 1
    assert table(rig) == {"[500ms~1s]": 50}


@pytest.mark.parametrize("changes", [{}, {"flushDiskType": "SYNC_FLUSH"}])
def test_a_refused_put_is_a_failed_one(changes: dict[str, str]) -> None:
    rig = Rig(changes)
    assert rig.put(b"x", topic="t" * 200).status is PutStatus.MESSAGE_ILLEGAL
    figures = rig.store.statistics.runtime()
    assert told(figures, "putMessageTimesTotal", "putMessageFailedTimes") == [0, 1]
