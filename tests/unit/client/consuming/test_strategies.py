"""Queues are shared out as Java's clients do it; the expected ones come from running 5.5.0."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.client.consuming.strategies import (
    Strategy,
    average,
    circle,
    configured,
    consistent_hash,
    machine_room,
)
from gantrymq.errors import InvalidValue
from gantrymq.model.queue import MessageQueue, QueueId

BROKERS = ("roomA@broker-a", "roomB@broker-b", "plain")
BY_NAME = {
    "AVG": average,
    "AVG_BY_CIRCLE": circle,
    "CONSISTENT_HASH": consistent_hash(),
    "MACHINE_ROOM": machine_room({"roomA", "roomB"}),
}
JAVA = """\
AVG;1;4;0,1,2,3
CONSISTENT_HASH;1;4;0,1,2,3
MACHINE_ROOM;1;4;1,2,3
AVG;2;4;0,1|2,3
AVG_BY_CIRCLE;2;4;0,2|1,3
CONSISTENT_HASH;2;4;0,3|1,2
MACHINE_ROOM;2;4;1,3|2
AVG;3;8;0,1,2|3,4,5|6,7
AVG_BY_CIRCLE;3;8;0,3,6|1,4,7|2,5
CONSISTENT_HASH;3;8;1,5|4,6|0,2,3,7
MACHINE_ROOM;3;8;2,3|4,5|6,7
AVG;3;2;0|1|
AVG_BY_CIRCLE;3;2;0|1|
CONSISTENT_HASH;3;2;1||0
MACHINE_ROOM;3;2;0|1|
AVG;5;16;0,1,2,3|4,5,6|7,8,9|10,11,12|13,14,15
AVG_BY_CIRCLE;5;16;0,5,10,15|1,6,11|2,7,12|3,8,13|4,9,14
CONSISTENT_HASH;5;16;3|2,7,9,12,15|0,5,6,10,13|1|4,8,11,14
MACHINE_ROOM;5;16;5,6,15|7,8|9,10|11,12|13,14
AVG;4;7;0,1|2,3|4,5|6
AVG_BY_CIRCLE;4;7;0,4|1,5|2,6|3
CONSISTENT_HASH;4;7;5|4,6|0,2,3|1
MACHINE_ROOM;4;7;2,6|3|4|5"""


def queues_of(count: int) -> list[MessageQueue]:
    """Return queues on three brokers, in Java's order."""
    return sorted(
        MessageQueue("Orders", BROKERS[number % 3], QueueId(number // 3)) for number in range(count)
    )


@pytest.mark.parametrize("line", JAVA.splitlines())
def test_members_get_what_java_gives_them(line: str) -> None:
    name, member_count, queue_count, expected = line.split(";")
    members = [f"10.0.0.{number + 1}@{100 + number}#7" for number in range(int(member_count))]
    queues = queues_of(int(queue_count))
    got = "|".join(
        ",".join(
            str(queues.index(queue))
            # The order in which they are given must not matter.
            for queue in BY_NAME[name].queues_of(member, members[::-1], queues[::-1])
        )
        for member in members
    )
    assert got == expected


@pytest.mark.parametrize("strategy", [average, circle, consistent_hash()], ids=lambda one: one.name)
@given(members=st.sets(st.text(min_size=1, max_size=8), min_size=1, max_size=9), data=st.data())
def test_every_queue_has_one_owner(
    strategy: Strategy, members: set[str], data: st.DataObject
) -> None:
    queues = queues_of(data.draw(st.integers(0, 40)))
    parts = [strategy.queues_of(member, members, queues) for member in members]
    assert sorted(queue for part in parts for queue in part) == queues


@given(count=st.integers(1, 12), queues=st.integers(0, 60))
def test_the_even_ones_are_even(count: int, queues: int) -> None:
    members = [f"m{number}" for number in range(count)]
    for strategy in (average, circle):
        sizes = [len(strategy.queues_of(one, members, queues_of(queues))) for one in members]
        assert max(sizes) - min(sizes) <= 1


def test_a_client_that_is_no_member_has_nothing() -> None:
    for strategy in BY_NAME.values():
        assert strategy.queues_of("stranger", ["a", "b"], queues_of(9)) == []


def test_members_are_ordered_as_java_orders_text() -> None:
    # U+1F600 is two units from D83D on, before U+FF5E, in UTF-16; behind it by code point.
    members = ["\uff5e", "\U0001f600"]
    assert average.queues_of("\U0001f600", members, queues_of(2)) == queues_of(2)[:1]


def test_few_queues_move_when_a_member_leaves() -> None:
    members = [f"10.0.0.{number}@1" for number in range(8)]
    strategy, queues = consistent_hash(), queues_of(96)
    before = {one: set(strategy.queues_of(one, members, queues)) for one in members}
    after = {one: set(strategy.queues_of(one, members[:-1], queues)) for one in members[:-1]}
    assert all(before[one] <= after[one] for one in members[:-1])


def test_configured_queues_are_always_ours() -> None:
    mine = MessageQueue("Orders", "plain", QueueId(0))
    other = MessageQueue("Others", "plain", QueueId(0))
    strategy = configured([mine, other])
    assert strategy.queues_of("a", ["a", "b"], queues_of(9)) == [mine]
    assert strategy.queues_of("b", ["a", "b"], [other]) == [other]


def test_what_cannot_be() -> None:
    with pytest.raises(InvalidValue, match="at least 1"):
        consistent_hash(0)
    with pytest.raises(InvalidValue, match="no machine room"):
        machine_room([])
