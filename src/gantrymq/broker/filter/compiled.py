"""Filters that are ready to look at messages; the last ones used are kept."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from gantrymq.broker.filter.closures import compile_node
from gantrymq.broker.filter.errors import NotComparable
from gantrymq.broker.filter.parser import parse
from gantrymq.limits import FILTERS_CACHED_MAX

if TYPE_CHECKING:
    from gantrymq.broker.filter.closures import Evaluate, Properties, Truth


class CompiledFilter:
    """An expression that is ready to look at messages."""

    __slots__ = ("_evaluate", "expression", "ignored")

    def __init__(self, expression: str, ignored: str, evaluate: Evaluate) -> None:
        self.expression = expression
        self.ignored = ignored
        """Text behind the expression that does not count: as in Apache no error, but a mistake."""
        self._evaluate = evaluate

    def evaluate(self, properties: Properties) -> Truth:
        """Return what the expression says of a message.

        Raises:
            NotComparable: a value cannot be compared as the expression asks.
        """
        truth: Truth = self._evaluate(properties)
        return truth

    def matches(self, properties: Properties) -> bool:
        """Tell whether a message passes: null and errors mean no."""
        try:
            return self._evaluate(properties) is True
        except NotComparable:
            return False


@lru_cache(maxsize=FILTERS_CACHED_MAX)
def compile_filter(expression: str) -> CompiledFilter:
    """Return the filter that a text says; those used last are kept.

    Raises:
        FilterError: the text is no filter; names the character.
    """
    root, ignored_from = parse(expression)
    ignored = "" if ignored_from is None else expression[ignored_from:]
    return CompiledFilter(expression, ignored, compile_node(root))
