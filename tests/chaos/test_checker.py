"""The checker finds every kind of fault that is planted, and none where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chaos.checker import KINDS, Checker, check
from chaos.history import (
    Attempt,
    ClockShift,
    Commit,
    Decision,
    Delivery,
    Found,
    History,
    Outcome,
    Place,
)

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN = Place("Plain", "b", 0)
ORDERED = Place("Ordered", "b", 0)
PAID = Place("Paid", "b", 0)
LATER = Place("Later", "b", 0)
GROUPS = {"Plain": "readers", "Paid": "readers", "Later": "readers", "Ordered": "in-order"}


def sent(history: History, ident: str, place: Place, offset: int, at: float) -> Attempt:
    """Note a send that was acknowledged a tenth of a second later."""
    attempt = history.begin(Attempt(ident, place.topic, at))
    if place.topic in {"Plain", "Ordered"}:
        attempt.place, attempt.offset = place, offset
    history.end(attempt, Outcome.ACKNOWLEDGED, at + 0.1)
    history.found.append(Found(ident, place, offset))
    return attempt


def deliver(history: History, ident: str, place: Place, offset: int, at: float) -> None:
    history.deliveries.append(Delivery(ident, GROUPS[place.topic], place, offset, at))


def good() -> History:
    """Return a run in which nothing went wrong, with a bit of everything."""
    history = History(orderly=frozenset({"in-order"}), readers=dict(GROUPS))
    for number in range(5):
        for place in (PLAIN, ORDERED):
            ident = f"{place.topic}{number}"
            sent(history, ident, place, number, float(number))
            deliver(history, ident, place, number, number + 0.2)
    deliver(history, "Plain4", PLAIN, 4, 9.0)
    history.commits.append(Commit("readers", PLAIN, 3, 2.5))
    history.commits.append(Commit("in-order", ORDERED, 5, 5.0))
    paid = sent(history, "paid", PAID, 0, 1.0)
    paid.in_transaction, paid.decision = True, Decision.COMMIT
    deliver(history, "paid", PAID, 0, 1.5)
    back = history.begin(Attempt("back", "Paid", 1.0, in_transaction=True))
    back.decision = Decision.ROLLBACK
    history.end(back, Outcome.ACKNOWLEDGED, 1.1)
    late = sent(history, "late", LATER, 0, 1.0)
    late.delay_s = 2.0
    deliver(history, "late", LATER, 0, 3.1)
    failed = history.begin(Attempt("failed", "Plain", 5.0))
    history.end(failed, Outcome.FAILED, 6.0)
    return history


def kinds(history: History) -> set[str]:
    return {one.kind for one in check(history).violations}


def test_a_good_run_has_no_fault() -> None:
    verdict = check(good())
    assert verdict.violations == []
    assert (verdict.sent, verdict.acknowledged) == (14, 12)
    assert (verdict.delivered, verdict.duplicated) == (12, 1)


def drop(history: History, ident: str) -> None:
    history.deliveries = [one for one in history.deliveries if one.ident != ident]


def lost(history: History) -> None:
    drop(history, "Plain4")


def lost_from_the_queue_too(history: History) -> None:
    drop(history, "Plain4")
    history.found = [one for one in history.found if one.ident != "Plain4"]


def stored_the_wrong_way_round(history: History) -> None:
    history.found = [
        one._replace(offset=4 - one.offset) if one.place == PLAIN else one for one in history.found
    ]


def delivered_the_wrong_way_round(history: History) -> None:
    history.deliveries = [
        one._replace(at=1.9) if one.ident == "Ordered3" else one for one in history.deliveries
    ]


def delivered_from_nowhere(history: History) -> None:
    deliver(history, "never-sent", PLAIN, 9, 9.0)


def found_from_nowhere(history: History) -> None:
    history.found.append(Found("never-sent", PLAIN, 9))


def in_another_topic(history: History) -> None:
    deliver(history, "Plain1", ORDERED, 5, 9.0)


def committed_too_early(history: History) -> None:
    history.commits.append(Commit("readers", PLAIN, 5, 4.15))


def committed_past_a_lost_one(history: History) -> None:
    lost(history)
    history.commits.append(Commit("readers", PLAIN, 5, 20.0))


def delivered_after_it_was_taken_back(history: History) -> None:
    deliver(history, "back", PAID, 1, 4.0)


def stored_after_it_was_taken_back(history: History) -> None:
    history.found.append(Found("back", PAID, 1))


def committed_and_not_delivered(history: History) -> None:
    drop(history, "paid")


def early(history: History) -> None:
    drop(history, "late")
    deliver(history, "late", LATER, 0, 2.5)


def something_else_in_its_place(history: History) -> None:
    history.begin(Attempt("other", "Plain", 7.0))
    history.found = [
        one._replace(ident="other") if one.ident == "Plain2" else one for one in history.found
    ]


PLANTED: dict[Callable[[History], None], set[str]] = {
    lost: {"lost"},
    lost_from_the_queue_too: {"lost", "moved"},
    stored_the_wrong_way_round: {"order", "moved"},
    delivered_the_wrong_way_round: {"order"},
    delivered_from_nowhere: {"nowhere"},
    found_from_nowhere: {"nowhere"},
    in_another_topic: {"nowhere"},
    committed_too_early: {"skipped"},
    committed_past_a_lost_one: {"lost", "skipped"},
    delivered_after_it_was_taken_back: {"transaction"},
    stored_after_it_was_taken_back: {"transaction"},
    committed_and_not_delivered: {"transaction"},
    early: {"early"},
    something_else_in_its_place: {"moved"},
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found(plant: Callable[[History], None]) -> None:
    history = good()
    plant(history)
    assert kinds(history) == PLANTED[plant]


def test_every_kind_of_fault_is_planted() -> None:
    assert set().union(*PLANTED.values()) == set(KINDS)


def test_what_was_not_acknowledged_is_not_promised() -> None:
    history = good()
    for number in range(5):
        history.attempts[f"Plain{number}"].outcome = Outcome.STORED
    history.deliveries = [one for one in history.deliveries if one.place != PLAIN]
    assert kinds(history) == set()


def test_what_is_still_to_come_is_named() -> None:
    history = good()
    lost(history)
    assert [one.ident for one in Checker(history).missing()] == ["Plain4"]


def test_a_clock_that_was_put_forward_may_be_early_by_that_much() -> None:
    history = good()
    early(history)
    history.shifts = [ClockShift(0.5, "a", 10.0), ClockShift(2.2, "a", 10.4)]
    assert kinds(history) == {"early"}
    history.shifts.append(ClockShift(2.4, "a", 11.0))
    assert kinds(history) == set()


def test_a_date_by_the_senders_clock_comes_early_where_the_brokers_is_ahead() -> None:
    history = good()
    early(history)
    history.shifts = [ClockShift(0.0, "a", 1.0)]
    assert kinds(history) == {"early"}
    history.attempts["late"].by_date = True
    assert kinds(history) == set()


def test_two_brokers_with_different_clocks_may_be_early_by_the_difference() -> None:
    history = good()
    early(history)
    history.shifts = [ClockShift(0.0, "a", 0.2), ClockShift(0.0, "b", 0.0)]
    assert kinds(history) == {"early"}
    history.shifts.append(ClockShift(0.5, "a", 1.0))
    assert kinds(history) == set()


def test_a_message_that_is_stored_twice_stands_where_it_stands_first() -> None:
    history = good()
    history.found.append(Found("Ordered0", ORDERED, 5))
    deliver(history, "Ordered0", ORDERED, 5, 9.0)
    assert kinds(history) == set()


def test_what_died_with_its_master_may_have_been_seen_and_committed() -> None:
    history = good()
    history.begin(Attempt("died", "Ordered", 5.0)).outcome = Outcome.FAILED
    deliver(history, "died", ORDERED, 6, 5.5)
    history.commits.append(Commit("in-order", ORDERED, 7, 6.0))
    for offset, ident in ((5, "next"), (6, "another")):
        sent(history, ident, ORDERED, offset, 7.0 + offset)
        deliver(history, ident, ORDERED, offset, 7.5 + offset)
    assert kinds(history) == set()
    drop(history, "next")
    assert kinds(history) == {"lost"}


def test_the_longest_outage() -> None:
    history = good()
    assert history.longest_outage_s(0.0, 4.1) == pytest.approx(1.0)
    assert history.longest_outage_s(-3.0, 9.0) == pytest.approx(4.9)
    assert History().longest_outage_s(2.0, 5.0) == pytest.approx(3.0)
