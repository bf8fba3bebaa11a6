"""What the store tells: the gate, the disk, refusals, what waits."""

from __future__ import annotations

import pytest

from gantrymq.store.durations import BOUNDS_S, Durations
from support.broker_rig import BrokerRig, pull
from support.scraping import USED_BYTES, RigScrapes


def test_durations_fall_into_their_buckets() -> None:
    times = Durations()
    for seconds in (0.0, 0.000_001, 0.000_003, 0.001, 1.0, 100.0):
        times.add(seconds)
    below = dict(zip((*BOUNDS_S, float("inf")), times.below(), strict=True))
    assert below[0.000_001] == 1
    assert below[0.000_002] == 2
    assert below[0.000_004] == 3
    assert below[0.000_512] == 3
    assert below[0.001_024] == 4
    assert below[BOUNDS_S[-1]] == 5
    assert (below[float("inf")], times.count) == (6, 6)
    assert times.total_s == pytest.approx(101.001_004)


def test_every_duration_is_below_the_end_of_its_bucket() -> None:
    for place, bound in enumerate(BOUNDS_S):
        times = Durations()
        times.add(bound * 0.999)
        assert times.below()[place] == 1
        times.add(bound * 1.001)
        assert times.below()[place] == 1


def test_a_send_that_waits_for_the_disk_is_timed_at_the_gate() -> None:
    rig = BrokerRig({"flushDiskType": "SYNC_FLUSH"})
    scrape = RigScrapes(rig)
    asked = rig.begin_send(b"one")
    found = scrape()
    assert found.value("gantrymq_gate_waiting", side="disk") == 1
    assert found.value("gantrymq_waiting_sends") == 1
    assert found.value("rocketmq_processor_watermark", processor="send") == 1
    assert found.value("gantrymq_gate_wait_seconds_count") == 0
    rig.clock.jump(0.3)
    rig.settle()
    assert asked.answer.code == 0
    found = scrape()
    assert found.value("gantrymq_gate_waiting", side="disk") == 0
    assert found.value("gantrymq_gate_wait_seconds_count") == 1
    assert found.value("gantrymq_gate_wait_seconds_sum") == pytest.approx(0.3)
    assert found.value("gantrymq_gate_outcomes_total", status="PUT_OK") == 1
    assert found.value("gantrymq_flush_seconds_count") == 1
    assert found.value("gantrymq_append_seconds_count") == 1
    latency = {"request_code": "send_message"}
    assert "rocketmq_rpc_latency_count" not in found, f"{latency} is the router's to tell"


def test_a_disk_that_is_late_is_an_outcome() -> None:
    rig = BrokerRig({"flushDiskType": "SYNC_FLUSH"})
    rig.begin_send(b"one")
    rig.tick(10)
    found = RigScrapes(rig)()
    assert found.value("gantrymq_gate_outcomes_total", status="FLUSH_DISK_TIMEOUT") == 1


def test_refusals_are_told_by_cause() -> None:
    rig = BrokerRig({"flushDiskType": "SYNC_FLUSH"}, waiting_sends_max=1)
    scrape = RigScrapes(rig)
    rig.begin_send(b"one")
    answers = [rig.send(b"two").remark, rig.send(b"three").remark]
    assert all(remark is not None and remark.startswith("[OVERLOAD]") for remark in answers)
    found = scrape()
    assert found.value("gantrymq_busy_refusals_total", cause="OVERLOAD") == 2
    assert found.value("gantrymq_busy_refusals_total", cause="PC_SYNCHRONIZED") == 0


def test_a_busy_page_cache_is_a_cause() -> None:
    rig = BrokerRig()
    rig.store.page_cache.begin()
    rig.clock.jump(5)
    rig.store.page_cache.end()
    assert (rig.send(b"one").remark or "").startswith("[PC_SYNCHRONIZED]")
    found = RigScrapes(rig)()
    assert found.value("gantrymq_busy_refusals_total", cause="PC_SYNCHRONIZED") == 1


def test_held_pulls_and_pulls_are_counted() -> None:
    rig = BrokerRig()
    rig.send(b"one")
    rig.settle()
    rig.ask(pull(0))
    held = rig.begin(pull(1, sysFlag="6", suspendTimeoutMillis="20000"))
    found = RigScrapes(rig)()
    assert found.value("gantrymq_held_pulls") == 1
    assert found.value("gantrymq_pulls_total", result="found") == 1
    rig.send(b"two")
    rig.settle()
    assert held.is_answered
    assert RigScrapes(rig)().value("gantrymq_held_pulls") == 0


def test_the_log_is_told_by_its_offsets() -> None:
    rig = BrokerRig()
    rig.send(b"one")
    found = RigScrapes(rig)()
    end = rig.store.log.wrote_offset
    assert found.value("gantrymq_log_offset", point="end") == end
    assert found.value("gantrymq_log_offset", point="flushed") == 0
    assert found.value("rocketmq_storage_flush_behind_bytes") == end
    rig.settle(30)
    found = RigScrapes(rig)()
    assert found.value("rocketmq_storage_flush_behind_bytes") == 0
    assert found.value("gantrymq_log_offset", point="dispatched") == end
    assert found.value("gantrymq_dispatch_lag_bytes") == 0
    assert found.value("rocketmq_storage_size", storage_type="local") == USED_BYTES
    assert found.value("rocketmq_storage_message_reserve_time") >= 30_000


def test_a_store_that_takes_nothing_says_so() -> None:
    rig = BrokerRig()
    assert RigScrapes(rig)().value("gantrymq_store_writable") == 1
    rig.store.writability.forbid("disk", "it is broken")
    assert RigScrapes(rig)().value("gantrymq_store_writable") == 0
