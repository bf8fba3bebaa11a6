"""From the text of a SQL92 filter to its tree, by the grammar of Apache's SelectorParser.jj.

    or          and { OR and }
    and         equality { AND equality }
    equality    comparison { = comparison | <> comparison | IS NULL | IS NOT NULL }
    comparison  unary { > unary | >= unary | < unary | <= unary
                      | [NOT] CONTAINS text | [NOT] STARTSWITH text | [NOT] ENDSWITH text
                      | [NOT] BETWEEN unary AND unary | [NOT] IN ( text {, text} ) }
    unary       + unary | - unary | NOT unary | primary
    primary     literal | name | ( or )

Two things in it surprise, and both are kept, because a consumer that works with Apache must work
here: NOT binds tighter than a comparison (`NOT a = 1` is `(NOT a) = 1`), and what stands behind a
complete expression does not count (`a = 1 b = 2` is `a = 1`), except that the next word must be
one. `Parsed.ignored_from` tells where that begins, so that somebody can be told.

Written by hand: six short functions read this grammar, and importing a parser generator would
cost a tenth of the second in which a broker starts.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from gantrymq.broker.filter.building import (
    between,
    double_literal,
    equal,
    order,
    unquoted,
    whole_literal,
)
from gantrymq.broker.filter.errors import FilterError
from gantrymq.broker.filter.expression import (
    And,
    Cast,
    Equal,
    Kind,
    Literal,
    Negate,
    Node,
    Not,
    Or,
    Part,
    Property,
    Search,
    Sign,
    Within,
    children_of,
    is_condition,
)
from gantrymq.broker.filter.lexer import END, FLOAT, NAME, TEXT, WHOLE, Word, next_word
from gantrymq.errors import shown
from gantrymq.limits import FILTER_CHARACTERS_MAX, FILTER_DEPTH_MAX, FILTER_NODES_MAX

_SIGNS: Final = {sign.value: sign for sign in Sign}
_PARTS: Final = {part.value: part for part in Part}
_AFTER_VALUE: Final = frozenset({"NOT", "BETWEEN", "IN", *_SIGNS, *_PARTS})
_CONSTANTS: Final = {
    "TRUE": Literal(value=True, kind=Kind.BOOLEAN),
    "FALSE": Literal(value=False, kind=Kind.BOOLEAN),
    "NULL": Literal(None, Kind.NULL),
}


class Parsed(NamedTuple):
    """What was read."""

    root: Node
    ignored_from: int | None
    """Where text begins that does not count, if there is any."""


def parse(text: str) -> Parsed:
    """Read an expression.

    Raises:
        FilterError: it is none, or larger than `limits` allows.
    """
    if len(text) > FILTER_CHARACTERS_MAX:
        problem = f"the expression has {len(text)} characters; at most {FILTER_CHARACTERS_MAX}"
        raise FilterError(FILTER_CHARACTERS_MAX, problem)
    return _Parser(text).parse()


class _Parser:
    """Reads one expression; `_word` is the next word that nobody has taken."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._word = next_word(text, 0)
        self._nodes = 0
        self._depth = 0

    def parse(self) -> Parsed:
        first = self._word
        root = self._condition(self._or(), first)
        _check_depth(root)
        return Parsed(root, None if self._word.kind == END else self._word.start)

    # -- the grammar -----------------------------------------------------------------------------

    def _or(self) -> Node:
        first = self._word
        left = self._and()
        while self._word.kind == "OR":
            self._take()
            second = self._word
            right = self._and()
            terms = self._terms(Or, self._condition(left, first), self._condition(right, second))
            left = self._grown(Or(terms))
        return left

    def _and(self) -> Node:
        first = self._word
        left = self._equality()
        while self._word.kind == "AND":
            self._take()
            second = self._word
            right = self._equality()
            terms = self._terms(And, self._condition(left, first), self._condition(right, second))
            left = self._grown(And(terms))
        return left

    def _equality(self) -> Node:
        left = self._comparison()
        while True:
            word = self._word
            if word.kind in {"=", "<>"}:
                self._take()
                same = equal(left, self._comparison(), word)
                left = self._grown(same if word.kind == "=" else Not(same))
            elif word.kind == "IS":
                self._take()
                negated = self._took("NOT")
                self._expect("NULL", "NULL or NOT NULL")
                is_null = Equal(left, _CONSTANTS["NULL"])
                left = self._grown(Not(is_null) if negated else is_null)
            else:
                return left

    def _comparison(self) -> Node:
        left = self._unary()
        while self._word.kind in _AFTER_VALUE:
            word = self._take()
            if word.kind in _SIGNS:
                left = order(_SIGNS[word.kind], left, self._unary(), word)
            else:
                left = self._comparison_by_word(left, word)
            self._grown(left)
        return left

    def _comparison_by_word(self, left: Node, word: Word) -> Node:
        negated = word.kind == "NOT"
        if negated:
            word = self._take()
        if word.kind in _PARTS:
            return Search(_PARTS[word.kind], left, self._text_literal(word), negated)
        if word.kind == "BETWEEN":
            low = self._unary()
            self._expect("AND", "AND, which belongs to BETWEEN")
            return between(left, low, self._unary(), word, negated=negated)
        if word.kind == "IN":
            return self._within(left, word, negated=negated)
        wanted = "BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH"
        raise FilterError(word.start, f"behind a value NOT needs {wanted}, not {shown(str(word))}")

    def _within(self, left: Node, word: Word, *, negated: bool) -> Node:
        if not isinstance(left, Property):
            raise FilterError(word.start, "only a property can be looked for with IN")
        self._expect("(", "( behind IN")
        texts = {self._text_literal(word)}
        while self._took(","):
            texts.add(self._text_literal(word))
        self._expect(")", ") or a comma in the list behind IN")
        return Within(left, frozenset(texts), negated)

    def _unary(self) -> Node:
        word = self._word
        if word.kind not in {"+", "-", "NOT"}:
            return self._primary()
        self._take()
        self._enter(word)
        first = self._word
        operand = self._unary()
        self._depth -= 1
        if word.kind == "+":
            return operand
        if word.kind == "-":
            return self._grown(Negate(operand))
        return self._grown(Not(self._condition(operand, first)))

    def _primary(self) -> Node:
        word = self._take()
        if word.kind == "(":
            self._enter(word)
            inner = self._or()
            self._expect(")", f") for the ( at character {word.start + 1}")
            self._depth -= 1
            return inner
        if word.kind == NAME:
            return self._grown(Property(word.text))
        if word.kind == TEXT:
            return self._grown(Literal(unquoted(word), Kind.TEXT))
        if word.kind == WHOLE:
            return self._grown(whole_literal(word))
        if word.kind == FLOAT:
            return self._grown(double_literal(word))
        if word.kind in _CONSTANTS:
            return self._grown(_CONSTANTS[word.kind])
        problem = f"a property, a value or a bracket is due, not {shown(str(word))}"
        raise FilterError(word.start, problem)

    # -- words -----------------------------------------------------------------------------------

    def _take(self) -> Word:
        word = self._word
        if word.kind != END:
            self._word = next_word(self._text, word.start + len(word.text))
        return word

    def _took(self, kind: str) -> bool:
        if self._word.kind != kind:
            return False
        self._take()
        return True

    def _expect(self, kind: str, wanted: str) -> None:
        if not self._took(kind):
            raise FilterError(self._word.start, f"{wanted} is due, not {shown(str(self._word))}")

    def _text_literal(self, behind: Word) -> str:
        word = self._take()
        if word.kind != TEXT:
            problem = f"{behind.text} takes texts in single quotes, not {shown(str(word))}"
            raise FilterError(word.start, problem)
        return unquoted(word)

    # -- bounds ----------------------------------------------------------------------------------

    def _enter(self, word: Word) -> None:
        self._depth += 1
        if self._depth > FILTER_DEPTH_MAX:
            problem = f"more than {FILTER_DEPTH_MAX} brackets and signs inside each other"
            raise FilterError(word.start, problem)

    def _grown(self, node: Node) -> Node:
        self._nodes += 1
        if self._nodes > FILTER_NODES_MAX:
            problem = f"more than {FILTER_NODES_MAX} values and conditions"
            raise FilterError(self._word.start, problem)
        return node

    # -- conditions ------------------------------------------------------------------------------

    @staticmethod
    def _terms(kind: type[And] | type[Or], left: Node, right: Node) -> tuple[Node, ...]:
        """Keep chains flat: they may be long, and the outcome is the same."""
        lists = (node.terms if isinstance(node, kind) else (node,) for node in (left, right))
        return tuple(term for terms in lists for term in terms)

    @staticmethod
    def _condition(node: Node, first: Word) -> Node:
        if isinstance(node, Property):
            return Cast(node)
        if is_condition(node):
            return node
        raise FilterError(first.start, "a condition is due, and this is a value")


def _check_depth(root: Node) -> None:
    """Refuse a tree that would take too deep a recursion to evaluate."""
    level: list[Node] = [root]
    for _ in range(FILTER_DEPTH_MAX):
        level = [child for node in level for child in children_of(node)]
        if not level:
            return
    raise FilterError(0, f"more than {FILTER_DEPTH_MAX} conditions inside each other")
