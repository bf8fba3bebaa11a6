"""Expressions that nobody wrote: read back as they were printed, evaluated by the book, refused."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from gantrymq.broker.filter.compiled import compile_filter
from gantrymq.broker.filter.errors import FilterError, NotComparable
from gantrymq.broker.filter.expression import (
    And,
    Between,
    Cast,
    Equal,
    Kind,
    Literal,
    Negate,
    Node,
    Not,
    Or,
    Order,
    Part,
    Property,
    Search,
    Sign,
    Within,
    is_condition,
)
from gantrymq.broker.filter.lexer import KEYWORDS
from gantrymq.broker.filter.parser import parse
from support.filter_cases import made_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.broker.filter.compiled import CompiledFilter

NULL = Literal(None, Kind.NULL)
NAMES = ("a", "b", "c", "$d_1")
TEXTS = ("", "x", "5", "it's", "true", "中", "2147483648", "-1", "5.5")


# -- trees ---------------------------------------------------------------------------------------


def number_literals() -> st.SearchStrategy[Literal]:
    whole = st.sampled_from([0, 1, 5, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1]) | st.integers(0, 99)
    double = st.sampled_from([0.5, 5.0, 5.5, 2.0**31, 2.0**53, 1e300, 5e-324])
    return whole.map(lambda n: Literal(n, Kind.INT if n < 2**31 else Kind.LONG)) | double.map(
        lambda x: Literal(x, Kind.DOUBLE)
    )


PROPERTIES = st.sampled_from(NAMES).map(Property)
BOOLEANS = st.booleans().map(lambda value: Literal(value, Kind.BOOLEAN))
TEXT_LITERALS = st.sampled_from(TEXTS).map(lambda text: Literal(text, Kind.TEXT))


def is_equal_allowed(pair: tuple[Node, Node]) -> bool:
    left, right = pair
    if any(isinstance(node, Literal) and node.value is None for node in pair):
        return False
    both = isinstance(left, Literal) and isinstance(right, Literal)
    return not (both and left.kind is Kind.BOOLEAN and right.kind is not Kind.BOOLEAN)  # type: ignore[union-attr]


def is_between_allowed(node: Between) -> bool:
    low, high = node.low, node.high
    if node.negated or not (isinstance(low, Literal) and isinstance(high, Literal)):
        return True
    assert isinstance(low.value, int | float)
    assert isinstance(high.value, int | float)
    if Kind.DOUBLE in {low.kind, high.kind}:
        return float(low.value) <= float(high.value)
    return low.value <= high.value


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> Node:
    """Return conditions; written as a function, since hypothesis would print a strategy whole."""
    kind = draw(st.sampled_from(["order", "equal", "null", "within", "between", "search", *LOGIC]))
    if kind in LOGIC and depth:
        return draw(logic(LOGIC[kind], depth - 1))
    if kind == "null":
        return Equal(draw(operands(depth) | st.just(NULL)), NULL)
    if kind == "within":
        texts = draw(st.frozensets(st.sampled_from(TEXTS), min_size=1))
        return Within(draw(PROPERTIES), texts, draw(st.booleans()))
    if kind == "search":
        text = draw(st.sampled_from(TEXTS))
        return Search(draw(st.sampled_from(Part)), draw(operands(depth)), text, draw(st.booleans()))
    return draw(comparisons(kind, depth))


LOGIC: dict[str, type[And] | type[Or] | type[Not]] = {"and": And, "or": Or, "not": Not}


@st.composite
def logic(draw: st.DrawFn, kind: type[And] | type[Or] | type[Not], depth: int) -> Node:
    terms = trees(depth) | PROPERTIES.map(Cast) | BOOLEANS | st.just(NULL)
    if kind is Not:
        return Not(draw(terms))
    apart = terms.filter(lambda term: not isinstance(term, kind))
    return kind(tuple(draw(st.lists(apart, min_size=2, max_size=4))))  # type: ignore[arg-type]


@st.composite
def comparisons(draw: st.DrawFn, kind: str, depth: int) -> Node:
    if kind == "equal":
        pair = st.tuples(operands(depth), operands(depth))
        return Equal(*draw(pair.filter(is_equal_allowed)))
    if kind == "between":
        parts = (numbers(depth), numbers(depth), numbers(depth), st.booleans())
        return draw(st.builds(Between, *parts).filter(is_between_allowed))
    return Order(draw(st.sampled_from(Sign)), draw(numbers(depth)), draw(numbers(depth)))


@st.composite
def numbers(draw: st.DrawFn, depth: int) -> Node:
    """Return what may stand beside > and <."""
    kind = draw(st.sampled_from(["property", "literal", "minus", "deep"]))
    if kind == "property":
        return draw(PROPERTIES)
    if kind == "literal" or (kind == "deep" and not depth):
        return draw(number_literals())
    return Negate(draw(number_literals() if kind == "minus" else operands(depth - 1)))


@st.composite
def operands(draw: st.DrawFn, depth: int) -> Node:
    """Return what may stand beside =."""
    kind = draw(st.sampled_from(["number", "boolean", "text", "condition"]))
    if kind == "condition" and depth:
        return draw(trees(depth - 1))
    if kind == "boolean":
        return draw(BOOLEANS)
    return draw(TEXT_LITERALS if kind == "text" else numbers(depth))


VALUES = st.sampled_from([*TEXTS, "NaN", "Infinity", "-0.0", "0", "+5", " 5", "1e3", "TRUE", "5f"])
MESSAGES = st.dictionaries(st.sampled_from(NAMES), VALUES)


def printed(node: Node) -> str:
    """Write a tree with all brackets."""
    return PRINTERS[type(node)](node)


def inside(node: Node) -> str:
    return f"({printed(node)})"


def printed_literal(node: Literal) -> str:
    if isinstance(node.value, str):
        return quoted(node.value)
    return "NULL" if node.value is None else str(node.value).upper()


def printed_equal(node: Equal) -> str:
    return f"{inside(node.left)} " + (
        "IS NULL" if node.right == NULL else f"= {inside(node.right)}"
    )


def word(node: Between | Within | Search, text: str) -> str:
    return f"NOT {text}" if node.negated else text


PRINTERS: dict[type, Callable[[Any], str]] = {
    Literal: printed_literal,
    Property: lambda node: node.name,
    Cast: lambda node: node.operand.name,
    Negate: lambda node: f"- {inside(node.operand)}",
    Not: lambda node: f"NOT {inside(node.operand)}",
    And: lambda node: " AND ".join(map(inside, node.terms)),
    Or: lambda node: " OR ".join(map(inside, node.terms)),
    Equal: printed_equal,
    Order: lambda node: f"{inside(node.left)} {node.sign.value} {inside(node.right)}",
    Between: lambda node: (
        f"{inside(node.value)} {word(node, 'BETWEEN')} {inside(node.low)} AND {inside(node.high)}"
    ),
    Within: lambda node: (
        f"{node.operand.name} {word(node, 'IN')} ({', '.join(map(quoted, sorted(node.texts)))})"
    ),
    Search: lambda node: (
        f"{inside(node.operand)} {word(node, node.part.value)} {quoted(node.text)}"
    ),
}


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# -- by the book: values carry their Java class, nothing is known beforehand -----------------------


class Java(NamedTuple):
    kind: Kind
    value: bool | int | float | str


class Wrong(Exception):
    """A comparison that Java ends with an exception."""


def evaluated(node: Node, message: dict[str, str]) -> Java | None:
    match node:
        case Literal(value=value, kind=kind):
            return None if value is None else Java(kind, value)
        case Property(name=name):
            return Java(Kind.TEXT, message[name]) if name in message else None
        case Negate(operand=operand):
            found = evaluated(operand, message)
            if found is None or found.kind in {Kind.TEXT, Kind.BOOLEAN}:
                return None
            return Java(found.kind, -found.value)  # type: ignore[operator]
        case _:
            truth = judged(node, message)
            return None if truth is None else Java(Kind.BOOLEAN, truth)


def truth_of(node: Node, message: dict[str, str]) -> bool | None:
    found = evaluated(node, message)
    return None if found is None else bool(found.value)


Message = dict[str, str]


def judged(node: Node, message: Message) -> bool | None:
    return JUDGES[type(node)](node, message)


def judged_not(node: Not, message: Message) -> bool | None:
    truth = truth_of(node.operand, message)
    return None if truth is None else not truth


def judged_between(node: Between, message: Message) -> bool | None:
    signs = (Sign.LESS, Sign.GREATER) if node.negated else (Sign.GREATER_EQUAL, Sign.LESS_EQUAL)
    parts = (Order(signs[0], node.value, node.low), Order(signs[1], node.value, node.high))
    return folded(parts, message, stop=node.negated)


def judged_within(node: Within, message: Message) -> bool | None:
    name = node.operand.name
    return (message[name] in node.texts) ^ node.negated if name in message else None


def folded(terms: tuple[Node, ...], message: dict[str, str], *, stop: bool) -> bool | None:
    """Go two by two, as Java's binary nodes do."""
    left = truth_of(terms[0], message)
    for term in terms[1:]:
        if left is stop:
            continue
        right = truth_of(term, message)
        if right is stop:
            left = stop
        elif left is None or right is None:
            left = None
    return left


def searched(node: Search, message: dict[str, str]) -> bool:
    if not node.text:
        return False
    found = evaluated(node.operand, message)
    if found is None or not isinstance(found.value, str):
        return False
    text = found.value
    is_there = {
        Part.ANYWHERE: text.find(node.text) >= 0,
        Part.START: text[: len(node.text)] == node.text,
        Part.END: text[-len(node.text) :] == node.text,
    }
    return is_there[node.part] ^ node.negated


def same(left: Java | None, right: Java | None) -> bool | None:
    if left is None or right is None:
        return True if left is right else None if left is None else False
    return compared(left, right) == 0


def ordered(
    sign: Sign, left: Java | None, right_node: Node, message: dict[str, str]
) -> bool | None:
    if left is None:
        return None
    right = evaluated(right_node, message)
    if right is None:
        return None
    if left.kind is right.kind is Kind.TEXT:
        left, right = converted(left, Kind.DOUBLE), converted(right, Kind.DOUBLE)
    order = compared(left, right)
    return {
        Sign.GREATER: order > 0,
        Sign.GREATER_EQUAL: order >= 0,
        Sign.LESS: order < 0,
        Sign.LESS_EQUAL: order <= 0,
    }[sign]


def compared(left: Java, right: Java) -> int:
    if left.kind is not right.kind:
        if Kind.BOOLEAN in {left.kind, right.kind}:
            if left.kind is Kind.BOOLEAN and right.kind is Kind.TEXT:
                raise Wrong
            if left.kind is not Kind.TEXT:
                return -1
        if left.kind is Kind.TEXT:
            left = converted(left, right.kind)
        elif right.kind is Kind.TEXT:
            right = converted(right, left.kind)
        elif Kind.DOUBLE in {left.kind, right.kind}:
            left = Java(Kind.DOUBLE, float(left.value))
            right = Java(Kind.DOUBLE, float(right.value))
    first, second = sortable(left.value), sortable(right.value)
    return int(first > second) - int(first < second)


def sortable(value: bool | int | float | str) -> Any:  # noqa: ANN401 - only compared
    """Return what sorts as Java sorts: -0.0 below 0.0, NaN last."""
    if isinstance(value, float):
        return (1, 0.0, 0.0) if math.isnan(value) else (0, value, math.copysign(1.0, value))
    return value


def converted(value: Java, kind: Kind) -> Java:
    text = str(value.value)
    if kind is Kind.BOOLEAN:
        return Java(kind, text.lower() == "true")
    if kind is Kind.DOUBLE:
        try:
            return Java(kind, float(text.removesuffix("f")))
        except ValueError:
            raise Wrong from None
    bits = 31 if kind is Kind.INT else 63
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if not digits.isdigit() or not -(2**bits) <= int(text) < 2**bits:
        raise Wrong
    return Java(kind, int(text))


JUDGES: dict[type, Callable[[Any, Message], bool | None]] = {
    Cast: lambda node, message: False if node.operand.name in message else None,
    Not: judged_not,
    And: lambda node, message: folded(node.terms, message, stop=False),
    Or: lambda node, message: folded(node.terms, message, stop=True),
    Order: lambda node, message: ordered(
        node.sign, evaluated(node.left, message), node.right, message
    ),
    Between: judged_between,
    Equal: lambda node, message: same(
        evaluated(node.left, message), evaluated(node.right, message)
    ),
    Within: judged_within,
    Search: searched,
}


# -- tests -----------------------------------------------------------------------------------------


@given(trees())
def test_a_printed_tree_is_read_back(tree: Node) -> None:
    assert is_condition(tree)
    assert parse(printed(tree)) == (tree, None)


@given(trees(), MESSAGES)
def test_evaluation_is_by_the_book(tree: Node, message: dict[str, str]) -> None:
    try:
        expected: object = truth_of(tree, message)
    except Wrong:
        expected = Wrong
    compiled = compile_filter(printed(tree))
    try:
        found: object = compiled.evaluate(message)
    except NotComparable:
        found = Wrong
    assert found is expected
    assert compiled.matches(message) is (expected is True)


def check_garbage(text: str, message: dict[str, str]) -> None:
    """Only what is meant to be raised is."""
    try:
        compiled = compile_filter(text)
    except FilterError as refused:
        position = refused.position
    else:
        position = len(text)
        check_evaluation(compiled, message)
    assert 0 <= position <= len(text)


def check_evaluation(compiled: CompiledFilter, message: dict[str, str]) -> None:
    try:
        assert compiled.evaluate(message) in {True, False, None}
    except NotComparable:
        assert not compiled.matches(message)


PIECES = st.sampled_from([
    *KEYWORDS, "a", "b", "$", "_", "5", "0", "1e5", ".5", "99999999999999999999", "'x'", "'", "''",
    "=", "<>", ">", "<", "(", ")", ",", "+", "-", "--", "/*", "*/", "\n", "\0", "é", "\ud800",
])  # fmt: skip


@given(st.lists(PIECES, max_size=30).map(" ".join), MESSAGES)
def test_words_in_any_order(text: str, message: dict[str, str]) -> None:
    check_garbage(text, message)


@given(st.text(st.characters() | st.sampled_from("'()ab=<>-+/*.,5 "), max_size=40), MESSAGES)
def test_characters_in_any_order(text: str, message: dict[str, str]) -> None:
    check_garbage(text, message)


@given(st.sampled_from(NAMES), st.text(max_size=12), st.integers(0, 2**40))
def test_any_value(name: str, value: str, seed: int) -> None:
    for expression, message in made_up(seed, 3):
        check_garbage(expression, {**message, name: value})
