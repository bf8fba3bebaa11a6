"""The rows of the comparison: what each shows, what is required of it, and whether it is reached.

A figure is a number by name, of one broker (`Figures`); rows put those of the two side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Figures = dict[str, float]

SINGLE: Final = "sends_8x64_128"
TOPICS_RATE: Final = "topics_rate"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table. What is not set is not required."""

    figure: str
    what: str
    unit: str
    at_least: float | None = None
    """Times Apache's figure."""
    at_most: float | None = None
    """Times Apache's figure."""
    below: float | None = None
    """In the unit, whatever Apache's is."""
    of: str | None = None
    """Another figure of ours that this one is at least `part` of."""
    part: float = 0.5

    @property
    def required(self) -> str:
        """Return what is required, for people."""
        texts = []
        if self.below is not None:
            texts.append(f"under {self.below:g} {self.unit}" if self.below > 0 else "none")
        if self.at_least is not None:
            texts.append(f"at least {self.at_least:g} x")
        if self.at_most is not None:
            texts.append("below Apache's" if self.at_most == 1 else f"at most {self.at_most:g} x")
        if self.of is not None:
            texts.append(f"at least {self.part:g} x ours with one topic")
        return ", ".join(texts) or "-"


def _rows() -> tuple[Row, ...]:
    return (
        Row(figure=SINGLE, what="single sends, 8 x 64, 128 B", unit="/s", at_least=6),
        Row(figure="sends_8x64_1024", what="single sends, 8 x 64, 1 KiB", unit="/s", at_least=6),
        Row(figure="sends_64x1_128", what="single sends, 64 x 1", unit="/s", at_least=2),
        Row(figure="latency_p50", what="latency, 1 x 1, p50", unit="us", at_most=0.5),
        Row(figure="latency_p99", what="latency, 1 x 1, p99", unit="us", at_most=0.5),
        Row(figure="latency_p999", what="latency, 1 x 1, p99.9", unit="us"),
        Row(figure="batches_32", what="batches of 32, 128 B", unit="/s", at_least=3),
        Row(figure="pull_32", what="pull from the start, 32 at a time", unit="/s", at_least=2),
        Row(figure="refused", what="requests refused in the loads above", unit="", below=0),
        Row(figure="sync_flush", what="SYNC_FLUSH, 8 x 64, 128 B", unit="/s", at_least=3),
        Row(figure="sync_flush_errors", what="SYNC_FLUSH, sends refused", unit="", below=0),
        Row(figure="delivery_p50", what="push delivery to an idle consumer, p50", unit="ms"),
        Row(figure="delivery_p99", what="push delivery to an idle consumer, p99", unit="ms",
            below=10, at_most=1),
        Row(figure="boot", what="boot to the first accepted send", unit="s", at_most=1 / 8),
        Row(figure="recovery", what="kill -9, boot and recovery of 1 GiB", unit="s", at_most=1 / 5),
        Row(figure="memory_idle", what="resident memory, idle", unit="MiB", below=80),
        Row(figure="memory_after", what="private memory after 5 million messages", unit="MiB",
            below=200),
        Row(figure="memory_after_resident", what="resident memory after them", unit="MiB"),
        Row(figure=TOPICS_RATE, what="10,000 topics x 4 queues, single sends", unit="/s",
            of=SINGLE),
        Row(figure="topics_refused", what="10,000 topics x 4 queues, sends refused", unit="",
            below=0),
        Row(figure="topics_boot", what="10,000 topics x 4 queues, boot", unit="s", below=5),
    )  # fmt: skip


ROWS: Final = _rows()


@dataclass(frozen=True)
class Compared:
    """A row with its figures."""

    row: Row
    ours: float | None
    apache: float | None
    other: float | None = None
    """Ours that `row.of` names."""

    @property
    def ratio(self) -> float | None:
        """Return ours divided by Apache's."""
        if self.ours is None or not self.apache:
            return None
        return self.ours / self.apache

    @property
    def reached(self) -> bool | None:
        """Tell whether all that is required holds; None if nothing is, or a figure is missing."""
        row, ratio, ours = self.row, self.ratio, self.ours
        if ours is None:
            return None
        found: list[bool | None] = []
        if row.below is not None:
            found.append(ours < row.below if row.below > 0 else ours == 0)
        if row.at_least is not None:
            found.append(None if ratio is None else ratio >= row.at_least)
        if row.at_most is not None:
            found.append(None if ratio is None else ratio <= row.at_most)
        if row.of is not None:
            found.append(None if self.other is None else ours >= row.part * self.other)
        if False in found:
            return False
        return None if None in found or not found else True


def compare(ours: Mapping[str, float], apache: Mapping[str, float]) -> list[Compared]:
    """Return every row, with what was measured for it."""
    return [
        Compared(
            row,
            ours.get(row.figure),
            apache.get(row.figure),
            None if row.of is None else ours.get(row.of),
        )
        for row in ROWS
    ]


def table(compared: Sequence[Compared], *, judged: bool) -> str:
    """Return the table as text; unless `judged` it does not say what is reached."""
    head = ("what", "unit", "gantrymq", "Apache 5.5.0", "ratio", "required", "reached")
    lines = [head]
    for one in compared:
        verdict = {True: "yes", False: "NO", None: "-"}[one.reached] if judged else "-"
        ratio = "-" if one.ratio is None else f"{one.ratio:.3g} x"
        lines.append(
            (one.row.what, one.row.unit, _shown(one.ours), _shown(one.apache), ratio,
             one.row.required, verdict)
        )  # fmt: skip
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    right = {2, 3, 4}
    return "".join(
        "  ".join(
            text.rjust(width) if column in right else text.ljust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        + "\n"
        for line in lines
    )


def _shown(figure: float | None) -> str:
    if figure is None:
        return "-"
    return f"{figure:,.0f}" if figure >= 100 or figure == int(figure) else f"{figure:.3g}"
