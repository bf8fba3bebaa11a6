"""A rate as a bucket: no more than it allows over a while, and a debt is paid off."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gantrymq.store.token_bucket import WAIT_S_MIN, TokenBucket


def test_a_second_of_the_rate_may_come_at_once_and_a_debt_is_waited_for() -> None:
    bucket = TokenBucket(100, 0.0)
    assert bucket.wait_s(0.0) == 0.0
    bucket.take(350)  # one answer that is larger than the whole bucket
    wait_s = bucket.wait_s(0.0)
    assert wait_s == 2.5 + WAIT_S_MIN
    assert bucket.wait_s(2.4) > 0
    assert bucket.wait_s(wait_s) == 0.0


def test_a_quiet_time_saves_up_one_second_and_no_more() -> None:
    bucket = TokenBucket(100, 0.0)
    bucket.take(100)
    assert bucket.wait_s(1_000.0) == 0.0
    bucket.take(100)
    assert bucket.wait_s(1_000.0) > 0


def test_a_clock_that_goes_back_gives_nothing() -> None:
    bucket = TokenBucket(100, 10.0)
    bucket.take(200)
    assert bucket.wait_s(5.0) == 1.0 + WAIT_S_MIN


def test_a_debt_stays_one_when_the_rate_changes() -> None:
    bucket = TokenBucket(100, 0.0)
    bucket.take(300)
    assert round(bucket.at_rate(1_000, 0.0).wait_s(0.0), 3) == 2.0 + WAIT_S_MIN
    assert TokenBucket(100, 0.0).at_rate(5, 0.0).wait_s(0.0) == 0.0


@given(
    rate=st.integers(1, 1_000_000),
    steps=st.lists(st.tuples(st.floats(0, 2), st.integers(1, 500_000)), max_size=50),
)
def test_never_more_than_the_rate_allows(rate: int, steps: list[tuple[float, int]]) -> None:
    bucket, now, passed, last = TokenBucket(rate, 0.0), 0.0, 0, 0
    for pause, amount in steps:
        now += pause
        if not bucket.wait_s(now):
            bucket.take(amount)
            passed, last = passed + amount, amount
    assert passed - last <= rate * (now + 1) + 1
