"""Pop consumption of a whole broker: handed out, acknowledged, handed out again."""

from __future__ import annotations

import errno
import json

import msgspec
import pytest

from gantrymq.model.queue import QueueId
from gantrymq.testing.disk import Operation
from gantrymq.wire.bodies.assignment import BATCH_ACK, BatchAck, BatchAckRequest
from gantrymq.wire.command import Command
from gantrymq.wire.properties import decode_properties
from support.client_peers import FakePeer
from support.timed_rig import TimedRig, decoded, handle_of, pop_fields

RETRY = "%RETRY%g_T"


def rig_with(*bodies: bytes, **more: object) -> TimedRig:
    rig = TimedRig(**more)  # type: ignore[arg-type]
    for body in bodies:
        assert rig.send(body).code == 0
    return rig


def bodies_of(answer: Command) -> list[bytes]:
    return [record.body for record in decoded(answer.body)]


def test_messages_are_handed_out_once_and_acknowledged() -> None:
    rig = rig_with(b"a", b"b")
    first = rig.pop()
    assert first.code == 0
    assert first.remark == "FOUND"
    assert bodies_of(first) == [b"a", b"b"]
    assert first.fields["startOffsetInfo"] == "0 0 0"
    assert first.fields["msgOffsetInfo"] == "0 0 0,1"
    assert "orderCountInfo" not in first.fields
    second = rig.pop()
    assert (second.code, second.remark, second.body) == (210, "NO_MESSAGE_IN_QUEUE", b"")
    assert rig.ack(0, handle_of(first)).code == 0
    assert rig.ack(1, handle_of(first)).code == 0
    rig.wait(30)
    assert rig.pop().code == 210
    assert rig.bodies(RETRY) == []


def test_what_is_not_acknowledged_comes_again_from_the_retry_topic() -> None:
    rig = rig_with(b"a", b"b")
    first = rig.pop(invisibleTime=5000)
    rig.ack(0, handle_of(first))
    rig.wait(4.5)
    assert rig.pop().code == 210
    rig.wait(3)
    again = rig.pop()
    (record,) = decoded(again.body)
    assert (record.body, record.topic, record.reconsume_times) == (b"b", b"T", 1)
    properties = decode_properties(record.properties)
    assert properties["1ST_POP_TIME"] == first.fields["popTime"]
    assert properties["POP_CK"].split(" ")[4:] == ["1", "broker-a", "0", "0"]
    assert again.fields["msgOffsetInfo"] == "1 0 0"
    assert rig.ack(0, properties["POP_CK"], topic=RETRY).code == 0
    rig.wait(30)
    assert rig.pop().code == 210


def test_what_fails_too_often_goes_to_the_dead_letters() -> None:
    rig = rig_with(b"a")
    rig.pop()
    group = rig.broker.tables.groups.find("g")
    assert group is not None
    rig.broker.tables.groups.put(msgspec.structs.replace(group, retry_times_max=2))
    times = 0
    for _ in range(8):
        rig.wait(12, step=1)
        times += rig.pop().code == 0
    assert times == 2
    assert rig.bodies("%DLQ%g") == [b"a"]


def test_more_time_is_a_new_handle_and_the_old_one_is_done_with() -> None:
    rig = rig_with(b"a")
    first = rig.pop(invisibleTime=3000)
    fields = {"consumerGroup": "g", "topic": "T", "queueId": 0, "offset": 0}
    changed = rig.ask(
        200053, **fields, extraInfo=handle_of(first), invisibleTime=20_000, suspend="true"
    )
    assert changed.code == 0
    assert changed.fields["invisibleTime"] == "20000"
    rig.wait(15)
    assert rig.pop().code == 210
    rig.wait(10)
    (record,) = decoded(rig.pop().body)
    assert record.reconsume_times == 0, "it was put off, and did not fail"


def test_the_new_handle_can_be_acknowledged() -> None:
    rig = rig_with(b"a")
    first = rig.pop(invisibleTime=3000)
    fields = {"consumerGroup": "g", "topic": "T", "queueId": 0, "offset": 0}
    changed = rig.ask(200053, **fields, extraInfo=handle_of(first), invisibleTime=5000)
    assert rig.ack(0, handle_of(changed, start=0)).code == 0
    rig.wait(20)
    assert rig.pop().code == 210


def test_several_are_acknowledged_at_once() -> None:
    rig = rig_with(*(b"%d" % number for number in range(5)))
    answer = rig.pop()
    ack = BatchAck(
        group="g",
        topic="T",
        start_offset=0,
        queue_id=QueueId(0),
        revive_queue_id=QueueId(int(answer.fields["reviveQid"])),
        pop_time=int(answer.fields["popTime"]),
        invisible_time=10_000,
        bits=bytes([0b10111]),
    )
    body = BATCH_ACK.encode(BatchAckRequest(broker_name="broker-a", acks=(ack,)))
    assert rig.ask(200151, body).code == 0
    rig.wait(15)
    assert rig.bodies(RETRY) == [b"3"]


def test_an_acknowledgement_at_the_last_moment_counts() -> None:
    rig = rig_with(b"a")
    first = rig.pop(invisibleTime=3000)
    rig.wait(2.9, step=0.1)
    fields = {"consumerGroup": "g", "topic": "T", "queueId": "0", "offset": "0"}
    asked = rig.begin(Command.request(200051, 1, fields | {"extraInfo": handle_of(first)}))
    rig.clock.jump(2.0)  # nothing has come by in between
    rig.settle()
    assert asked.answer.code == 0
    rig.wait(5)
    assert rig.bodies(RETRY) == []


def test_a_kill_between_pop_and_ack_loses_nothing() -> None:
    rig = rig_with(b"a", b"b", b"c")
    rig.ack(1, handle_of(rig.pop()))
    rig = rig.again()
    seen: set[bytes] = set()
    for _ in range(5):
        answer = rig.pop()
        seen.update(bodies_of(answer))
        rig.wait(12, step=1)
    assert seen >= {b"a", b"c"}


def test_a_clean_restart_repeats_nothing() -> None:
    rig = rig_with(b"a", b"b")
    first = rig.pop()
    rig = rig.stop()
    assert rig.pop().code == 210
    assert rig.ack(0, handle_of(first)).code == 0
    rig.wait(13)
    assert bodies_of(rig.pop()) == [b"b"]


def test_an_offset_is_committed_only_when_its_check_point_is_on_the_disk() -> None:
    rig = rig_with(b"a")
    rig.wait(30)
    rig.hold_pop()
    offsets = rig.broker.tables.offsets
    assert offsets.find("g", "T", 0) == 0
    assert rig.pop().code == 210, "though nobody gets it twice"
    rig.wait(30)
    assert offsets.find("g", "T", 0) == 1


def test_a_pop_is_answered_when_its_check_point_is_safe() -> None:
    rig = rig_with(b"a", store={"flushDiskType": "SYNC_FLUSH"})
    asked = rig.hold_pop()
    assert not asked.is_answered
    rig.settle()
    assert bodies_of(asked.answer) == [b"a"]


# -- waiting --------------------------------------------------------------------------------------


def test_a_pop_waits_for_a_message() -> None:
    rig = rig_with(b"a")
    rig.pop()
    asked = rig.hold_pop(pollTime=15_000)
    info = rig.ask(200055, consumerGroup="g", topic="T", queueId=-1)
    assert info.fields["pollingNum"] == "1"
    rig.wait(5)
    assert not asked.is_answered
    rig.send(b"b")
    assert bodies_of(asked.answer) == [b"b"]


def test_a_pop_that_waits_in_vain_is_told_so() -> None:
    rig = rig_with(b"a")
    rig.pop()
    asked = rig.hold_pop(pollTime=2000)
    rig.wait(1.5)
    assert not asked.is_answered
    rig.wait(1)
    assert asked.answer.code == 210
    assert set(asked.answer.fields) >= {"popTime", "invisibleTime", "reviveQid", "restNum"}


def test_what_comes_back_wakes_who_waits_for_the_topic() -> None:
    rig = rig_with(b"a")
    rig.pop(invisibleTime=2000)
    asked = rig.hold_pop(pollTime=15_000)
    rig.wait(6)
    assert bodies_of(asked.answer) == [b"a"]


def test_one_message_wakes_one_pop_and_many_wake_many() -> None:
    rig = rig_with(b"a")
    rig.pop()
    waiting = [rig.hold_pop(pollTime=15_000, maxMsgNums=1) for _ in range(3)]
    rig.send(b"b")
    rig.settle()
    assert sum(asked.is_answered for asked in waiting) == 1
    rig.send(b"c")
    rig.send(b"d")
    rig.settle()
    assert sorted(bodies_of(asked.answer)[0] for asked in waiting) == [b"b", b"c", b"d"]


def test_too_many_that_wait_are_refused() -> None:
    rig = rig_with(b"a", broker_settings={"pop_polling_max": 2})
    rig.pop()
    held = [rig.hold_pop(pollTime=15_000) for _ in range(2)]
    rig.settle()
    assert not any(asked.is_answered for asked in held)
    assert rig.pop(pollTime=15_000).code == 209


def test_a_connection_that_goes_takes_its_pops_along() -> None:
    rig = rig_with(b"a")
    rig.pop()
    peer = FakePeer(2)
    fields = {
        name: str(value) for name, value in pop_fields(rig.clock, {"pollTime": 15_000}).items()
    }
    rig.begin(Command.request(200050, 1, fields), peer)
    rig.settle()
    assert len(rig.broker.timed.pops.parts.polling) == 1
    rig.broker.service.closed(peer)
    assert len(rig.broker.timed.pops.parts.polling) == 0
    rig.send(b"b")
    assert bodies_of(rig.pop()) == [b"b"], "it was not handed to nobody"


def test_a_request_that_comes_too_late_is_not_run() -> None:
    rig = rig_with(b"a")
    assert rig.pop(bornTime=rig.clock.now_ms() - 20_000, pollTime=15_000).code == 210
    assert bodies_of(rig.pop(bornTime=0)) == [b"a"]


def test_a_stop_answers_those_who_wait() -> None:
    rig = rig_with(b"a")
    rig.pop()
    asked = rig.hold_pop(pollTime=15_000)
    assert rig.broker.close()
    rig.loop.call_soon(rig.loop.stop)
    rig.loop.run_forever()
    assert asked.answer.code == 210


# -- which messages -------------------------------------------------------------------------------


def test_a_filter_by_tag_lets_only_its_messages_through() -> None:
    rig = TimedRig()
    for number in range(6):
        rig.send(b"%d" % number, TAGS="even" if number % 2 == 0 else "odd")
    answer = rig.pop(exp="odd", expType="TAG")
    assert bodies_of(answer) == [b"1", b"3", b"5"]
    assert answer.fields["msgOffsetInfo"] == "0 0 1,3,5"
    rig.wait(13)
    assert rig.bodies(RETRY) == [b"1", b"3", b"5"]


def test_a_filter_by_sql_looks_at_properties() -> None:
    rig = TimedRig()
    for number in range(6):
        rig.send(b"%d" % number, a=str(number))
    assert bodies_of(rig.pop(exp="a > 3", expType="SQL92")) == [b"4", b"5"]
    assert rig.pop(exp="a >", expType="SQL92").code == 23


def test_a_selective_filter_gets_through_a_backlog_in_one_pop() -> None:
    rig = TimedRig()
    for _ in range(2000):
        rig.hold(310, b"x", a="p", b="T", c="TBW102", d="2", e="0", f="0", g="1", h="0",
                 i="TAGS\x01other", j="0", k="false", m="false")  # fmt: skip
    rig.send(b"wanted", TAGS="mine")
    assert bodies_of(rig.pop(exp="mine", expType="TAG", queueId=0)) == [b"wanted"]


@pytest.mark.parametrize(("mode", "bodies"), [(0, [b"a", b"b"]), (1, [b"a", b"b"])])
def test_a_new_group_begins_at_a_young_queues_begin(mode: int, bodies: list[bytes]) -> None:
    assert bodies_of(rig_with(b"a", b"b").pop(initMode=mode)) == bodies


def cold_front() -> TimedRig:
    """Return a broker whose queue 0 of T begins with a unit that is not in memory."""
    rig = rig_with(*(b"%d" % number for number in range(60)))
    rig.broker.store.flush_queues(thorough=True)
    rig.settle()
    directory = rig.broker.store.queues.queue("T", 0).directory
    for name in rig.disk.names(directory):
        rig.disk.evict(directory / name)
    return rig


def test_the_first_unit_of_a_queue_is_read_by_the_worker_if_it_is_cold() -> None:
    rig = cold_front()
    asked = rig.hold_pop(initMode=1, queueId=0)
    assert not asked.is_answered, "the loop has not waited for it"
    rig.settle()
    assert bodies_of(asked.answer) == [b"%d" % number for number in range(32)]


def test_a_new_group_whose_queue_cannot_be_read_gets_nothing_yet() -> None:
    rig = cold_front()
    rig.disk.fail(Operation.READ, errno.EIO)
    assert rig.pop(initMode=1, queueId=0).code == 210
    assert bodies_of(rig.pop(initMode=1, queueId=0))[0] == b"0", "it begins where it would have"


def test_all_queues_are_popped_and_one_if_it_is_named() -> None:
    rig = TimedRig()
    for queue_id in (0, 1):
        rig.send(b"%d" % queue_id, queue_id=queue_id)
    assert bodies_of(rig.pop(queueId=1)) == [b"1"]
    assert bodies_of(rig.pop()) == [b"0"]


def test_what_does_not_fit_is_counted() -> None:
    rig = rig_with(*(b"%d" % number for number in range(5)))
    answer = rig.pop(maxMsgNums=2)
    assert answer.fields["restNum"] == "3"


def test_a_reset_by_an_operator_is_followed() -> None:
    rig = rig_with(b"a", b"b")
    rig.pop()
    rig.broker.tables.offsets.reset("g", "T", 0, 1)
    assert bodies_of(rig.pop()) == [b"b"]


# -- in order -------------------------------------------------------------------------------------


def test_an_orderly_queue_has_one_batch_out() -> None:
    rig = rig_with(b"a", b"b", b"c")
    first = rig.pop(order="true", maxMsgNums=2, attemptId="one")
    assert bodies_of(first) == [b"a", b"b"]
    assert first.fields["reviveQid"] == "999"
    assert first.fields["orderCountInfo"] == "0 0 0"
    assert rig.pop(order="true").code == 210
    assert rig.ack(0, handle_of(first)).code == 0
    assert rig.pop(order="true").code == 210
    assert rig.ack(1, handle_of(first)).code == 0
    assert rig.broker.tables.offsets.find("g", "T", 0) == 2
    assert bodies_of(rig.pop(order="true")) == [b"c"]


def test_an_orderly_batch_comes_again_from_the_first_that_is_not_done() -> None:
    rig = rig_with(b"a", b"b")
    first = rig.pop(order="true", invisibleTime=3000)
    rig.ack(0, handle_of(first))
    waiting = rig.hold_pop(order="true", pollTime=15_000)
    rig.wait(5)
    assert bodies_of(waiting.answer) == [b"b"]
    assert waiting.answer.fields["orderCountInfo"] == "0 qo0%1 1;0 0 1"
    assert rig.bodies(RETRY) == []


def test_an_attempt_that_is_repeated_gets_its_batch_again() -> None:
    rig = rig_with(b"a")
    for _ in range(2):
        assert bodies_of(rig.pop(order="true", attemptId="same")) == [b"a"]


def test_orderly_batches_survive_a_restart() -> None:
    rig = rig_with(b"a")
    first = rig.pop(order="true", invisibleTime=60_000)
    rig = rig.stop()
    assert rig.pop(order="true").code == 210
    file = json.loads(
        rig.disk.read(rig.broker.store_settings.paths.config / "consumerOrderInfo.json")
    )
    (batch,) = file["table"]["T@g"].values()
    assert (batch["o"], batch["i"], str(batch["popTime"])) == ([0], 60_000, first.fields["popTime"])
    assert rig.ack(0, handle_of(first)).code == 0
    assert rig.broker.tables.offsets.find("g", "T", 0) == 1


def test_an_orderly_message_can_have_more_time() -> None:
    rig = rig_with(b"a")
    first = rig.pop(order="true", invisibleTime=3000)
    fields = {"consumerGroup": "g", "topic": "T", "queueId": 0, "offset": 0}
    assert rig.ask(200053, **fields, extraInfo=handle_of(first), invisibleTime=9000).code == 0
    rig.wait(5)
    assert rig.pop(order="true").code == 210
    rig.wait(5)
    assert bodies_of(rig.pop(order="true")) == [b"a"]


# -- only looking ---------------------------------------------------------------------------------


def test_a_peek_takes_nothing() -> None:
    rig = rig_with(b"a", b"b")
    rig.pop(maxMsgNums=1)
    fields = {"consumerGroup": "g", "topic": "T", "queueId": -1, "maxMsgNums": 8}
    for _ in range(2):
        answer = rig.ask(200052, **fields)
        assert (answer.code, bodies_of(answer)) == (0, [b"b"])
    rig.pop()
    assert rig.ask(200052, **fields).code == 19


def test_a_notification_tells_when_there_is_something() -> None:
    rig = rig_with(b"a")
    fields = {"consumerGroup": "g", "topic": "T", "queueId": -1, "bornTime": rig.clock.now_ms()}
    assert rig.ask(200054, **fields, pollTime=0).fields["hasMsg"] == "true"
    rig.pop()
    asked = rig.hold(200054, **fields, pollTime=10_000)
    rig.settle()
    assert not asked.is_answered
    rig.send(b"b")
    assert asked.answer.fields["hasMsg"] == "true"
    rig.pop()
    assert rig.ask(200054, **fields, pollTime=0).fields["hasMsg"] == "false"


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"maxMsgNums": 33}, 29),
        ({"maxMsgNums": 0}, 29),
        ({"maxMsgNums": -5}, 29),
        ({"invisibleTime": -1}, 29),
        ({"invisibleTime": 10**12}, 29),
        ({"queueId": 77}, 29),
        ({"queueId": -2}, 29),
        ({"topic": "Nowhere"}, 17),
        ({"exp": "a ||", "expType": "WHAT"}, 23),
        ({"maxMsgNums": "many"}, 1),
        ({"invisibleTime": None}, 1),
        ({"consumerGroup": None}, 1),
    ],
)
def test_a_pop_that_cannot_be_run_is_refused(fields: dict[str, object], code: int) -> None:
    answer = rig_with(b"a").pop(**fields)
    assert answer.code == code
    assert answer.remark


def test_a_pop_is_refused_where_it_is_forbidden() -> None:
    assert rig_with(b"a", broker_settings={"timers": False}).pop().code == 1
    assert rig_with(b"a", broker_settings={"permission": 2}).pop().code == 16
    assert rig_with(b"a", broker_settings={"creates_groups": False}).pop().code == 26


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"offset": -1}, 208),
        ({"offset": 99}, 208),
        ({"queueId": 9}, 13),
        ({"queueId": -1}, 13),
        ({"topic": "Nowhere"}, 17),
        ({"extraInfo": "garbage"}, 1),
        ({"extraInfo": ""}, 1),
        ({"extraInfo": f"0 {10**17} 10000 0 0 broker-a 0"}, 13),
        ({"extraInfo": "0 1700000000000 10000 77 0 broker-a 0"}, 13),
    ],
)
def test_an_acknowledgement_of_nothing_is_refused(change: dict[str, object], code: int) -> None:
    rig = rig_with(b"a")
    fields: dict[str, object] = {
        "consumerGroup": "g", "topic": "T", "queueId": 0, "offset": 0,
        "extraInfo": handle_of(rig.pop()),
    }  # fmt: skip
    assert rig.ask(200051, **fields | change).code == code
    if change.get("offset") != 99:
        assert rig.ask(200053, invisibleTime=10, **fields | change).code == code
    rig.wait(13)
    assert rig.bodies(RETRY) == [b"a"], "nothing was acknowledged"


def test_an_empty_batch_is_refused() -> None:
    rig = rig_with(b"a")
    assert rig.ask(200151).code == 208
    assert rig.ask(200151, BATCH_ACK.encode(BatchAckRequest())).code == 208
    assert rig.ask(200151, b"{").code == 1


def test_codes_that_a_binary_header_cuts_off_are_known() -> None:
    rig = rig_with(b"a")
    fields = {name: str(value) for name, value in pop_fields(rig.clock, {}).items()}
    asked = rig.begin(Command.request(3442, 1, fields, serialize_type=1))
    rig.settle()
    assert bodies_of(asked.answer) == [b"a"]
    assert rig.ask(200056).code == 0
