"""What filters say of messages: the table that Apache agrees with."""

from __future__ import annotations

import pytest

from gantrymq.broker.filter.compiled import compile_filter
from gantrymq.broker.filter.errors import FilterError, NotComparable
from gantrymq.limits import FILTERS_CACHED_MAX
from support.filter_cases import CASES, Case

WORDS = {True: "TRUE", False: "FALSE", None: "NULL"}


def outcome(case: Case) -> str:
    try:
        compiled = compile_filter(case.expression)
    except FilterError:
        return "REFUSED"
    try:
        said = WORDS[compiled.evaluate(case.properties)]
    except NotComparable:
        said = "ERROR"
    # A message passes on TRUE alone.
    assert compiled.matches(case.properties) is (said == "TRUE")
    return said


def test_the_table_is_long_enough() -> None:
    assert len(CASES) > 500
    assert {case.outcome for case in CASES} == {"TRUE", "FALSE", "NULL", "ERROR", "REFUSED"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: ascii(case.expression))
def test_outcome(case: Case) -> None:
    assert outcome(case) == case.outcome


@pytest.mark.parametrize(
    ("expression", "ignored"),
    [
        ("a = 5", ""),
        ("a = 5 /* c */", ""),
        ("a = 5 b = 6", "b = 6"),
        ("a LIKE 'x%'", "LIKE 'x%'"),
        ("(a = 5) )  ", ")  "),
        ("a = 5 -- c", "-- c"),
    ],
)
def test_text_that_does_not_count_is_known(expression: str, ignored: str) -> None:
    assert compile_filter(expression).ignored == ignored


def test_a_filter_is_compiled_once() -> None:
    assert compile_filter("once = 1") is compile_filter("once = 1")


def test_few_filters_are_kept() -> None:
    first = compile_filter("kept = 0")
    for number in range(1, FILTERS_CACHED_MAX + 1):
        compile_filter(f"kept = {number}")
    assert compile_filter.cache_info().currsize == FILTERS_CACHED_MAX
    again = compile_filter("kept = 0")
    assert again is not first
    assert again.matches({"kept": "0"})


def test_a_value_too_long_for_a_number_does_not_match() -> None:
    compiled = compile_filter("a = 5 OR a = 5.0")
    assert compiled.matches({"a": "5".rjust(1024, "0")})
    with pytest.raises(NotComparable):
        compiled.evaluate({"a": "5".rjust(30000, "0")})
    with pytest.raises(NotComparable):
        compile_filter("a > 1.5").evaluate({"a": "5" * 30000})


def test_an_error_shows_little_of_a_value() -> None:
    with pytest.raises(NotComparable) as caught:
        compile_filter("a = 5").evaluate({"a": "secret" * 5000})
    assert len(str(caught.value)) < 200
    with pytest.raises(NotComparable) as caught:
        compile_filter("TRUE = a").evaluate({"a": "secret" * 5000})
    assert len(str(caught.value)) < 200
