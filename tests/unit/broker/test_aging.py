"""Requests that lay in their socket for too long: refused with the cause, and never silently."""

from __future__ import annotations

import pytest

from gantrymq.wire.bodies.heartbeat import HEARTBEAT
from gantrymq.wire.bodies.route import KV_TABLE
from support.broker_rig import BrokerRig, pull
from support.client_peers import FakePeer, heartbeat
from support.samples import binary_request, json_request, send_fields

SUCCESS, SYSTEM_ERROR, BUSY = 0, 1, 2


def old(waited_ms: int) -> FakePeer:
    peer = FakePeer(9)
    peer.waited_ms = waited_ms
    return peer


def behind(send_wait_ms: int = 200) -> BrokerRig:
    """Return a broker that has been behind for a second: it refused a pull that long ago."""
    rig = BrokerRig(send_wait_ms=send_wait_ms)
    assert rig.ask(pull(0), old(31_000)).code == BUSY
    rig.clock.jump(1.0)
    return rig


def sends(count: int, *, queue: str = "0", make: object = json_request) -> bytes:
    assert callable(make)
    return b"".join(
        make(310, send_fields(b="T", i="", e=queue), b"m%d" % number, opaque=number)
        for number in range(count)
    )


@pytest.mark.parametrize("queue", ["0", "-1"], ids=["lane", "policy"])
@pytest.mark.parametrize("make", [json_request, binary_request])
def test_old_sends_are_refused_and_not_stored(make: object, queue: str) -> None:
    rig = behind()
    answers = rig.begin(sends(3, queue=queue, make=make), old(250)).answers
    assert [(one.code, one.opaque) for one in answers] == [(BUSY, 0), (BUSY, 1), (BUSY, 2)]
    assert answers[0].remark == (
        "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
        "period in queue: 250ms, size of queue: 2"
    )
    assert answers[0].fields["MSG_REGION"] == "DefaultRegion"
    assert rig.bodies() == []
    figures = KV_TABLE.decode(rig.ask(json_request(28, {})).body).table
    assert figures["requestsRefusedForAgeTotal"] == "4"
    assert rig.send(b"later").code == SUCCESS, "others are not disturbed"
    assert rig.bodies() == [b"later"]


def test_one_stall_is_no_reason_to_refuse_what_came_meanwhile() -> None:
    rig = BrokerRig()
    answers = rig.begin(sends(3), old(2_999)).answers
    assert [one.code for one in answers] == [SUCCESS] * 3
    rig.clock.jump(2.0)
    assert rig.ask(sends(1), old(500)).code == SUCCESS, "the next one is a new one"
    assert rig.ask(sends(1), old(3_000)).code == BUSY, "nobody waits for its answer any more"
    assert rig.bodies() == [b"m0", b"m1", b"m2", b"m0"]


def test_sends_that_are_not_so_old_are_stored() -> None:
    rig = behind()
    answers = rig.begin(sends(3), old(199)).answers
    assert [one.code for one in answers] == [SUCCESS] * 3
    assert rig.bodies() == [b"m0", b"m1", b"m2"]


def test_every_kind_has_its_own_limit() -> None:
    rig = behind()
    rig.store_some(b"here")
    beat = json_request(34, {}, HEARTBEAT.encode(heartbeat("c", producers=["p"])), opaque=3)
    data = sends(1) + pull(0, opaque=2) + beat
    codes = {one.opaque: one.code for one in rig.begin(data, old(4_999)).answers}
    assert codes == {0: BUSY, 2: SUCCESS, 3: SUCCESS}
    codes = {one.opaque: one.code for one in rig.begin(data, old(5_000)).answers}
    assert codes == {0: BUSY, 2: BUSY, 3: SUCCESS}
    codes = {one.opaque: one.code for one in rig.begin(data, old(31_000)).answers}
    assert codes == {0: BUSY, 2: BUSY, 3: BUSY}
    offsets = json_request(30, {"topic": "T", "queueId": "0"})
    assert rig.ask(offsets, old(60_000)).code == SUCCESS, "a question is always answered"


def test_a_oneway_send_that_is_old_is_dropped() -> None:
    rig = behind()
    data = json_request(310, send_fields(b="T", i=""), b"x", flag=2) + sends(1)
    (answer,) = rig.begin(data, old(300)).answers
    assert (answer.opaque, answer.code) == (0, BUSY)
    assert rig.bodies() == []


def test_limits_can_be_changed_and_the_whole_turned_off() -> None:
    rig = behind(send_wait_ms=1_000)
    assert rig.ask(sends(1), old(900)).code == SUCCESS
    off = BrokerRig(fast_failure=False)
    assert off.ask(sends(1), old(90_000)).code == SUCCESS
    assert off.bodies() == [b"m0"]


def test_the_cause_is_the_page_cache_while_that_is_busy() -> None:
    rig = behind()
    watch = rig.store.page_cache
    watch.begin()
    rig.clock.jump(1.5)
    watch.end()
    answer = rig.ask(sends(1), old(3_400))
    assert answer.code == BUSY
    assert str(answer.remark).startswith("[PCBUSY_CLEAN_QUEUE]broker busy")
    answer = rig.ask(sends(1))
    assert answer.code == SYSTEM_ERROR
    assert str(answer.remark).startswith("[PC_SYNCHRONIZED]broker busy, start flow control")
    rig.clock.jump(1.1)
    assert rig.ask(sends(1)).code == SUCCESS


def test_a_pool_without_buffers_is_busy_and_says_so() -> None:
    rig = BrokerRig(
        {
            "transientStorePoolEnable": "true",
            "transientStorePoolSize": "1",
            "fastFailIfNoBufferInStorePool": "true",
        }
    )
    pool = rig.store.pool
    assert pool is not None
    assert pool.borrow() is not None, "the first file takes one when it is begun"
    answer = rig.send(b"x")
    assert answer.code == BUSY
    assert str(answer.remark).startswith("[REJECTREQUEST]system busy")
    assert "transientStorePoolSize" in str(answer.remark)
    assert answer.fields["MSG_REGION"] == "DefaultRegion"
