"""The nodes of a filter that not every pair of values, and not every number, can make.

Apache refuses the same when it parses; each function here raises `FilterError` with the place.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from gantrymq.broker.filter.errors import FilterError
from gantrymq.broker.filter.expression import (
    NUMBERS,
    Between,
    Equal,
    Kind,
    Literal,
    Node,
    Order,
    Sign,
    is_condition,
)
from gantrymq.broker.filter.values import INT_MAX, LONG_MAX

if TYPE_CHECKING:
    from gantrymq.broker.filter.lexer import Word

_LONG_DIGITS_MAX: Final = len(str(LONG_MAX))

# -- what may be compared ------------------------------------------------------------------------


def equal(left: Node, right: Node, word: Word) -> Node:
    """Return `left = right`, unless it can never be compared."""
    for node in (left, right):
        if isinstance(node, Literal) and node.value is None:
            problem = f"nothing can be compared with NULL by {word.text}; write IS NULL"
            raise FilterError(word.start, problem)
    if (
        isinstance(left, Literal)
        and left.kind is Kind.BOOLEAN
        and isinstance(right, Literal)
        and right.kind is not Kind.BOOLEAN
    ):
        raise FilterError(word.start, "TRUE and FALSE cannot be compared with this value")
    return Equal(left, right)


def order(sign: Sign, left: Node, right: Node, word: Word) -> Node:
    """Return `left > right` or the like, unless one of them is surely no number."""
    _check_number(left, word)
    _check_number(right, word)
    return Order(sign, left, right)


def _check_number(node: Node, word: Word) -> None:
    """Refuse what is surely no number; a property may be one."""
    if isinstance(node, Literal) and node.kind not in NUMBERS:
        problem = f"{word.text} compares numbers, and a {node.kind.value} is none"
        raise FilterError(word.start, problem)
    if is_condition(node):
        raise FilterError(word.start, f"{word.text} compares numbers, and a condition is none")


def between(value: Node, low: Node, high: Node, word: Word, *, negated: bool) -> Node:
    """Return `value BETWEEN low AND high`, unless nothing is between them."""
    for node in (value, low, high):
        _check_number(node, word)
    if (
        not negated
        and isinstance(low, Literal)
        and isinstance(high, Literal)
        and _number(high, low) < _number(low, high)
    ):
        problem = f"nothing is between {low.value} and {high.value}: the lower one comes first"
        raise FilterError(word.start, problem)
    return Between(value, low, high, negated)


def _number(literal: Literal, other: Literal) -> float:
    """Return what a literal is compared as: beside a double, a double."""
    value = literal.value
    if not isinstance(value, int | float):
        raise TypeError(f"{literal} is no number")
    return float(value) if Kind.DOUBLE in {literal.kind, other.kind} else value


# -- literals ------------------------------------------------------------------------------------


def unquoted(word: Word) -> str:
    """Return what a text says."""
    return word.text[1:-1].replace("''", "'")


def whole_literal(word: Word) -> Literal:
    """Return an integer, of 32 bits if it fits."""
    digits = word.text.rstrip("lL")
    value = int(digits) if len(digits) <= _LONG_DIGITS_MAX else LONG_MAX + 1
    if value > LONG_MAX:
        raise FilterError(word.start, f"an integer can be {LONG_MAX} at most")
    return Literal(value, Kind.INT if value <= INT_MAX else Kind.LONG)


def double_literal(word: Word) -> Literal:
    """Return a number with a point or an exponent."""
    value = float(word.text)
    if math.isinf(value):
        raise FilterError(word.start, "the number is larger than any double")
    if value == 0:
        raise FilterError(word.start, "a number with a point cannot be zero; write 0")
    return Literal(value, Kind.DOUBLE)
