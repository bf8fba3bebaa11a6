"""Readers behind the end of a queue: where they go, that it is said, and that it is counted."""

from __future__ import annotations

import pytest

from gantrymq.errors import ContentError
from gantrymq.model.group import OffsetBeyondEnd, SubscriptionGroup
from support.broker_rig import BrokerRig, pull
from support.samples import json_request

FAILED, MOVED, FOUND = 1, 21, 0
RUNTIME_INFO = 28


def rig_with(messages: int, policy: str = "") -> BrokerRig:
    rig = BrokerRig()
    rig.store_some(*(b"%d" % number for number in range(messages)))
    attributes = {"offset.beyond.end": policy} if policy else {}
    rig.broker.tables.groups.put(SubscriptionGroup("group", attributes=attributes))
    return rig


def test_by_default_a_reader_goes_on_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    rig = rig_with(3)
    answer = rig.ask(pull(10))
    assert (answer.code, answer.fields["nextBeginOffset"]) == (MOVED, "3")
    assert "group group asks for offset 10 of queue 0 of T, which ends at 3" in caplog.text
    assert rig.broker.tables.guard.beyond_total == 1
    assert b'"offsetsBeyondEndTotal":"1"' in (rig.ask(json_request(RUNTIME_INFO, {})).body or b"")


def test_a_reader_at_the_end_is_where_it_should_be() -> None:
    rig = rig_with(3)
    rig.ask(pull(3))
    rig.ask(pull(0))
    assert rig.broker.tables.guard.beyond_total == 0


def test_a_group_may_begin_again() -> None:
    answer = rig_with(3, "EARLIEST").ask(pull(10))
    assert (answer.code, answer.fields["nextBeginOffset"]) == (MOVED, "0")


def test_a_stopped_group_stays_so_when_the_queue_has_grown_and_after_a_restart() -> None:
    rig = rig_with(3, "STOP")
    answer = rig.ask(pull(5))
    assert answer.code == FAILED
    assert "reset the offset" in (answer.remark or "")
    rig.store_some(*(b"more" for _ in range(10)))
    assert rig.ask(pull(5)).code == FAILED, "3 and 4 would be skipped"
    rig.settle(1.0)
    again = rig.again()
    assert again.ask(pull(5)).code == FAILED
    assert len(again.broker.tables.guard.stopped) == 1
    assert again.ask(pull(3)).code == FOUND, "somebody has reset it"
    assert again.ask(pull(5)).code == FOUND
    assert not again.broker.tables.guard.stopped


def test_the_brokers_setting_is_for_groups_that_say_nothing() -> None:
    rig = BrokerRig(offset_beyond_end=OffsetBeyondEnd.STOP)
    rig.store_some(b"x")
    assert rig.ask(pull(9)).code == FAILED


def test_who_was_ahead_of_a_new_master_does_not_skip_what_comes_after() -> None:
    rig = rig_with(3)
    rig.broker.tables.offsets.commit("group", "T", 0, 6)
    rig.broker.tables.guard.promoted(rig.store.queues.ends())
    rig.store_some(*(b"new" for _ in range(10)))
    answer = rig.ask(pull(6))
    assert (answer.code, answer.fields["nextBeginOffset"]) == (MOVED, "3")
    assert rig.ask(pull(3)).code == FOUND
    assert rig.ask(pull(8)).code == FOUND, "once it is on this log, it goes on"
    assert rig.broker.tables.guard.beyond_total == 1


def test_who_commits_what_the_old_master_had_skips_nothing() -> None:
    """A caught-up consumer commits the offset that it asks for, by its timer and with its pull."""
    rig = rig_with(3)
    rig.broker.tables.guard.promoted(rig.store.queues.ends())
    rig.store_some(*(b"new" for _ in range(10)))
    offsets = rig.broker.tables.offsets
    offsets.commit("group", "T", 0, 6)
    assert offsets.find("group", "T", 0) == 3, "3 to 5 are other messages here"
    answer = rig.ask(pull(6, sysFlag="5", commitOffset="6"))
    assert (answer.code, answer.fields["nextBeginOffset"]) == (MOVED, "3")
    assert offsets.find("group", "T", 0) == 3, "for a member that begins now"
    again = rig.ask(pull(6, sysFlag="5", commitOffset="6"))
    assert (again.code, again.fields["nextBeginOffset"]) == (MOVED, "3"), "it did not listen"
    assert rig.ask(pull(3, sysFlag="5", commitOffset="3")).code == FOUND
    assert rig.ask(pull(8, sysFlag="5", commitOffset="8")).code == FOUND
    assert offsets.find("group", "T", 0) == 8, "it has come by, and is believed"


def test_a_group_that_wants_to_be_stopped_is_although_it_commits() -> None:
    rig = rig_with(3, "STOP")
    rig.broker.tables.guard.promoted(rig.store.queues.ends())
    rig.store_some(*(b"new" for _ in range(10)))
    assert rig.ask(pull(6, sysFlag="5", commitOffset="6")).code == FAILED
    assert rig.broker.tables.offsets.find("group", "T", 0) == 3


def test_who_has_read_a_new_master_by_way_of_a_slave_reads_again() -> None:
    """Nobody can tell it from one that has read the old master; twice is better than never."""
    rig = rig_with(3)
    rig.broker.tables.guard.promoted(rig.store.queues.ends())
    rig.store_some(*(b"new" for _ in range(10)))
    rig.broker.tables.offsets.commit("group", "T", 0, 8)
    answer = rig.ask(pull(8))
    assert (answer.code, answer.fields["nextBeginOffset"]) == (MOVED, "3")
    assert rig.ask(pull(3)).code == FOUND


def test_where_an_operator_sends_a_group_it_stays() -> None:
    rig = rig_with(3)
    rig.broker.tables.guard.promoted(rig.store.queues.ends())
    rig.store_some(*(b"new" for _ in range(10)))
    rig.broker.tables.offsets.reset("group", "T", 0, 9)
    answer = rig.ask(pull(1))
    assert (answer.code, answer.fields["nextBeginOffset"]) == (MOVED, "9")
    assert rig.ask(pull(9)).code == FOUND


def test_a_file_that_is_none_is_refused() -> None:
    with pytest.raises(ContentError):
        BrokerRig().broker.tables.guard.load(b'{"stopped":[1]}')
