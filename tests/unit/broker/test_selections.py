"""From a subscription to what the store asks of every message."""

from __future__ import annotations

from gantrymq.broker import selections
from gantrymq.wire.bodies.heartbeat import HEARTBEAT
from support.broker_rig import BrokerRig, pull
from support.client_peers import consumer, heartbeat, subscription
from support.remoting import split_records
from support.samples import json_request

FOUND = 0


def bodies(rig: BrokerRig, **fields: str) -> int:
    answer = rig.ask(pull(**fields))  # type: ignore[arg-type]
    return len(split_records(answer.body)) if answer.code == FOUND else 0


def test_tags_with_the_same_hash_are_left_to_the_client() -> None:
    rig = BrokerRig()
    for tag in ("AaAa", "BBBB", "C"):
        rig.store_some(tag.encode(), tags=tag)
    assert bodies(rig, subscription="AaAa") == 2
    assert bodies(rig, subscription="C || AaAa") == 3
    assert bodies(rig, subscription="*") == 3
    assert bodies(rig, subscription="") == 3
    assert bodies(rig, subscription="D") == 0


def test_sql92_looks_into_properties() -> None:
    rig = BrokerRig(property_filter=True)
    for number in range(6):
        rig.store_some(b"x", i=f"a\x01{number}")
    assert bodies(rig, subscription="a BETWEEN 2 AND 4", expressionType="SQL92") == 3
    assert bodies(rig, subscription="b IS NULL", expressionType="SQL92") == 6


def test_what_is_remembered_is_bounded() -> None:
    rig = BrokerRig()
    kept = rig.service._pulling._selections._kept
    for number in range(selections.KEPT_MAX + 10):
        rig.take(pull(subscription=f"tag{number}"))
    assert len(kept) <= selections.KEPT_MAX


def test_a_new_subscription_counts_at_once() -> None:
    rig = BrokerRig()
    rig.store_some(b"a", tags="A")
    rig.store_some(b"b", tags="B")
    for version, (tag, body) in enumerate((("A", b"a"), ("B", b"b"), ("A", b"a")), 1):
        beat = heartbeat("c", consumer("group", subscription("T", tag, version=version)))
        rig.ask(json_request(34, {}, HEARTBEAT.encode(beat)))
        answer = rig.ask(pull(sysFlag="0", subVersion=str(version)))
        (record,) = split_records(answer.body)
        assert body + b"\x01T" in record
