"""Send hooks: they see every send, may refuse one, and can break nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gantrymq.broker.hooks import HOOKS_MAX, SendContext
from gantrymq.errors import InvalidValue
from gantrymq.wire.response_errors import NoPermission
from support.broker_rig import BrokerRig

if TYPE_CHECKING:
    from gantrymq.broker.hooks import SendHook


class Seen:
    """Writes down what it is shown."""

    name = "seen"

    def __init__(self) -> None:
        self.before_it: list[SendContext] = []
        self.after_it: list[SendContext] = []

    def before(self, context: SendContext) -> None:
        self.before_it.append(replace(context))

    def after(self, context: SendContext) -> None:
        self.after_it.append(replace(context))


class Refusing(Seen):
    """Wants no topic T."""

    def before(self, context: SendContext) -> None:
        if context.topic == "T":
            raise NoPermission("not on a Sunday")


class Broken(Seen):
    """Fails on both sides."""

    name = "broken"

    def before(self, context: SendContext) -> None:
        raise RuntimeError(context.topic)

    def after(self, context: SendContext) -> None:
        raise RuntimeError(context.topic)


def rig_with(hook: SendHook, **store: str) -> BrokerRig:
    rig = BrokerRig(store)
    rig.broker.add_send_hook(hook)
    return rig


def test_an_ordinary_send_is_seen_before_and_after() -> None:
    hook = Seen()
    rig = rig_with(hook)
    answer = rig.send(b"hello")
    assert answer.code == 0
    (before,), (after,) = hook.before_it, hook.after_it
    assert (before.topic, before.body_bytes, before.code) == ("T", 5, None)
    assert before.client == rig.peer.address
    assert (after.code, after.message_id) == (0, answer.fields["msgId"])
    assert (after.queue_id, after.queue_offset) == (0, 0)


def test_a_send_that_waits_for_the_disk_is_seen_when_it_is_safe() -> None:
    hook = Seen()
    rig = rig_with(hook, flushDiskType="SYNC_FLUSH")
    rig.begin_send(b"hello")
    rig.turns()
    assert hook.after_it == []
    rig.settle()
    assert [one.code for one in hook.after_it] == [0]


def test_a_refused_send_is_not_stored_and_says_why() -> None:
    rig = rig_with(Refusing())
    answer = rig.send(b"hello")
    assert (answer.code, answer.remark) == (16, "not on a Sunday")
    assert rig.bodies() == []


def test_a_hook_that_fails_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    rig = rig_with(Broken())
    assert rig.send(b"hello").code == 0
    assert rig.bodies() == [b"hello"]
    assert len([one for one in caplog.records if "broken" in one.getMessage()]) == 2


def test_there_is_a_bound() -> None:
    rig = BrokerRig()
    for _ in range(HOOKS_MAX):
        rig.broker.add_send_hook(Seen())
    with pytest.raises(InvalidValue, match="send hooks already"):
        rig.broker.add_send_hook(Seen())
