"""How far groups have come, and sending them elsewhere."""

from __future__ import annotations

import pytest

from gantrymq.broker.admin import parts
from gantrymq.broker.admin.consumption import FAR_BEHIND
from gantrymq.model.queue import MessageQueue, QueueId, QueueOffset
from gantrymq.wire.bodies.offsets import CONSUMER_STATUS, CORRECTION_OFFSETS, ConsumerStatus
from gantrymq.wire.bodies.reset import RESET_OFFSETS
from gantrymq.wire.bodies.settings import SETTINGS
from gantrymq.wire.bodies.stats import BROKER_CONSUME_STATS, CONSUME_STATS, CONSUME_TIME_SPAN
from gantrymq.wire.codes import LanguageCode, RequestCode
from gantrymq.wire.command import Command
from gantrymq.wire.peer import PeerLate
from support.admin_world import ADDRESS, AskedPeer, World
from support.client_peers import consumer, heartbeat, subscription


def filled() -> World:
    """Return a broker with five messages, of which a group has read two."""
    world = World()
    world.topic("T", 2)
    world.put("T", 0, 5)
    world.group("G")
    world.commit("G", "T", 0, 2)
    return world


def queue(queue_id: int, topic: str = "T") -> MessageQueue:
    return MessageQueue(topic, "broker-a", QueueId(queue_id))


# -- lag ------------------------------------------------------------------------------------------


def test_the_lag_of_a_group() -> None:
    world = filled()
    second = world.clock.now_ms() - 4000
    reply = world.ask(RequestCode.GET_CONSUME_STATS, {"consumerGroup": "G"})
    rows = CONSUME_STATS.decode(reply.body).offset_table
    assert set(rows) == {queue(0), queue(1)}
    row = rows[queue(0)]
    assert (row.broker_offset, row.consumer_offset, row.pull_offset) == (5, 2, 2)
    assert row.last_timestamp == second
    assert (rows[queue(1)].broker_offset, rows[queue(1)].consumer_offset) == (0, 0)


def test_the_lag_of_named_topics_and_of_a_group_that_is_not_known() -> None:
    world = filled()
    world.topic("U", 1)

    def topics(**fields: str) -> set[str]:
        reply = world.ask(RequestCode.GET_CONSUME_STATS, {"consumerGroup": "G"} | fields)
        return {one.topic for one in CONSUME_STATS.decode(reply.body).offset_table}

    assert topics(topic="U") == {"U"}
    assert topics(topicList="U;T;Nope;") == {"T", "U"}
    assert topics(topic="Nope") == set()
    assert topics(consumerGroup="Nope") == set()
    world.join(heartbeat("c", consumer("G", subscription("U"))), AskedPeer(2))
    assert topics() == set()
    assert topics(topic="T") == set()


def test_the_lag_of_all_groups() -> None:
    world = filled()
    reply = world.ask(RequestCode.GET_BROKER_CONSUME_STATS, {"isOrder": "false"})
    stats = BROKER_CONSUME_STATS.decode(reply.body)
    assert (stats.broker_addr, stats.total_diff) == (ADDRESS, 3)
    by_group = {name: rows for one in stats.consume_stats_list for name, rows in one.items()}
    assert by_group.keys() == world.tables.groups.all().keys()
    assert by_group["G"][0].offset_table[queue(0)].consumer_offset == 2
    ordered = world.ask(RequestCode.GET_BROKER_CONSUME_STATS, {"isOrder": "true"})
    assert BROKER_CONSUME_STATS.decode(ordered.body).total_diff == 0
    assert world.ask(RequestCode.GET_BROKER_CONSUME_STATS).code == 1


def test_too_much_lag_for_one_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "QUEUE_ROWS_MAX", 1)
    world = filled()
    one = world.ask(RequestCode.GET_CONSUME_STATS, {"consumerGroup": "G"})
    assert (one.code, "one topic" in (one.remark or "")) == (1, True)
    every = world.ask(RequestCode.GET_BROKER_CONSUME_STATS, {"isOrder": "false"})
    assert (every.code, "consumerProgress" in (every.remark or "")) == (1, True)


def test_time_spans() -> None:
    world = filled()
    end = world.clock.now_ms()
    reply = world.ask(RequestCode.QUERY_CONSUME_TIME_SPAN, {"topic": "T", "group": "G"})
    spans = {
        one.message_queue.queue_id: one
        for one in CONSUME_TIME_SPAN.decode(reply.body).consume_time_span_set
    }
    first = spans[QueueId(0)]
    assert (first.min_time_stamp, first.max_time_stamp) == (end - 5000, end - 1000)
    assert (first.consume_time_stamp, first.delay_time) == (end - 4000, 3000)
    empty = spans[QueueId(1)]
    assert (empty.min_time_stamp, empty.max_time_stamp, empty.delay_time) == (-1, -1, 0)
    unknown = world.ask(RequestCode.QUERY_CONSUME_TIME_SPAN, {"topic": "Nope", "group": "G"})
    assert unknown.code == 17


def test_corrections_and_clones() -> None:
    world = filled()
    world.commit("Slow", "T", 0, 1)
    world.commit("Fast", "T", 0, 4)
    code = RequestCode.QUERY_CORRECTION_OFFSET

    def corrected(**more: str) -> dict[int, int]:
        reply = world.ask(code, {"topic": "T", "compareGroup": "G"} | more)
        found = CORRECTION_OFFSETS.decode(reply.body).correction_offsets
        return {int(queue_id): int(offset) for queue_id, offset in found.items()}

    assert corrected() == {0: 1}
    assert corrected(filterGroups="Slow,G") == {0: FAR_BEHIND}
    assert corrected(topic="Nope") == {}
    copy = {"srcGroup": "Fast", "destGroup": "New", "offline": "true"}
    assert world.ask(RequestCode.CLONE_GROUP_OFFSET, copy).code == 0
    assert world.tables.offsets.find("New", "T", 0) == 4
    assert not world.tables.offsets.is_dirty
    copy = {"srcGroup": "Nope", "destGroup": "Other", "topic": "T"}
    assert world.ask(RequestCode.CLONE_GROUP_OFFSET, copy).code == 0
    assert world.tables.offsets.topics_of("Other") == frozenset()


# -- reset ----------------------------------------------------------------------------------------

RESET = {"topic": "T", "group": "G", "timestamp": "0", "isForce": "true"}


def offsets(reply: Command) -> dict[int, int]:
    assert reply.code == 0, reply.remark
    return {one.queue_id: at for one, at in RESET_OFFSETS.decode(reply.body).offset_table.items()}


def test_a_reset_is_kept_until_the_next_pull_and_wakes_who_waits() -> None:
    world = filled()
    woken: list[bool] = []
    world.broker.held.hold("T", 0, 60_000, woken.append)
    reply = world.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, RESET)
    assert offsets(reply) == {0: 0, 1: 0}
    assert woken == [False]
    assert world.tables.offsets.find("G", "T", 0) == 0
    assert world.tables.offsets.pending_reset("G", "T", 0) == 0
    assert world.again().tables.offsets.find("G", "T", 0) == 0


def test_a_commit_does_not_undo_a_reset_that_waits() -> None:
    world = filled()
    offsets(world.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, RESET))
    fields = {"consumerGroup": "G", "topic": "T", "queueId": "0", "commitOffset": "4"}
    assert world.ask(RequestCode.UPDATE_CONSUMER_OFFSET, fields).code == 0
    assert world.tables.offsets.pending_reset("G", "T", 0) == 0
    assert world.tables.offsets.find("G", "T", 0) == 0
    assert world.ask(RequestCode.UPDATE_CONSUMER_OFFSET, fields).code == 0
    assert world.tables.offsets.find("G", "T", 0) == 4


def test_a_reset_to_the_end_to_a_moment_and_to_an_offset() -> None:
    world = filled()
    code = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
    third = str(world.clock.now_ms() - 3000)
    assert offsets(world.ask(code, RESET | {"timestamp": "-1"})) == {0: 5, 1: 0}
    assert offsets(world.ask(code, RESET | {"timestamp": third})) == {0: 2, 1: 0}
    assert offsets(world.ask(code, RESET | {"queueId": "0", "offset": "4"})) == {0: 4}
    assert offsets(world.ask(code, RESET | {"queueId": "1", "offset": "-1"})) == {1: 0}


def test_without_force_a_group_only_goes_back() -> None:
    world = filled()
    code = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
    gentle = RESET | {"isForce": "false"}
    assert offsets(world.ask(code, gentle | {"timestamp": "-1"}))[0] == 2
    assert offsets(world.ask(code, gentle))[0] == 0


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "Nope"}, 17),
        ({"group": "Nope"}, 26),
        ({"queueId": "9"}, 29),
        ({"queueId": "0", "offset": "6"}, 1),
        ({"timestamp": "now"}, 1),
    ],
)
def test_a_reset_that_cannot_be_is_refused(changes: dict[str, str], code: int) -> None:
    world = filled()
    reply = world.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, RESET | changes)
    assert (reply.code, bool(reply.remark)) == (code, True)
    assert world.tables.offsets.find("G", "T", 0) == 2


def told_by_members(world: World) -> None:
    body = SETTINGS.encode({"useServerSideResetOffset": "false"})
    assert world.ask(RequestCode.UPDATE_BROKER_CONFIG, body=body).code == 0


def test_members_are_told_in_their_own_form() -> None:
    world = filled()
    told_by_members(world)
    java, cpp = AskedPeer(2), AskedPeer(3)
    world.join(heartbeat("j", consumer("G", subscription("T"))), java)
    world.join(heartbeat("c", consumer("G", subscription("T"))), cpp, language=LanguageCode.CPP)
    java.told.clear()
    reply = world.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, RESET)
    assert offsets(reply) == {0: 0, 1: 0}
    (first,), (second,) = java.told, [one for one in cpp.told if one.code == 220]
    assert (first.code, first.is_oneway, first.fields["group"]) == (220, True, "G")
    assert first.body.startswith(b'{"offsetTable":{')
    assert second.body.startswith(b'{"offsetTable":[')
    assert RESET_OFFSETS.decode(first.body) == RESET_OFFSETS.decode(second.body)
    assert world.tables.offsets.find("G", "T", 0) == 2


def test_nobody_to_tell_is_said_as_4_9_does() -> None:
    world = filled()
    told_by_members(world)
    reply = world.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, RESET)
    assert (reply.code, reply.remark) == (
        206,
        "Consumer not online, so can not reset offset, Group: G Topic: T Timestamp: 0",
    )


# -- where members are ----------------------------------------------------------------------------


def test_members_say_where_they_are() -> None:
    world = filled()
    one, late = AskedPeer(2), AskedPeer(3)
    world.join(heartbeat("one", consumer("G", subscription("T"))), one)
    world.join(heartbeat("late", consumer("G", subscription("T"))), late)
    table = {queue(0): QueueOffset(3)}
    body = CONSUMER_STATUS.encode(ConsumerStatus(message_queue_table=table))
    one.reply = Command(code=0, opaque=0, flag=1, body=body)
    late.reply = PeerLate("5 s")
    code = RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS
    reply = world.ask(code, {"topic": "T", "group": "G"})
    assert CONSUMER_STATUS.decode(reply.body).consumer_table == {"one": table}
    ((asked, timeout),) = one.asked
    assert (asked.code, asked.fields, timeout) == (221, {"topic": "T", "group": "G"}, 5.0)
    world.ask(code, {"topic": "T", "group": "G", "clientAddr": "late"})
    assert (len(one.asked), len(late.asked)) == (1, 2)
    assert world.ask(code, {"topic": "T", "group": "Nope"}).code == 1
