"""Few series of many: who is shown stays, and what the others do is never counted back."""

from __future__ import annotations

import asyncio
from random import Random

from gantrymq.metrics.bounds import IDLE_ROUNDS, Counted, CounterTable
from gantrymq.metrics.turns import Turns
from gantrymq.testing.clock import VirtualClock


def look(table: CounterTable, **totals: int) -> Counted:
    def counts(key: str) -> tuple[int, int]:
        return totals[key], totals[key] * 10

    return asyncio.run(table.look(list(totals), counts, Turns(VirtualClock())))


def shown(counted: Counted) -> dict[str, int]:
    return {key: counts[0] for key, counts in counted.shown}


def test_all_are_shown_while_there_is_room() -> None:
    table = CounterTable(3)
    counted = look(table, a=1, b=0, c=5)
    assert shown(counted) == {"a": 1, "b": 0, "c": 5}
    assert (counted.other, counted.left_out) == ((), 0)


def test_the_most_active_are_shown_and_the_rest_is_one() -> None:
    counted = look(CounterTable(2), a=1, b=7, c=5, d=2)
    assert shown(counted) == {"b": 7, "c": 5}
    assert (counted.other, counted.left_out) == ((3, 30), 2)


def test_whoever_is_shown_stays_while_it_moves() -> None:
    table = CounterTable(1)
    look(table, a=10, b=1)
    for round_ in range(IDLE_ROUNDS * 2):
        counted = look(table, a=11 + round_, b=1000 * (round_ + 1))
        assert shown(counted) == {"a": 11 + round_}
    assert counted.other == (1000 * IDLE_ROUNDS * 2, 10_000 * IDLE_ROUNDS * 2)


def test_one_that_stands_still_gives_way() -> None:
    table = CounterTable(1)
    look(table, a=10, b=1)
    for _ in range(IDLE_ROUNDS):
        assert shown(look(table, a=10, b=1)) == {"a": 10}
    before = look(table, a=10, b=1)
    after = look(table, a=10, b=4)
    assert shown(after) == {"b": 4}
    assert after.other == before.other, "what it did before it was shown is not taken back"
    assert shown(look(table, a=10, b=4)) == {"b": 4}


def test_a_deleted_one_makes_room() -> None:
    table = CounterTable(1)
    look(table, a=10, b=1)
    assert shown(look(table, b=1)) == {"b": 1}


def test_the_sum_of_the_others_never_goes_back() -> None:
    random, table = Random(7), CounterTable(4)
    totals = {f"t{number}": 0 for number in range(30)}
    last = (0, 0)
    for _ in range(300):
        for key in random.sample(sorted(totals), random.randrange(6)):
            totals[key] += random.randrange(100)
        if random.random() < 0.1 and len(totals) > 10:
            del totals[random.choice(sorted(totals))]
        counted = look(table, **totals)
        assert len(counted.shown) <= 4
        other = counted.other or (0, 0)
        assert other >= last
        last = (other[0], other[1])
