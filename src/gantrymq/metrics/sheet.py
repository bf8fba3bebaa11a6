"""What one scrape has found: rows of labels and values, by metric.

A row that the catalogue knows nothing of is refused, so that no metric is exported which no page
explains. Owned by the task of the scrape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gantrymq.metrics.catalogue import COMMON, FAMILIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gantrymq.metrics.catalogue import Family


class Row(NamedTuple):
    """One value and its labels."""

    labels: tuple[str, ...]
    value: float


class Spread(NamedTuple):
    """One histogram and its labels."""

    labels: tuple[str, ...]
    bounds: Sequence[float]
    below: Sequence[int]
    """For every bound how many were not above it; then how many there are."""
    total: float


class Sheet:
    """All rows of a scrape."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Row | Spread]] = {}

    def page(self, *common: str) -> Page:
        """Return what writes rows of one broker, name server or process."""
        return Page(self._rows, common)

    def families(self) -> Iterator[tuple[str, Family, list[Row | Spread]]]:
        """Yield every metric that has rows, under each of its names, in the catalogue's order."""
        for name, family in FAMILIES.items():
            rows = self._rows.get(name)
            if rows:
                yield name, family, rows
                if family.also:
                    yield family.also, family, rows


class Page:
    """Writes rows; `common` are the labels that all of them have."""

    def __init__(self, rows: dict[str, list[Row | Spread]], common: tuple[str, ...]) -> None:
        self._rows = rows
        self._common = common

    def put(self, name: str, value: float, *labels: str) -> None:
        """Write a value."""
        self._add(name, Row(self._checked(name, labels), value))

    def spread(
        self, name: str, bounds: Sequence[float], below: Sequence[int], total: float, *labels: str
    ) -> None:
        """Write a histogram."""
        self._add(name, Spread(self._checked(name, labels), bounds, below, total))

    def _checked(self, name: str, labels: tuple[str, ...]) -> tuple[str, ...]:
        family = FAMILIES[name]
        if len(labels) != len(family.labels) or (
            family.is_common and len(self._common) != len(COMMON)
        ):
            raise ValueError(f"{name} has the labels {family.labels}, not {labels}")
        return (*self._common, *labels) if family.is_common else labels

    def _add(self, name: str, row: Row | Spread) -> None:
        self._rows.setdefault(name, []).append(row)
