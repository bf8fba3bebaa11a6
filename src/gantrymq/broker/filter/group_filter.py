"""The SQL92 filter of one group on one topic (ConsumerFilterData.java)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.broker.filter.compiled import CompiledFilter, compile_filter
from gantrymq.broker.filter.errors import FilterError
from gantrymq.model.group import SQL92_EXPRESSION, TAG_EXPRESSION

if TYPE_CHECKING:
    from gantrymq.broker.filter.bloom import BloomBits

_TAG_TYPES: Final = frozenset({None, "", TAG_EXPRESSION})


def is_tag_type(expression_type: str | None) -> bool:
    """Tell whether expressions of this type are lists of tags; those without a type are."""
    return expression_type in _TAG_TYPES


class GroupFilter(msgspec.Struct, frozen=True):
    """What a group takes from a topic, since when, and whether the group is still there."""

    group: str
    topic: str
    expression: str
    expression_type: str
    client_version: int
    born_ms: int
    dead_ms: int = 0
    bits: BloomBits | None = None
    compiled: CompiledFilter | None = None
    """None for a stored expression that is no filter: all messages pass then, as in Apache."""

    @property
    def is_dead(self) -> bool:
        """Tell whether the group has gone since."""
        return self.dead_ms >= self.born_ms

    def knows(self, store_ms: int) -> bool:
        """Tell whether a message was stored when bitmaps already counted this filter in."""
        return store_ms > self.born_ms


def build_filter(
    topic: str,
    group: str,
    expression: str,
    expression_type: str,
    client_version: int,
    now_ms: int,
) -> GroupFilter:
    """Return a filter without bits: one for a single pull, or to be registered.

    Raises:
        FilterError: the expression is none, or its type is not SQL92.
    """
    if expression_type != SQL92_EXPRESSION:
        raise FilterError(
            0, f"expressions of type {expression_type[:64]!r} are not known; SQL92 is"
        )
    compiled = compile_filter(expression)
    return GroupFilter(
        group, topic, expression, expression_type, client_version, now_ms, compiled=compiled
    )
