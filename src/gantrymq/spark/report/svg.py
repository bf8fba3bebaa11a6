"""Plots as inline SVG: bars and lines, with axes that people can read. No script, no picture file.

Drawn for a page that may be light or dark: text and grid take the page's own colour.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gantrymq.spark.report.values import Plot, Series

WIDTH: Final = 760
HEIGHT: Final = 290
LEFT: Final = 72
RIGHT: Final = 12
TOP: Final = 12
BOTTOM: Final = 74
LABELS_MAX: Final = 12
LABEL_CHARACTERS_MAX: Final = 24
CHARACTER_WIDTH: Final = 6.2
"""About; labels that do not fit beside each other are slanted."""
POINTS_MAX: Final = 600
"""Points of a line; more of them are thinned out, keeping the highest of each part."""
COLOURS: Final = ("#2a6fb0", "#c2571a", "#2f8f4e", "#8a4fb0", "#b03a52", "#5b6770")


def nice_ceiling(value: float) -> float:
    """Return the next of 1, 2, 2.5, 5, 10 times a power of ten: where an axis ends."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if value <= step * power * 1.000001)


def short_number(value: float) -> str:
    """Return a number for an axis: 1.5 M."""
    for size, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g} {name}"
    return f"{value:g}"


def plot_svg(plot: Plot) -> str:
    """Return the picture of a plot."""
    plot = _thinned(plot)
    top = nice_ceiling(max((max(s.values, default=0.0) for s in plot.series), default=0.0))
    draw = _bars if plot.kind == "bars" else _lines
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(plot.title)}">',
        *_axes(plot, top),
        *draw(plot, top),
        "</svg>",
    ]
    return "\n".join(parts)


def legend_html(plot: Plot) -> str:
    """Return which colour is which series; nothing for a single one."""
    if len(plot.series) < 2:
        return ""
    items = [
        f'<li><span style="background:{_colour(number)}"></span>{escape(series.name)}</li>'
        for number, series in enumerate(plot.series)
    ]
    return f'<ul class="legend">{"".join(items)}</ul>'


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _thinned(plot: Plot) -> Plot:
    count = len(plot.labels)
    if count <= POINTS_MAX:
        return plot
    step = math.ceil(count / POINTS_MAX)
    starts = range(0, count, step)
    plot_type, series_type = type(plot), type(plot.series[0])
    series = [
        series_type(one.name, [max(one.values[at : at + step]) for at in starts])
        for one in plot.series
    ]
    return plot_type(plot.title, plot.kind, [plot.labels[at] for at in starts], series, plot.unit)


def _y(value: float, top: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - max(value, 0) / top)


def _axes(plot: Plot, top: float) -> list[str]:
    parts = []
    for step in range(5):
        value = top * step / 4
        y = _y(value, top)
        text = escape(f"{short_number(value)} {plot.unit}".strip())
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
        )
    count = len(plot.labels)
    step = max(math.ceil(count / LABELS_MAX), 1)
    shown = {at: plot.labels[at][:LABEL_CHARACTERS_MAX] for at in range(0, count, step)}
    longest = max(map(len, shown.values()), default=0)
    is_slanted = longest * CHARACTER_WIDTH > _slot(count) * step
    for at, label in shown.items():
        x, y = _centre(at, count), HEIGHT - BOTTOM + 18
        how = 'class="label"'
        if is_slanted:
            how = f'text-anchor="end" transform="rotate(-24 {x:.1f} {y})"'
        parts.append(f'<text x="{x:.1f}" y="{y}" {how}>{escape(label)}</text>')
    return parts


def _slot(count: int) -> float:
    return (WIDTH - LEFT - RIGHT) / max(count, 1)


def _centre(at: int, count: int) -> float:
    return LEFT + _slot(count) * (at + 0.5)


def _bars(plot: Plot, top: float) -> list[str]:
    count, parts = len(plot.labels), list[str]()
    width = _slot(count) * 0.8 / max(len(plot.series), 1)
    for number, series in enumerate(plot.series):
        for at, value in enumerate(series.values):
            x = LEFT + _slot(count) * (at + 0.1) + width * number
            y = _y(value, top)
            said = escape(_said(plot, series, at))
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" '
                f'height="{HEIGHT - BOTTOM - y:.1f}" fill="{_colour(number)}">'
                f"<title>{said}</title></rect>"
            )
    return parts


def _lines(plot: Plot, top: float) -> list[str]:
    count, parts = len(plot.labels), list[str]()
    for number, series in enumerate(plot.series):
        points = [
            f"{_centre(at, count):.1f},{_y(value, top):.1f}"
            for at, value in enumerate(series.values)
        ]
        parts.append(
            f'<polyline points="{" ".join(points)}" fill="none" stroke="{_colour(number)}" '
            f'stroke-width="2"><title>{escape(series.name)}</title></polyline>'
        )
        if count == 1:
            x, y = points[0].split(",")
            parts.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{_colour(number)}"/>')
    return parts


def _said(plot: Plot, series: Series, at: int) -> str:
    unit = f" {plot.unit}" if plot.unit else ""
    return f"{plot.labels[at]}: {series.name} {series.values[at]:g}{unit}"
