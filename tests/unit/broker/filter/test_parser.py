"""What is refused, with which words, and how large an expression may be."""

from __future__ import annotations

import pickle
from time import perf_counter

import pytest

from gantrymq.broker.filter.compiled import compile_filter
from gantrymq.broker.filter.errors import FilterError
from gantrymq.broker.filter.expression import And, Between, Equal, Kind, Literal, Order, Property
from gantrymq.broker.filter.parser import parse
from gantrymq.errors import InvalidValue
from gantrymq.limits import (
    ERROR_TEXT_CHARACTERS_MAX,
    FILTER_CHARACTERS_MAX,
    FILTER_DEPTH_MAX,
    FILTER_NODES_MAX,
)


@pytest.mark.parametrize(
    ("expression", "position", "words"),
    [
        ("", 0, "a property, a value or a bracket is due, not the end"),
        ("a = 5 AND", 9, "not the end"),
        ("a == 5", 3, "not ="),
        ("a != 5", 2, "<>"),
        ("a && b", 2, "write AND"),
        ("a || b", 2, "write OR"),
        ('a = "x"', 4, "single quotes"),
        ("a = 'x", 4, "does not end"),
        ("a = 5;", 5, "no end mark"),
        ("a.b = 5", 1, "a point in its name"),
        ("a * 2 = 5", 2, "no multiplication"),
        ("a = 5 /* c", 6, "ends with */"),
        ("a = ü", 4, "'ü' has no meaning here"),
        ("a = NULL", 2, "IS NULL"),
        ("TRUE = 5", 5, "TRUE and FALSE"),
        ("a > 'x'", 2, "compares numbers, and a text is none"),
        ("a > (b = 5)", 2, "a condition is none"),
        ("b = 1 AND a BETWEEN 9 AND 1", 12, "nothing is between 9 and 1"),
        ("a BETWEEN 1 OR 2", 12, "AND, which belongs to BETWEEN is due, not OR"),
        ("a IN (5)", 6, "IN takes texts in single quotes, not 5"),
        ("a IN 'x'", 5, "( behind IN is due"),
        ("a IN ('x' 'y')", 10, "a comma"),
        ("5 IN ('x')", 2, "only a property"),
        ("a CONTAINS 5", 11, "CONTAINS takes texts"),
        ("a NOT 5", 6, "behind a value NOT needs BETWEEN"),
        ("a IS 5", 5, "NULL or NOT NULL is due, not 5"),
        ("(a = 5", 6, ") for the ( at character 1 is due, not the end"),
        ("a = 1 AND 5", 10, "a condition is due"),
        ("5", 0, "a condition is due"),
        ("NOT 5", 4, "a condition is due"),
        ("a = 99999999999999999999", 4, "9223372036854775807 at most"),
        ("a = 1e400", 4, "larger than any double"),
        ("a = 0.0", 4, "write 0"),
    ],
)
def test_refusals_name_the_place_and_the_remedy(expression: str, position: int, words: str) -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter(expression)
    assert caught.value.position == position
    assert words in caught.value.problem
    assert str(caught.value) == f"SQL92 filter, character {position + 1}: {caught.value.problem}"


def test_a_refusal_is_an_invalid_value_and_crosses_processes() -> None:
    with pytest.raises(InvalidValue) as caught:
        compile_filter("a = ")
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert (type(again), str(again), again.position) == (FilterError, str(caught.value), 4)


def test_a_refusal_repeats_little() -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter("a IN (" + "b" * 20000 + ")")
    assert len(caught.value.problem) <= ERROR_TEXT_CHARACTERS_MAX


def test_the_tree() -> None:
    tree, ignored_from = parse("a > 2147483648 AND (b = 'it''s' AND c BETWEEN 1 AND 2.5)")
    assert ignored_from is None
    assert isinstance(tree, And)
    order, equal, between = tree.terms
    assert isinstance(order, Order)
    assert order.right == Literal(2147483648, Kind.LONG)
    assert equal == Equal(Property("b"), Literal("it's", Kind.TEXT))
    one, more = Literal(1, Kind.INT), Literal(2.5, Kind.DOUBLE)
    assert between == Between(Property("c"), one, more, negated=False)


# -- bounds --------------------------------------------------------------------------------------


def check_bound(good: str, bad: str, words: str) -> None:
    """The first is taken, with the bound as it is, and the second is not."""
    compile_filter(good).matches({"a": "1"})
    with pytest.raises(FilterError, match=words):
        compile_filter(bad)


def test_length() -> None:
    good = "a = '" + "x" * (FILTER_CHARACTERS_MAX - 6) + "'"
    assert len(good) == FILTER_CHARACTERS_MAX
    check_bound(good, good + " ", f"at most {FILTER_CHARACTERS_MAX}")


@pytest.mark.parametrize("opening", ["(", "-(", "NOT (", "+", "-", "NOT "])
def test_nesting_while_reading(opening: str) -> None:
    closing = ")" * opening.count("(")
    levels = FILTER_DEPTH_MAX // len(opening.replace("NOT ", "N"))
    check_bound(
        opening * (levels - 3) + "a" + closing * (levels - 3) + " = 1",
        opening * (levels + 1) + "a" + closing * (levels + 1) + " = 1",
        f"more than {FILTER_DEPTH_MAX} brackets and signs inside each other",
    )


@pytest.mark.parametrize("more", [" = a", " <> 1", " IS NULL", " IS NOT NULL", " CONTAINS 'x'"])
def test_nesting_of_conditions(more: str) -> None:
    check_bound("a" + more * (FILTER_DEPTH_MAX // 2 - 1), "a" + more * 70, "inside each other")


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_size(word: str) -> None:
    terms = (FILTER_NODES_MAX + 1) // 4
    good = f" {word} ".join(["a = 1"] * terms)
    bad = f" {word} ".join(["a = 1"] * (terms + 1))
    check_bound(good, bad, f"more than {FILTER_NODES_MAX}")


def test_a_list_may_be_long() -> None:
    texts = ", ".join(f"'{number}'" for number in range(3000))
    compiled = compile_filter(f"a IN ({texts})")
    assert compiled.matches({"a": "2999"})
    assert not compiled.matches({"a": "3000"})


def test_what_is_compared_twice_is_evaluated_once() -> None:
    expression = "a"
    for _ in range(FILTER_DEPTH_MAX // 2 - 1):
        expression = f"-({expression} BETWEEN 1 AND 2)"
    compiled = compile_filter(f"{expression} IS NULL")
    # Twice at each of 31 levels would take an hour.
    began = perf_counter()
    assert compiled.matches({"a": "1"})
    assert perf_counter() - began < 5


@pytest.mark.parametrize(
    "hostile",
    [
        "'" * (FILTER_CHARACTERS_MAX - 1),
        "/*" * (FILTER_CHARACTERS_MAX // 2),
        "/**" * (FILTER_CHARACTERS_MAX // 3),
        "--" * (FILTER_CHARACTERS_MAX // 2),
        "9" * FILTER_CHARACTERS_MAX,
        "a = " + "9" * 30000 + ".",
        "a = 1e" + "9" * 30000,
        " " * FILTER_CHARACTERS_MAX,
        "a = '" + "''" * 16000,
        "(" * FILTER_CHARACTERS_MAX,
        "NOT " * (FILTER_CHARACTERS_MAX // 4),
    ],
    ids=lambda text: repr(text[:8]),
)
def test_hostile_texts_are_refused_soon(hostile: str) -> None:
    began = perf_counter()
    with pytest.raises(FilterError):
        compile_filter(hostile)
    assert perf_counter() - began < 5
