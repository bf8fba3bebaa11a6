"""Sends and pulls in forms that the kernel does not decode."""

from __future__ import annotations

import pytest

from support.broker_rig import BrokerRig
from support.remoting import split_records
from support.samples import binary_request, json_request, pull_fields, send_fields

SUCCESS, SYSTEM_ERROR, NO_PERMISSION = 0, 1, 16


def test_a_lite_pull_is_a_pull() -> None:
    rig = BrokerRig()
    rig.store_some(b"a", b"b")
    fields = pull_fields(topic="T", queueId="0", queueOffset="0", sysFlag="20")
    answer = rig.ask(json_request(361, fields))
    assert answer.code == SUCCESS
    assert len(split_records(answer.body)) == 2
    waits = rig.begin(json_request(361, fields | {"queueOffset": "2", "sysFlag": "22"}))
    assert not waits.is_answered
    rig.store_some(b"c")
    rig.turns()
    assert waits.answer.code == SUCCESS


def test_lite_pull_can_be_off() -> None:
    rig = BrokerRig(lite_pull=False)
    answer = rig.ask(json_request(361, pull_fields(topic="T", queueId="0")))
    assert (answer.code, "litePullMessageEnable" in str(answer.remark)) == (NO_PERMISSION, True)


@pytest.mark.parametrize("make", [json_request, binary_request])
def test_fields_that_are_missing_are_named(make: type) -> None:
    rig = BrokerRig()
    before = rig.store.log.wrote_offset
    for name in "abcdefgh":
        answer = rig.ask(make(310, send_fields(**{"b": "T", name: None}), b"x"))
        assert answer.code == SYSTEM_ERROR
        assert f".{name}" in str(answer.remark)
        assert answer.fields["MSG_REGION"] == "DefaultRegion"
    for name in ("topic", "queueOffset", "subVersion"):
        answer = rig.ask(make(11, pull_fields(**{"topic": "T", "queueId": "0", name: None})))
        assert answer.code == SYSTEM_ERROR
        assert name in str(answer.remark)
    assert rig.store.log.wrote_offset == before


@pytest.mark.parametrize("value", ["1.5", 1.5, "", "0x1", 2**40])
def test_numbers_that_are_none_are_named(value: object) -> None:
    rig = BrokerRig()
    answer = rig.ask(json_request(310, send_fields(b="T", e=value), b"x"))
    assert answer.code == SYSTEM_ERROR
    assert answer.remark
    assert rig.store.log.wrote_offset == 0
