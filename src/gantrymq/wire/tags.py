"""Tag expressions: `a || b`, and what a message's tag is matched by.

The consume queue holds Java's string hash of a message's tag, 0 for none. The broker matches by
hash and may let through a neighbour with the same hash; the client compares the text again.
"""

from __future__ import annotations

from typing import Final

import msgspec

from gantrymq.errors import InvalidValue
from gantrymq.kernel import kernel

ALL: Final = "*"
_JAVA_BLANKS: Final = "".join(map(chr, range(33)))
"""What Java's `String.trim` takes off: all up to and including the space."""


def tag_hash(tag: str | None) -> int:
    """Return the hash of a tag as consume queues hold it; 0 for no tag."""
    return kernel.string_hash(tag.encode(errors="replace")) if tag else 0


class TagFilter(msgspec.Struct, frozen=True):
    """A parsed tag expression. Without tags it lets everything through."""

    tags: frozenset[str]
    hashes: frozenset[int]

    @classmethod
    def parse(cls, expression: str | None) -> TagFilter:
        """Read an expression; None, empty and `*` mean all.

        Raises InvalidValue for one that names no tag, such as `||`.
        """
        if not expression or expression == ALL:
            return cls(frozenset(), frozenset())
        words = (word.strip(_JAVA_BLANKS) for word in expression.split("||"))
        tags = frozenset(word for word in words if word)
        if not tags:
            raise InvalidValue(f"tag expression {expression[:64]!r} names no tag")
        return cls(tags, frozenset(tag_hash(tag) for tag in tags))

    @property
    def is_all(self) -> bool:
        """Say whether every message matches."""
        return not self.tags

    def matches_hash(self, tags_code: int) -> bool:
        """Say whether a consume queue entry may match; equal hashes of other tags do too."""
        return not self.tags or tags_code in self.hashes

    def matches(self, tag: str | None) -> bool:
        """Say whether a message with this tag matches."""
        return not self.tags or tag in self.tags
