"""Bars and curves as SVG, out of numbers that tables have already."""

from collections.abc import Mapping, Sequence
from html import escape
from math import log10
from typing import Final, NamedTuple

OURS_COLOUR, OTHERS_COLOUR = "#2a7f62", "#9aa5b1"
COLOURS: Final = (OURS_COLOUR, "#c0692b", "#3b5b92", "#8a4f7d", "#6b6b6b", OTHERS_COLOUR)
STYLE: Final = 'font-family="sans-serif" font-size="12"'
LEFT, WIDTH, ROW, HEAD = 230, 420, 20, 34
# Of curves: the area in which they are, and where that begins.
AREA: Final = (460, 240)
CORNER: Final = (60, 40)


class Bar(NamedTuple):
    """A label, the length of its bar, of one, and what stands beside it."""

    label: str
    share: float
    text: str = ""


def bars(title: str, drawn: Sequence[Bar]) -> str:
    """Draw bars one under the other; what is ours in a colour of its own."""
    parts = [f'<text x="8" y="20" font-weight="bold">{escape(title)}</text>']
    for index, bar in enumerate(drawn):
        top = HEAD + ROW * index
        colour = OURS_COLOUR if "ours" in bar.label else OTHERS_COLOUR
        parts += [
            f'<text x="{LEFT - 8}" y="{top + 14}" text-anchor="end">{escape(bar.label)}</text>',
            f'<rect x="{LEFT}" y="{top + 3}" width="{WIDTH * bar.share:.1f}" height="{ROW - 6}" fill="{colour}"/>',
            f'<text x="{LEFT + WIDTH * bar.share + 6:.1f}" y="{top + 14}">{bar.text or f"{bar.share:.3f}"}</text>',
        ]
    return _svg(LEFT + WIDTH + 70, HEAD + ROW * len(drawn) + 10, parts)


Points = Sequence[tuple[float, float]]


def curves(title: str, drawn: Mapping[str, Points], across: str, up: str) -> str:
    """Draw curves by label, both scales logarithmic: a straight line is a power, and its slope the exponent."""
    xs, ys = ([point[axis] for points in drawn.values() for point in points] for axis in (0, 1))
    scales = _Scale(min(xs), max(xs)), _Scale(min(ys), max(ys))
    (left, top), (width, height) = CORNER, AREA
    below = top + height
    parts = [
        f'<text x="8" y="20" font-weight="bold">{escape(title)}</text>',
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="{OTHERS_COLOUR}"/>',
        f'<text x="{left + width / 2}" y="{below + 34}" text-anchor="middle">{escape(across)}</text>',
        f'<text x="{left - 8}" y="{top + 12}" text-anchor="end">{escape(up)}</text>',
        *(
            f'<text x="{_across(scales[0], x):.1f}" y="{below + 16}" text-anchor="middle">{x:,.0f}</text>'
            for x in sorted(set(xs))
        ),
    ]
    for (label, points), colour in zip(drawn.items(), COLOURS, strict=False):
        at = [(_across(scales[0], x), _up(scales[1], y)) for x, y in points]
        parts += _curve(label, [y for _, y in points], at, colour)
    return _svg(left + width + 150, below + 44, parts)


def _curve(label: str, values: Sequence[float], at: Points, colour: str) -> list[str]:
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
    return [
        f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>',
        *(
            f'<text x="{x:.1f}" y="{y - 5:.1f}" text-anchor="middle" fill="{colour}" font-size="10">{value:.2f}</text>'
            for (x, y), value in zip(at, values, strict=True)
        ),
        f'<text x="{CORNER[0] + AREA[0] + 8}" y="{at[-1][1] + 4:.1f}" fill="{colour}">{escape(label)}</text>',
    ]


class _Scale(NamedTuple):
    least: float
    most: float

    def share(self, value: float) -> float:
        """Say where between the least and the most *value* is, with some room beyond both."""
        span = log10(self.most / self.least) or 1.0
        return (log10(value / self.least) / span) * 0.9 + 0.05


def _across(scale: _Scale, value: float) -> float:
    return CORNER[0] + AREA[0] * scale.share(value)


def _up(scale: _Scale, value: float) -> float:
    return CORNER[1] + AREA[1] * (1 - scale.share(value))


def _svg(width: float, height: float, parts: Sequence[str]) -> str:
    size = f'width="{width}" height="{height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {STYLE}>\n' + "\n".join(parts) + "\n</svg>\n"
