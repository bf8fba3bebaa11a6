"""A pull that waited is let in anew: what an operator changed meanwhile holds for it, too."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.topic import Perm
from support.broker_rig import BrokerRig, pull

if TYPE_CHECKING:
    from collections.abc import Callable

NO_PERMISSION, GROUP_NOT_EXIST, INVALID = 16, 26, 29
PARKED: dict[str, Any] = {
    "sysFlag": 6,
    "suspendTimeoutMillis": 15_000,
    "queueId": "1",
    "consumerGroup": "Readers",
}
TOPIC = "T"


def change_topic(rig: BrokerRig, **changed: object) -> None:
    topics = rig.broker.tables.topics
    topic = topics.find(TOPIC)
    assert topic is not None
    topics.put(msgspec.structs.replace(topic, **changed))


def write_only(rig: BrokerRig) -> None:
    change_topic(rig, perm=Perm.WRITE)


def fewer_queues(rig: BrokerRig) -> None:
    change_topic(rig, read_queues=1)


def group_off(rig: BrokerRig) -> None:
    rig.broker.tables.groups.put(SubscriptionGroup("Readers", consume_enabled=False))


def group_deleted(rig: BrokerRig) -> None:
    rig.broker.tables.groups.remove("Readers")


def forbidden(rig: BrokerRig) -> None:
    settings = rig.broker.settings
    settings.now = replace(settings.now, permission=int(Perm.WRITE))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (write_only, NO_PERMISSION),
        (fewer_queues, INVALID),
        (group_off, NO_PERMISSION),
        (group_deleted, GROUP_NOT_EXIST),
        (forbidden, NO_PERMISSION),
    ],
)
def test_who_may_not_read_any_more_gets_no_message(
    change: Callable[[BrokerRig], None], code: int
) -> None:
    rig = BrokerRig(creates_groups=False)
    rig.broker.tables.groups.put(SubscriptionGroup("Readers"))
    asked = rig.begin(pull(0, **PARKED))
    other = rig.begin(pull(0, **PARKED))
    assert not asked.is_answered
    change(rig)
    rig.store_some(b"not for you", e="1")
    assert asked.answer.code == code
    assert asked.answer.body == b""
    assert asked.answer.remark
    assert other.answer.code == code
    assert len(rig.broker.held) == 0


def test_who_may_still_read_gets_it_under_the_new_settings() -> None:
    rig = BrokerRig()
    asked = rig.begin(pull(0, **PARKED))
    change_topic(rig, read_queues=9)
    rig.store_some(b"for you", e="1")
    assert asked.answer.code == 0
    assert b"for you" in asked.answer.body


def test_at_the_end_of_its_time_it_is_told_too() -> None:
    rig = BrokerRig()
    asked = rig.begin(pull(0, **PARKED))
    write_only(rig)
    rig.tick(15.1)
    assert asked.answer.code == NO_PERMISSION
