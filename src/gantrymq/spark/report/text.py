"""A report as text for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gantrymq.spark.report.values import Cell, Report, Row

TABLE_ROWS_MAX: Final = 20
PROBLEMS_SHOWN_MAX: Final = 20
CELL_CHARACTERS_MAX: Final = 60


def cell_text(value: Cell) -> str:
    """Return a cell as people read it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    return value


def report_text(report: Report) -> str:
    """Return what a terminal shows of a report."""
    lines = list(report.plan) if report.state == "planned" else []
    width = max(map(len, report.figures), default=0)
    lines += [f"{name:<{width}}  {cell_text(value)}" for name, value in report.figures.items()]
    for name, rows in report.tables.items():
        lines += ["", f"{name}:", *_table_lines(rows)]
        hidden = len(rows) - TABLE_ROWS_MAX + report.rows_left_out.get(name, 0)
        if hidden > 0:
            lines.append(f"  ... and {hidden} more: see --report FILE or --tables DIR")
    if report.problems:
        lines += ["", "problems:"]
        lines += [f"  {what}" for what in report.problems[:PROBLEMS_SHOWN_MAX]]
        if report.problem_count > PROBLEMS_SHOWN_MAX:
            lines.append(f"  ... {report.problem_count} in all")
    if report.checks:
        lines += ["", "checks:"]
        lines += [
            f"  {'ok    ' if check.passed else 'FAILED'}  {check.name}: {check.said}"
            for check in report.checks
        ]
    return "\n".join(lines).strip("\n")


def _table_lines(rows: list[Row]) -> list[str]:
    if not rows:
        return ["  nothing"]
    names = list(rows[0])
    shown = [
        [cell_text(row.get(name))[:CELL_CHARACTERS_MAX] for name in names]
        for row in rows[:TABLE_ROWS_MAX]
    ]
    widths = [max(len(name), *(len(cells[at]) for cells in shown)) for at, name in enumerate(names)]
    is_number = [
        all(isinstance(row.get(name), int | float) or row.get(name) is None for row in rows)
        for name in names
    ]

    def line(cells: list[str]) -> str:
        parts = [
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(cells, widths, is_number, strict=True)
        ]
        return ("  " + "  ".join(parts)).rstrip()

    return [line(names), *(line(cells) for cells in shown)]
