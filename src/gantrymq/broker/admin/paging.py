"""Pages of a table, as 5.5 tools and slaves ask for them: from which entry, and how many.

The reader says which data version its pages had so far. If the table has changed since, or the
reader has none yet, the page begins at the first entry, so that nothing is missed.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

from gantrymq.wire.bodies.topic import DATA_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.model.offsets import DataVersion

T = TypeVar("T")

PAGE_MAX: Final = 2_000
"""`splitMetadataSize`: entries of one page."""


def page_of(
    table: Mapping[str, T],
    version: DataVersion,
    *,
    start: int | None,
    most: int | None,
    known: str | None,
) -> dict[str, T]:
    """Return a part of a table by name; all of it if nobody pages.

    Raises:
        ContentError: the version that the reader knows is none.
    """
    if start is None and most is None and known is None:
        return dict(table)
    same = bool(known and known.strip()) and DATA_VERSION.decode(str(known).encode()) == version
    first = max(start or 0, 0) if same else 0
    count = PAGE_MAX if most is None else max(0, min(most, PAGE_MAX))
    return dict(islice(sorted(table.items()), first, first + count))
