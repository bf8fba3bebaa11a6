"""What a consumer wants of a topic."""

from __future__ import annotations

import pytest

from gantrymq.client.consuming.handling import Later
from gantrymq.client.consuming.statistics import Statistics
from gantrymq.client.consuming.subscribed import Subscriptions
from gantrymq.client.consuming.subscription import Sql, sql, subscription_of
from gantrymq.errors import InvalidValue
from gantrymq.model.group import Subscription


def test_all_of_a_topic() -> None:
    for text in ("*", "", " * "):
        assert subscription_of("T", text, 7) == Subscription("T", version=7)


def test_tags_with_their_hashes() -> None:
    told = subscription_of("T", " a || bb||a ", 1)
    assert told.expression == "a || bb||a"
    assert told.tags == {"a", "bb"}
    assert told.tag_codes == {97, 3136}


def test_sql92_is_for_the_broker() -> None:
    told = subscription_of("T", sql("a > 1"), 1)
    assert (told.expression, told.expression_type, told.tags) == ("a > 1", "SQL92", frozenset())


@pytest.mark.parametrize(
    ("topic", "expression", "problem"),
    [
        ("T", "||", "names no tag"),
        ("no blanks", "*", "illegal"),
        ("T", "x" * 70000, "characters"),
        ("T", "||".join(f"t{number}" for number in range(5000)), "5000 tags"),
    ],
)
def test_what_cannot_be(topic: str, expression: str, problem: str) -> None:
    with pytest.raises(InvalidValue, match=problem):
        subscription_of(topic, expression, 1)


def test_blank_sql() -> None:
    with pytest.raises(InvalidValue, match="blank"):
        sql("  ")
    with pytest.raises(InvalidValue, match="characters"):
        Sql("x" * 70000)


def test_versions_grow_although_the_clock_was_set_back() -> None:
    """Brokers keep the subscription with the highest version, whatever else comes."""
    topics = Subscriptions(Statistics())
    first = topics.put("T", "T", "a", 2_000, None)
    second = topics.put("T", "T", "b", 1_000, None)
    third = topics.put("U", "U", "*", 1_000, None)
    versions = [one.subscription.version for one in (first, second, third)]
    assert versions == sorted(set(versions))


def test_topics_under_two_names() -> None:
    topics = Subscriptions(Statistics())
    topics.put("ns%T", "T", "*", 1, None)
    topics.put_retry("ns%G", 1)
    assert [one.topic for one in topics.user_topics] == ["ns%T"]
    assert topics.named("T") is topics.find("ns%T")
    assert [told.topic for told in topics.data()] == ["%RETRY%ns%G", "ns%T"]
    assert topics.remove("ns%T") is not None
    assert topics.named("T") is None


async def _never(_message: object) -> None:
    raise AssertionError


def test_a_topic_without_a_handler_takes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    topics = Subscriptions(Statistics())
    loops = topics.put("A", "A", "*", 1, None)
    handled = topics.put("B", "B", "*", 1, _never)
    assert (loops.iterates, handled.iterates) == (True, False)
    with pytest.raises(Later):
        loops.run("message").send(None)  # type: ignore[attr-defined]
    assert "without a handler" in caplog.text
