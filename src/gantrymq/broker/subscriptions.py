"""Noticing that members of one group subscribe differently, which loses messages.

All members of a group must take the same from every topic: the broker filters by one subscription
for the whole group, and queues go to members whatever they subscribed to. Apache lets the last
heartbeat win and says nothing. Here the difference is kept, named, and told once for each change.

What is compared is what a member takes, not how it wrote it: `a || b` is `b||a`. A rolling update
shows as a difference until its last member is restarted.

Owned by one task (the event loop).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gantrymq.errors import shown
from gantrymq.limits import ERROR_TEXT_CHARACTERS_MAX
from gantrymq.model.group import SUBSCRIBE_ALL, TAG_EXPRESSION, Subscription

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Taken = tuple[str, str, str]
"""Topic, kind of expression, expression in one form."""
Shape = frozenset[Taken]
"""All that a member takes."""


class Variant(NamedTuple):
    """Members that agree with each other."""

    client_ids: tuple[str, ...]
    subscriptions: tuple[Taken, ...]
    """What they take that not everyone takes."""


class Mismatch(NamedTuple):
    """A group whose members do not agree; with a single variant or none, they agree again."""

    group: str
    variants: tuple[Variant, ...]

    def in_words(self) -> str:
        """Return who takes what, as far as it is not the same, in a few words."""
        told = []
        for variant in self.variants:
            taken = ", ".join(f"{topic} {text}" for topic, _kind, text in variant.subscriptions)
            ids = ", ".join(variant.client_ids)
            told.append(f"{shown(ids)} take {shown(taken or 'nothing else')}")
        return shown("; ".join(told), ERROR_TEXT_CHARACTERS_MAX)


def _ignore(_: Mismatch) -> None:
    """Be told of what nobody asked about."""


class SubscriptionWatch:
    """What the members of each group take."""

    def __init__(self, changed: Callable[[Mismatch], None] = _ignore) -> None:
        self._changed = changed
        self._groups: dict[str, dict[int, tuple[str, Shape]]] = {}
        self._counts: dict[str, dict[Shape, int]] = {}

    def note(
        self, group: str, member: int, client_id: str, subscriptions: Iterable[Subscription]
    ) -> None:
        """Learn what a member takes; a member is a number that stays the same."""
        shape = frozenset(map(_taken, subscriptions))
        members = self._groups.setdefault(group, {})
        counts = self._counts.setdefault(group, {})
        known = members.get(member)
        members[member] = (client_id, shape)
        if known is not None and known[1] == shape:
            return
        before = frozenset(counts)
        if known is not None:
            _take_one(counts, known[1])
        counts[shape] = counts.get(shape, 0) + 1
        self._tell(group, before, frozenset(counts))

    def forget(self, group: str, member: int) -> None:
        """Learn that a member has left."""
        members = self._groups.get(group)
        known = None if members is None else members.pop(member, None)
        if members is None or known is None:
            return
        counts = self._counts[group]
        before = frozenset(counts)
        _take_one(counts, known[1])
        self._tell(group, before, frozenset(counts))
        if not members:
            del self._groups[group], self._counts[group]

    def mismatches(self) -> list[Mismatch]:
        """Return every group whose members do not agree."""
        return [self._mismatch(group) for group, counts in self._counts.items() if len(counts) > 1]

    def __len__(self) -> int:
        """Return how many groups are watched."""
        return len(self._groups)

    def _tell(self, group: str, before: frozenset[Shape], after: frozenset[Shape]) -> None:
        if before != after and (len(before) > 1 or len(after) > 1):
            self._changed(self._mismatch(group))

    def _mismatch(self, group: str) -> Mismatch:
        shapes = self._counts[group]
        everyones = frozenset.intersection(*shapes) if shapes else frozenset()
        members = self._groups[group].values()
        return Mismatch(
            group,
            tuple(
                Variant(
                    tuple(sorted(client_id for client_id, has in members if has == shape)),
                    tuple(sorted(shape - everyones)),
                )
                for shape in sorted(shapes, key=sorted)
            ),
        )


def _take_one(counts: dict[Shape, int], shape: Shape) -> None:
    counts[shape] -= 1
    if not counts[shape]:
        del counts[shape]


def _taken(subscription: Subscription) -> Taken:
    """Return what a subscription takes, in one form."""
    kind = subscription.expression_type or TAG_EXPRESSION
    text = subscription.expression.strip()
    if kind == TAG_EXPRESSION:
        tags = sorted({tag.strip() for tag in text.split("||")} - {""})
        text = " || ".join(tags) or SUBSCRIBE_ALL
    return subscription.topic, kind, text
