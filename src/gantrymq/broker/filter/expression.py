"""What a SQL92 filter says, as a tree.

Every node knows the kind of its value before any message is seen: a property is a text, a literal
is what it looks like, a condition is a truth value. Any of them may also have no value (null).
`<>`, IS NULL and IS NOT NULL are written with the nodes here, as Apache does.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

import msgspec


class Kind(Enum):
    """What a value is, if there is one."""

    NULL = "null"
    """There never is one."""
    BOOLEAN = "boolean"
    INT = "32-bit integer"
    LONG = "64-bit integer"
    DOUBLE = "double"
    TEXT = "text"


NUMBERS = frozenset({Kind.INT, Kind.LONG, Kind.DOUBLE})


class Sign(Enum):
    """The comparisons that need an order."""

    GREATER = ">"
    GREATER_EQUAL = ">="
    LESS = "<"
    LESS_EQUAL = "<="


class Part(Enum):
    """Where a text is looked for."""

    ANYWHERE = "CONTAINS"
    START = "STARTSWITH"
    END = "ENDSWITH"


class Literal(msgspec.Struct, frozen=True):
    """A value that stands in the expression."""

    value: bool | int | float | str | None
    kind: Kind


class Property(msgspec.Struct, frozen=True):
    """A property of the message."""

    name: str


class Negate(msgspec.Struct, frozen=True):
    """`-x`: the number with the other sign, null for anything else."""

    operand: Node


class Cast(msgspec.Struct, frozen=True):
    """A property where a condition is due: FALSE if there is one, since it is a text."""

    operand: Property


class Not(msgspec.Struct, frozen=True):
    """`NOT x`."""

    operand: Node


class And(msgspec.Struct, frozen=True):
    """`x AND y AND z`."""

    terms: tuple[Node, ...]


class Or(msgspec.Struct, frozen=True):
    """`x OR y OR z`."""

    terms: tuple[Node, ...]


class Equal(msgspec.Struct, frozen=True):
    """`x = y`, and `x IS NULL` with a null on the right."""

    left: Node
    right: Node


class Order(msgspec.Struct, frozen=True):
    """`x > y` and the like."""

    sign: Sign
    left: Node
    right: Node


class Between(msgspec.Struct, frozen=True):
    """`x BETWEEN y AND z`: `x >= y AND x <= z`; `x NOT BETWEEN y AND z`: `x < y OR x > z`."""

    value: Node
    low: Node
    high: Node
    negated: bool


class Within(msgspec.Struct, frozen=True):
    """`x IN ('a', 'b')`, `x NOT IN ('a')`."""

    operand: Property
    texts: frozenset[str]
    negated: bool


class Search(msgspec.Struct, frozen=True):
    """`x CONTAINS 'a'`, `x NOT STARTSWITH 'a'`."""

    part: Part
    operand: Node
    text: str
    negated: bool


Condition: TypeAlias = Cast | Not | And | Or | Equal | Order | Between | Within | Search
Node: TypeAlias = Literal | Property | Negate | Condition


def kind_of(node: Node) -> Kind:
    """Return what a node's value is if it has one."""
    if isinstance(node, Literal):
        return node.kind
    if isinstance(node, Property):
        return Kind.TEXT
    if isinstance(node, Negate):
        kind = kind_of(node.operand)
        return kind if kind in NUMBERS else Kind.NULL
    return Kind.BOOLEAN


def is_condition(node: Node) -> bool:
    """Tell whether a node can stand by itself: a condition, or one of TRUE, FALSE and NULL."""
    if isinstance(node, Literal):
        return node.kind in {Kind.BOOLEAN, Kind.NULL}
    return not isinstance(node, Property | Negate)


def children_of(node: Node) -> tuple[Node, ...]:
    """Return the nodes right below a node."""
    if isinstance(node, Literal | Property):
        return ()
    if isinstance(node, And | Or):
        return node.terms
    if isinstance(node, Equal | Order):
        return (node.left, node.right)
    if isinstance(node, Between):
        return (node.value, node.low, node.high)
    return (node.operand,)
