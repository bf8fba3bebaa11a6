"""A report as one HTML page that needs nothing else: styles and plots are inside it."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Final

from gantrymq.spark.report.svg import legend_html, plot_svg
from gantrymq.spark.report.text import cell_text

if TYPE_CHECKING:
    from gantrymq.spark.report.values import Report, Row

PAGE_ROWS_MAX: Final = 1000
_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --bad: #b03a2e; --good: #2f8f4e; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p.sub { opacity: .75; margin: 0 0 1.5rem; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: .6rem; }
dl div { border: 1px solid var(--line); border-radius: 8px; padding: .5rem .8rem; }
dt { font-size: .8rem; opacity: .75; }
dd { margin: 0; font-size: 1.15rem; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; width: 100%; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
svg { width: 100%; height: auto; } svg text { font-size: 11px; fill: currentColor; opacity: .8; }
svg .grid { stroke: currentColor; opacity: .15; } svg .label { text-anchor: middle; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 1rem; padding: 0; }
.legend span { display: inline-block; width: .8em; height: .8em; margin-right: .4em; }
.ok { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
"""


def report_html(report: Report) -> str:
    """Return the page."""
    moment = datetime.fromtimestamp(report.started_ms / 1000, UTC)
    verdict = '<span class="ok">good</span>' if report.is_good else '<span class="bad">bad</span>'
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>gantrymq {escape(report.job)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{escape(report.job)}: {verdict}</h1>",
        (
            f'<p class="sub">{moment:%Y-%m-%d %H:%M:%S} UTC, {report.seconds:.1f} s, '
            f"gantrymq {escape(report.version)}</p>"
        ),
        _figures(report),
        *_plots(report),
        *_problems(report),
        *_checks(report),
        *(_table(name, rows) for name, rows in report.tables.items()),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _figures(report: Report) -> str:
    items = [
        f"<div><dt>{escape(name)}</dt><dd>{escape(cell_text(value))}</dd></div>"
        for name, value in report.figures.items()
    ]
    return f"<dl>{''.join(items)}</dl>"


def _plots(report: Report) -> list[str]:
    return [
        f"<section><h2>{escape(plot.title)}</h2>{legend_html(plot)}{plot_svg(plot)}</section>"
        for plot in report.plots
        if plot.labels
    ]


def _problems(report: Report) -> list[str]:
    if not report.problem_count:
        return []
    items = "".join(f"<li>{escape(what)}</li>" for what in report.problems)
    return [f'<h2 class="bad">{report.problem_count} problems</h2><ul>{items}</ul>']


def _checks(report: Report) -> list[str]:
    if not report.checks:
        return []
    items = [
        f'<li><span class="{"ok" if check.passed else "bad"}">'
        f"{'ok' if check.passed else 'FAILED'}</span> {escape(check.name)}: "
        f"{escape(check.said)}</li>"
        for check in report.checks
    ]
    return ["<h2>checks</h2>", f"<ul>{''.join(items)}</ul>"]


def _table(name: str, rows: list[Row]) -> str:
    if not rows:
        return f"<h2>{escape(name)}</h2><p>nothing</p>"
    names = list(rows[0])
    kinds = [
        ' class="n"' if any(isinstance(row.get(one), int | float) for row in rows) else ""
        for one in names
    ]
    head = "".join(f"<th{kind}>{escape(one)}</th>" for one, kind in zip(names, kinds, strict=True))
    lines = [
        "".join(
            f"<td{kind}>{escape(cell_text(row.get(one)))}</td>"
            for one, kind in zip(names, kinds, strict=True)
        )
        for row in rows[:PAGE_ROWS_MAX]
    ]
    more = len(rows) - PAGE_ROWS_MAX
    rest = f"<p>and {more} more rows, in the JSON report</p>" if more > 0 else ""
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f'<h2>{escape(name)}</h2><div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{rest}"
    )
