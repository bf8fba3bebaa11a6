"""What a rebalance takes up and gives back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gantrymq.client.consuming.balance import decide, wanted_queues
from gantrymq.client.consuming.strategies import average
from gantrymq.model.queue import MessageQueue, QueueId

QUEUES = [MessageQueue("T", "b", QueueId(number)) for number in range(6)]


@given(st.sets(st.sampled_from(QUEUES)), st.sets(st.sampled_from(QUEUES)))
def test_the_way_from_what_is_owned_to_what_is_wanted(
    owned: set[MessageQueue], wanted: set[MessageQueue]
) -> None:
    change = decide(owned, wanted)
    assert (owned - set(change.drop)) | set(change.add) == wanted
    assert not set(change.add) & owned
    assert set(change.drop) <= owned
    assert bool(change) == (owned != wanted)


def test_broadcasting_reads_all() -> None:
    assert wanted_queues("me", None, QUEUES[::-1], average) == QUEUES


def test_members_share() -> None:
    assert wanted_queues("me", ["me", "you"], QUEUES, average) == QUEUES[:3]


def test_a_broker_that_does_not_know_us_yet_changes_nothing() -> None:
    assert wanted_queues("me", ["you"], QUEUES, average) is None
    assert wanted_queues("me", [], QUEUES, average) is None
