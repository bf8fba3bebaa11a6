"""The samples of a soak as a picture: one panel for each value, a line for each broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.soak.trends import Sample

WIDTH: Final = 900
PANEL: Final = 150
LEFT: Final = 70
GAP: Final = 45
POINTS_MAX: Final = 2000
PANELS: Final = (
    ("rss_anon_mib", "private memory, MiB"),
    ("open_files", "open files"),
    ("p50_ms", "p50 of sends, ms"),
    ("p99_ms", "p99 of sends, ms"),
)
COLOURS: Final = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")


def svg(samples: Sequence[Sample]) -> str:
    """Return the picture; gaps are restarts."""
    end_s = max((one.at_s for one in samples), default=0.0) or 1.0
    height = len(PANELS) * (PANEL + GAP) + 20
    size = f'width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for number, (name, title) in enumerate(PANELS):
        parts += _panel(samples, name, title, 20 + number * (PANEL + GAP), end_s)
    return "\n".join([*parts, "</svg>\n"])


def _panel(
    samples: Sequence[Sample], name: str, title: str, top: int, end_s: float
) -> Iterator[str]:
    most = max((float(getattr(one, name)) for one in samples), default=0.0) * 1.1 or 1.0
    right, bottom = WIDTH - 20, top + PANEL
    yield f'<text x="{LEFT}" y="{top - 6}">{title}</text>'
    yield (
        f'<path d="M{LEFT} {top}V{bottom}H{right}" fill="none" stroke="#888"/>'
        f'<text x="{LEFT - 6}" y="{top + 10}" text-anchor="end">{most:.4g}</text>'
        f'<text x="{LEFT - 6}" y="{bottom}" text-anchor="end">0</text>'
        f'<text x="{right}" y="{bottom + 16}" text-anchor="end">{end_s / 3600:.3g} h</text>'
    )
    for colour, broker in zip(COLOURS, sorted({one.broker for one in samples}), strict=False):
        for life in sorted({one.life for one in samples if one.broker == broker}):
            mine = [one for one in samples if (one.broker, one.life) == (broker, life)]
            step = max(1, len(mine) * len(COLOURS) // POINTS_MAX)
            points = " ".join(
                f"{LEFT + one.at_s / end_s * (right - LEFT):.1f},"
                f"{bottom - float(getattr(one, name)) / most * PANEL:.1f}"
                for one in mine[::step]
            )
            yield f'<polyline points="{points}" fill="none" stroke="{colour}"/>'
