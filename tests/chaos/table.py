"""What runs came to, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chaos.one_run import Result

COLUMNS = (
    "setting", "seed", "faults", "sent", "acknowledged", "delivered", "lost", "twice", "order",
    "other", "outage s", "healed s",
)  # fmt: skip


def table(results: Sequence[Result]) -> str:
    """Return a table with a row for each run and one for all, then the faults by kind."""
    rows = [list(COLUMNS), *(_row(result) for result in results)]
    if len(results) > 1:
        longest = (max(one.outage_s for one in results), max(one.healed_s for one in results))
        rows.append(["all", "", *_sums(rows[1:]), *(f"{seconds:.1f}" for seconds in longest)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    injected = sum((result.injected for result in results[1:]), results[0].injected.copy())
    both = sum(result.both for result in results)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(injected.items()))
    return "\n".join([*lines, f"faults: {kinds}; {both} times two at once", ""])


def _row(result: Result) -> list[str]:
    verdict = result.verdict
    lost, order = verdict.count("lost"), verdict.count("order")
    return [
        result.plan.setting.name, str(result.plan.seed), str(result.injected.total()),
        str(verdict.sent), str(verdict.acknowledged), str(verdict.delivered), str(lost),
        str(verdict.duplicated), str(order), str(len(verdict.violations) - lost - order),
        f"{result.outage_s:.1f}", f"{result.healed_s:.1f}",
    ]  # fmt: skip


def _sums(rows: Sequence[Sequence[str]]) -> list[str]:
    return [str(sum(int(row[column]) for row in rows)) for column in range(2, len(COLUMNS) - 2)]


def in_words(result: Result) -> str:
    """Return a run as one line."""
    verdict = result.verdict
    return (
        f"{result.plan.setting.name}, seed {result.plan.seed}: {result.injected.total()} faults, "
        f"{verdict.acknowledged} of {verdict.sent} acknowledged, {verdict.delivered} delivered, "
        f"{len(verdict.violations)} promises broken, longest outage {result.outage_s:.1f} s, "
        f"all delivered {result.healed_s:.1f} s after the last fault"
    )


def printed(result: Result, shown: int) -> str:
    """Return what was broken, and what happened when."""
    violations = result.verdict.violations
    lines = [f"{one.kind}: {one.what}" for one in violations[:shown]]
    if len(violations) > shown:
        lines.append(f"and {len(violations) - shown} more")
    lines += ["what happened:", *result.timeline[-200:]]
    lines += [f"ended by themselves: {', '.join(result.ends) or 'none'}", ""]
    return "\n".join(lines)
