"""A sheet in Prometheus's text format, made by its own library a few rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from gantrymq.metrics.catalogue import COMMON, Kind
from gantrymq.metrics.sheet import Spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from prometheus_client.core import Metric

    from gantrymq.metrics.catalogue import Family
    from gantrymq.metrics.sheet import Row, Sheet
    from gantrymq.metrics.turns import Turns

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
LINES_AT_ONCE: Final = 32
"""The library takes some ten microseconds for a line."""


class _Some(Collector):
    """A few rows of one metric, as the library wants to be given them."""

    def __init__(self, name: str, family: Family, rows: Sequence[Row | Spread]) -> None:
        self._name = name
        self._family = family
        self._rows = rows

    def collect(self) -> Iterable[Metric]:
        """Yield the metric."""
        family = self._family
        labels = (*COMMON, *family.labels) if family.is_common else family.labels
        if family.kind is Kind.HISTOGRAM:
            yield self._histogram(labels)
            return
        kind = CounterMetricFamily if family.kind is Kind.COUNTER else GaugeMetricFamily
        made = kind(self._name, family.text, labels=labels)
        for row in self._rows:
            made.add_metric(row.labels, cast("Row", row).value)
        yield made

    def _histogram(self, labels: tuple[str, ...]) -> Metric:
        made = HistogramMetricFamily(self._name, self._family.text, labels=labels)
        for row in self._rows:
            spread = cast("Spread", row)
            ends = [*(str(float(bound)) for bound in spread.bounds), "+Inf"]
            made.add_metric(spread.labels, list(zip(ends, spread.below, strict=True)), spread.total)
        return made


async def rendered(sheet: Sheet, turns: Turns) -> bytes:
    """Return the text of a scrape."""
    parts: list[bytes] = []
    for name, family, rows in sheet.families():
        first = rows[0]
        lines = len(first.below) + 2 if isinstance(first, Spread) else 1
        step = max(1, LINES_AT_ONCE // lines)
        for start in range(0, len(rows), step):
            some = _Some(name, family, rows[start : start + step])
            text = generate_latest(cast("CollectorRegistry", some))
            # HELP and TYPE stand once, above all rows.
            parts.append(text.split(b"\n", 2)[2] if start else text)
            await turns.next()
    return b"".join(parts)
