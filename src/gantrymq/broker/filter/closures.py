"""From the tree of a filter to a function over a message's properties.

Kinds are known beforehand (`expression`), so each comparison becomes the one closure that fits
its two sides. What comes out is Apache's three-valued logic: True, False or None, where a message
passes on True alone.

- A comparison with a missing value is None; but `x = missing` is False, and two that are missing
  are equal.
- A text is read as what the other side is: a 32-bit integer for a literal that fits, a 64-bit one
  for a larger literal, a double for one with a point, true or false. Two texts are compared as
  doubles by order. A text that cannot be read so is an error, and an error anywhere on the way
  means that the message does not pass, whatever an OR would have said.
- AND and OR look at their terms from left to right and stop when the outcome is known, so an error
  behind that point does not happen.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from gantrymq.broker.filter.errors import NotComparable
from gantrymq.broker.filter.expression import (
    NUMBERS,
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
    kind_of,
)
from gantrymq.broker.filter.values import (
    compare_doubles,
    read_boolean,
    read_double,
    read_int,
    read_long,
)
from gantrymq.errors import shown

Properties: TypeAlias = Mapping[str, str]
Truth: TypeAlias = bool | None
# What a closure returns and takes is settled by the kinds of its node, which the checker cannot
# follow.
Value: TypeAlias = Any
Evaluate: TypeAlias = Callable[[Properties], Value]
Read: TypeAlias = Callable[[Value], Value]
Meet: TypeAlias = Callable[[Value, Value], bool]
Ordering: TypeAlias = Callable[[Value, Properties], Truth]

_SIGNS: Final[dict[Sign, Meet]] = {
    Sign.GREATER: operator.gt,
    Sign.GREATER_EQUAL: operator.ge,
    Sign.LESS: operator.lt,
    Sign.LESS_EQUAL: operator.le,
}
_PARTS: Final[dict[Part, Callable[[str, str], bool]]] = {
    Part.ANYWHERE: operator.contains,
    Part.START: str.startswith,
    Part.END: str.endswith,
}
_READERS: Final[dict[Kind, Read]] = {
    Kind.INT: read_int,
    Kind.LONG: read_long,
    Kind.DOUBLE: read_double,
    Kind.BOOLEAN: read_boolean,
}


def compile_node(node: Node) -> Evaluate:
    """Return the closure that evaluates a node."""
    compiler = _COMPILERS[type(node)]
    return compiler(node)


# -- values --------------------------------------------------------------------------------------


def _literal(node: Literal) -> Evaluate:
    value = node.value
    return lambda _: value


def _property(node: Property) -> Evaluate:
    name = node.name
    return lambda properties: properties.get(name)


def _negate(node: Negate) -> Evaluate:
    operand = compile_node(node.operand)
    if kind_of(node) is not Kind.NULL:
        # A number is a literal, perhaps with more signs before it: known now.
        value = -operand({})
        return lambda _: value

    def negate_no_number(properties: Properties) -> Value:
        operand(properties)  # for the error that it may raise
        return None

    return negate_no_number


# -- logic ---------------------------------------------------------------------------------------


def _cast(node: Cast) -> Evaluate:
    name = node.operand.name
    return lambda properties: False if properties.get(name) is not None else None


def _not(node: Not) -> Evaluate:
    operand = compile_node(node.operand)

    def negation(properties: Properties) -> Truth:
        value = operand(properties)
        return None if value is None else not value

    return negation


def _and(node: And) -> Evaluate:
    terms = tuple(compile_node(term) for term in node.terms)

    def conjunction(properties: Properties) -> Truth:
        result: Truth = True
        for term in terms:
            value = term(properties)
            if value is False:
                return False
            if value is None:
                result = None
        return result

    return conjunction


def _or(node: Or) -> Evaluate:
    terms = tuple(compile_node(term) for term in node.terms)

    def disjunction(properties: Properties) -> Truth:
        result: Truth = False
        for term in terms:
            value = term(properties)
            if value is True:
                return True
            if value is None:
                result = None
        return result

    return disjunction


# -- comparisons ---------------------------------------------------------------------------------


def _common_kind(left: Kind, right: Kind) -> Kind:
    """Return as what two kinds are compared; both are texts, numbers or alike."""
    kinds = {left, right}
    if Kind.TEXT in kinds and len(kinds) > 1:
        return right if left is Kind.TEXT else left
    if Kind.DOUBLE in kinds:
        return Kind.DOUBLE
    return Kind.LONG if Kind.LONG in kinds else left


def _reader(found: Kind, wanted: Kind) -> Read | None:
    """Return how a value becomes what it is compared as; None if it is already."""
    if found is wanted:
        return None
    if found is Kind.TEXT:
        return _READERS.get(wanted)
    return float if wanted is Kind.DOUBLE else None


def _order(node: Order) -> Evaluate:
    ordering = _ordering(node.sign, kind_of(node.left), node.right)
    if isinstance(node.left, Property):
        name = node.left.name

        def order_property(properties: Properties) -> Truth:
            value = properties.get(name)
            return None if value is None else ordering(value, properties)

        return order_property
    left = compile_node(node.left)

    def order(properties: Properties) -> Truth:
        value = left(properties)
        return None if value is None else ordering(value, properties)

    return order


def _between(node: Between) -> Evaluate:
    # The value is looked at once: nested, looking twice would be looking 2**n times.
    value_of, kind = compile_node(node.value), kind_of(node.value)
    negated = node.negated
    low = _ordering(Sign.LESS if negated else Sign.GREATER_EQUAL, kind, node.low)
    high = _ordering(Sign.GREATER if negated else Sign.LESS_EQUAL, kind, node.high)

    def between(properties: Properties) -> Truth:
        value = value_of(properties)
        if value is None:
            return None
        first = low(value, properties)
        if first is negated:
            return negated
        second = high(value, properties)
        if second is negated:
            return negated
        return None if first is None or second is None else not negated

    return between


def _ordering(sign: Sign, left: Kind, right: Node) -> Ordering:
    """Return what compares a value of a kind, one that is there, with the value of a node."""
    wanted = _common_kind(left, kind_of(right))
    if wanted is Kind.TEXT:
        wanted = Kind.DOUBLE
    meet = _SIGNS[sign] if wanted is not Kind.DOUBLE else _by_doubles(_SIGNS[sign])
    read, read_right = _reader(left, wanted), _reader(kind_of(right), wanted)
    evaluate = compile_node(right)
    if kind_of(right) in NUMBERS and left is Kind.TEXT and read is not None:
        return _with_number(read, meet, evaluate({}))

    def ordering(first: Value, properties: Properties) -> Truth:
        second = evaluate(properties)
        if second is None:
            return None
        if read is not None:
            first = read(first)
        if read_right is not None:
            second = read_right(second)
        return meet(first, second)

    return ordering


def _with_number(read: Read, meet: Meet, number: float) -> Ordering:
    """Return the quick form of what nearly all filters do: a property against a number."""
    return lambda text, _: meet(read(text), number)


def _by_doubles(sign: Meet) -> Meet:
    return lambda left, right: sign(compare_doubles(left, right), 0)


def _equal(node: Equal) -> Evaluate:
    left, right = compile_node(node.left), compile_node(node.right)
    meet = _meeting(kind_of(node.left), kind_of(node.right))

    def equal(properties: Properties) -> Truth:
        first, second = left(properties), right(properties)
        if first is None:
            return True if second is None else None
        return False if second is None else meet(first, second)

    return equal


def _meeting(left: Kind, right: Kind) -> Meet:
    """Return how two values that are there are found equal."""
    kinds = {left, right}
    if Kind.BOOLEAN in kinds and len(kinds) > 1:
        if Kind.TEXT not in kinds:
            return _never
        return _texts_with_truth if left is Kind.TEXT else _truth_with_texts
    wanted = _common_kind(left, right)
    read_left, read_right = _reader(left, wanted), _reader(right, wanted)
    same: Meet = _by_doubles(operator.eq) if wanted is Kind.DOUBLE else operator.eq
    if read_left is None and read_right is None:
        return same

    def meet(first: Value, second: Value) -> bool:
        if read_left is not None:
            first = read_left(first)
        if read_right is not None:
            second = read_right(second)
        return same(first, second)

    return meet


def _never(_first: Value, _second: Value) -> bool:
    return False


def _texts_with_truth(first: str, second: bool) -> bool:
    return read_boolean(first) is second


def _truth_with_texts(first: bool, second: str) -> bool:
    # Apache casts the wrong side here; whoever writes `TRUE = a` gets nothing from it.
    problem = f"{first} on the left of = cannot be compared with the text {shown(second)!r}"
    raise NotComparable(problem)


def _within(node: Within) -> Evaluate:
    name, texts, negated = node.operand.name, node.texts, node.negated

    def within(properties: Properties) -> Truth:
        text = properties.get(name)
        return None if text is None else (text in texts) is not negated

    return within


def _search(node: Search) -> Evaluate:
    text, negated, is_there = node.text, node.negated, _PARTS[node.part]
    operand = compile_node(node.operand)
    if not text:
        return lambda _: False
    is_text = kind_of(node.operand) is Kind.TEXT

    def search(properties: Properties) -> Truth:
        value = operand(properties)
        if value is None or not is_text:
            return False
        return is_there(value, text) is not negated

    return search


_COMPILERS: Final[dict[type, Callable[[Any], Evaluate]]] = {
    Literal: _literal,
    Property: _property,
    Negate: _negate,
    Cast: _cast,
    Not: _not,
    And: _and,
    Or: _or,
    Equal: _equal,
    Order: _order,
    Between: _between,
    Within: _within,
    Search: _search,
}
