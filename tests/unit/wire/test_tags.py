from __future__ import annotations

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.wire.tags import TagFilter, tag_hash


@pytest.mark.parametrize(
    ("tag", "code"),
    [
        (None, 0),
        ("", 0),
        ("a", 97),
        ("TagA", 2598919),
        ("Aa", 2112),
        ("BB", 2112),
        ("队列", 1212376),
    ],
)
def test_hash(tag: str | None, code: int) -> None:
    assert tag_hash(tag) == code


@pytest.mark.parametrize("expression", [None, "", "*"])
def test_all(expression: str | None) -> None:
    every = TagFilter.parse(expression)
    assert every.is_all
    assert every.matches(None)
    assert every.matches("a")
    assert every.matches_hash(123)


@pytest.mark.parametrize(
    ("expression", "tags"),
    [
        ("a", {"a"}),
        ("a||b", {"a", "b"}),
        (" a  ||\tb ||", {"a", "b"}),
        ("|| a || || a", {"a"}),
        ("a | b", {"a | b"}),
        ("* || a", {"*", "a"}),
        ("a\u00a0", {"a\u00a0"}),
    ],
)
def test_tags(expression: str, tags: set[str]) -> None:
    found = TagFilter.parse(expression)
    assert found.tags == tags
    assert found.hashes == {tag_hash(tag) for tag in tags}
    assert not found.is_all


def test_matching() -> None:
    found = TagFilter.parse("Aa")
    assert found.matches("Aa")
    assert not found.matches("BB")
    assert not found.matches(None)
    assert found.matches_hash(tag_hash("BB"))
    assert not found.matches_hash(0)


@pytest.mark.parametrize("expression", ["||", " ", " || ||"])
def test_no_tag_at_all(expression: str) -> None:
    with pytest.raises(InvalidValue, match="names no tag"):
        TagFilter.parse(expression)
