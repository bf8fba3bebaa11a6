"""The table: every client's figure, how ours stands beside the fastest of them, and the bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

OURS: Final = "ours"
PYTHON: Final = "python"
JAVA: Final = "java"
TIMES_PYTHON: Final = 3.0
TIMES_JAVA: Final = 1.0
GROWTH_MIB_MAX: Final = 1.0
"""What counts as no growth: allocators keep a page here and there."""


@dataclass(frozen=True)
class Figure:
    """What one client did, in one way."""

    case: str
    client: str
    family: str
    """`ours`, `python` or `java`."""
    per_second: float | None
    left_out: str = ""
    """Why there is no figure."""
    extra: bool = False
    """Shown, and not what the bars are about."""


@dataclass(frozen=True)
class Bar:
    """A ratio, and what it must be."""

    what: str
    found: float | None
    required: str
    reached: bool | None


def fastest(figures: Sequence[Figure], case: str, family: str) -> float | None:
    """Return the highest rate of a family in a case."""
    rates = [
        one.per_second
        for one in figures
        if one.case == case
        and one.family == family
        and one.per_second is not None
        and not one.extra
    ]
    return max(rates, default=None)


def bars(figures: Sequence[Figure], growth_mib: float | None) -> list[Bar]:
    """Return every bar for which something was measured."""
    found: list[Bar] = []
    for case, java in (("producer", True), ("consumer", False)):
        ours = fastest(figures, case, OURS)
        if ours is None:
            continue
        python = fastest(figures, case, PYTHON)
        ratio = ours / python if python else None
        reached = None if ratio is None else ratio >= TIMES_PYTHON
        found.append(
            Bar(f"{case}: ours / fastest Python one", ratio, f">= {TIMES_PYTHON:g} x", reached)
        )
        other = fastest(figures, case, JAVA)
        ratio = ours / other if other else None
        reached = None if ratio is None or not java else ratio > TIMES_JAVA
        required = f"> {TIMES_JAVA:g} x" if java else "-"
        found.append(Bar(f"{case}: ours / Java 5.5.0", ratio, required, reached))
    if growth_mib is not None:
        found.append(
            Bar(
                "consumer's memory: growth after warm-up, MiB",
                growth_mib,
                f"none (< {GROWTH_MIB_MAX:g})",
                growth_mib < GROWTH_MIB_MAX,
            )
        )
    return found


def text(figures: Sequence[Figure], found: Sequence[Bar], *, judged: bool) -> str:
    """Return both tables; unless `judged` nothing is said about what is reached."""
    lines = [("case", "client", "messages/s", "")]
    for one in figures:
        rate = "-" if one.per_second is None else f"{one.per_second:,.0f}"
        note = one.left_out.splitlines()[0] if one.left_out else ""
        lines.append((one.case, one.client, rate, f"left out: {note[:200]}" if note else ""))
    judgement = [("bar", "found", "required", "reached")]
    for bar in found:
        shown = "-" if bar.found is None else f"{bar.found:.2f}"
        verdict = {True: "yes", False: "NO", None: "-"}[bar.reached] if judged else "-"
        judgement.append((bar.what, shown, bar.required, verdict))
    return f"{_columns(lines, {2})}\n{_columns(judgement, {1})}"


def _columns(lines: Sequence[tuple[str, ...]], right: set[int]) -> str:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "".join(
        "  ".join(
            word.rjust(width) if column in right else word.ljust(width)
            for column, (word, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        + "\n"
        for line in lines
    )
