"""Members of one group that subscribe differently are noticed, and told once for each change."""

from __future__ import annotations

from gantrymq.broker.subscriptions import Mismatch, SubscriptionWatch, Variant
from gantrymq.model.group import SQL92_EXPRESSION, Subscription
from support.client_peers import subscription


def watch() -> tuple[SubscriptionWatch, list[Mismatch]]:
    told: list[Mismatch] = []
    return SubscriptionWatch(told.append), told


def test_members_that_agree_are_nothing_to_tell() -> None:
    watching, told = watch()
    watching.note("g", 1, "c1", [subscription("A", "x || y", 1), subscription("B")])
    watching.note("g", 2, "c2", [subscription("B", version=7), subscription("A", "y||x", 5)])
    watching.note("g", 3, "c3", [subscription("B", ""), subscription("A", " y ||x||x", 5)])
    watching.note("h", 4, "c4", [subscription("Z")])
    assert watching.mismatches() == []
    assert told == []


def test_a_difference_names_who_takes_what() -> None:
    watching, told = watch()
    common = subscription("A")
    watching.note("g", 1, "c1", [common, subscription("B", "x")])
    watching.note("g", 2, "c2", [common, subscription("B", "x")])
    watching.note("g", 3, "c3", [common, subscription("B", "y")])
    expected = Mismatch(
        "g",
        (
            Variant(("c1", "c2"), (("B", "TAG", "x"),)),
            Variant(("c3",), (("B", "TAG", "y"),)),
        ),
    )
    assert told == [expected]
    assert watching.mismatches() == [expected]


def test_it_is_told_once_for_each_change() -> None:
    watching, told = watch()
    x, y = [subscription("A", "x")], [subscription("A", "y")]
    watching.note("g", 1, "c1", x)
    watching.note("g", 2, "c2", y)
    for _ in range(3):
        watching.note("g", 1, "c1", x)
        watching.note("g", 2, "c2", y)
    watching.note("g", 3, "c3", y)
    assert len(told) == 1
    watching.note("g", 1, "c1", y)
    assert len(told) == 2
    assert [len(mismatch.variants) for mismatch in told] == [2, 1]
    assert watching.mismatches() == []


def test_a_difference_goes_with_its_member() -> None:
    watching, told = watch()
    watching.note("g", 1, "c1", [subscription("A")])
    watching.note("g", 2, "c2", [])
    assert len(watching.mismatches()) == 1
    watching.forget("g", 2)
    assert watching.mismatches() == []
    assert told[-1].variants == (Variant(("c1",), ()),)
    watching.forget("g", 2)
    watching.forget("nobody", 1)
    watching.forget("g", 1)
    assert len(watching) == 0
    assert len(told) == 2


def test_the_kind_of_expression_counts() -> None:
    watching, told = watch()
    watching.note("g", 1, "c1", [Subscription("A", "a > 1", expression_type=SQL92_EXPRESSION)])
    watching.note("g", 2, "c2", [Subscription("A", "a > 1")])
    assert len(told) == 1
