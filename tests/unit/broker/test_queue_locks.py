"""Queues held for orderly consumption: never by two members at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gantrymq.broker.queue_locks import QueueLocks
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.testing.clock import VirtualClock


def queue(number: int, topic: str = "T") -> MessageQueue:
    return MessageQueue(topic, "broker-a", QueueId(number))


QUEUES = [queue(number) for number in range(4)]


def test_a_queue_is_held_by_who_came_first() -> None:
    locks = QueueLocks(VirtualClock())
    assert locks.lock("g", "a", QUEUES[:2]) == set(QUEUES[:2])
    assert locks.lock("g", "b", QUEUES) == set(QUEUES[2:])
    assert locks.lock("g", "a", QUEUES[:2]) == set(QUEUES[:2])
    assert locks.lock("other", "b", QUEUES[:1]) == {QUEUES[0]}
    assert locks.holder("g", QUEUES[0]) == "a"
    assert locks.holder("g", QUEUES[3]) == "b"
    assert locks.is_locked("g", "T", 0)
    assert not locks.is_locked("g", "T", 9)
    assert not locks.is_locked("nobody", "T", 0)


def test_only_the_holder_gives_back() -> None:
    locks = QueueLocks(VirtualClock())
    locks.lock("g", "a", QUEUES[:1])
    locks.unlock("g", "b", QUEUES)
    assert locks.holder("g", QUEUES[0]) == "a"
    locks.unlock("g", "a", QUEUES)
    assert locks.holder("g", QUEUES[0]) is None
    assert locks.lock("g", "b", QUEUES[:1]) == {QUEUES[0]}
    locks.unlock("nobody", "b", QUEUES)
    locks.remove_group("g")
    assert len(locks) == 0


def test_a_lock_lives_for_a_minute_after_it_was_asked_for() -> None:
    clock = VirtualClock()
    locks = QueueLocks(clock)
    locks.lock("g", "a", QUEUES[:1])
    clock.jump(60)
    assert locks.lock("g", "b", QUEUES[:1]) == set()
    locks.lock("g", "a", QUEUES[:1])
    clock.jump(60)
    assert locks.is_any_locked("g")
    clock.jump(0.001)
    assert locks.holder("g", QUEUES[0]) is None
    assert not locks.is_locked("g", "T", 0)
    assert not locks.is_any_locked("g")
    assert locks.lock("g", "b", QUEUES[:1]) == {QUEUES[0]}


def test_the_wall_clock_has_no_say() -> None:
    clock = VirtualClock()
    locks = QueueLocks(clock)
    locks.lock("g", "a", QUEUES[:1])
    clock.set_now_ms(clock.now_ms() + 3_600_000)
    assert locks.lock("g", "b", QUEUES[:1]) == set()


def test_expired_locks_make_room_and_live_ones_do_not() -> None:
    clock = VirtualClock()
    locks = QueueLocks(clock, locks_max=2)
    assert locks.lock("g", "a", QUEUES) == set(QUEUES[:2])
    clock.jump(30)
    assert locks.lock("h", "a", QUEUES[2:]) == set()
    assert len(locks) == 2
    clock.jump(31)
    assert locks.lock("g", "b", QUEUES[2:]) == set(QUEUES[2:])
    assert len(locks) == 2
    clock.jump(61)
    assert locks.expire() == 2
    assert len(locks) == 0


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"), st.booleans(), st.sets(st.integers(0, 3)), st.integers(0, 50)
        ),
        max_size=30,
    )
)
def test_no_queue_ever_has_two_holders(steps: list[tuple[str, bool, set[int], int]]) -> None:
    clock = VirtualClock()
    locks = QueueLocks(clock)
    held: dict[int, tuple[str, float]] = {}
    for client, is_lock, numbers, pause in steps:
        now = clock.monotonic()
        wanted = [queue(number) for number in numbers]
        live = {number: has for number, has in held.items() if now - has[1] <= 60}
        if is_lock:
            free = {n for n in numbers if n not in live or live[n][0] == client}
            assert locks.lock("g", client, wanted) == {queue(number) for number in free}
            held.update(dict.fromkeys(free, (client, now)))
        else:
            locks.unlock("g", client, wanted)
            for number in numbers:
                if number in held and held[number][0] == client:
                    del held[number]
        assert len(locks) == len(held)
        clock.jump(pause)
