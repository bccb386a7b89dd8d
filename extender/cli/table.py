"""Rows of text as aligned columns, for people."""

import shutil
import sys
from collections.abc import Sequence

Row = tuple[str, ...]
GAP = "  "


def aligned(rows: Sequence[Row], width: int | None = None) -> str:
    """Return a line per row, each column as wide as its widest cell, and no line longer than *width*."""
    cells = [tuple(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = (GAP.join(map(str.ljust, row, widths)).rstrip() for row in cells)
    return "".join(f"{cut(line, width)}\n" for line in lines)


def width_shown() -> int | None:
    """Return how wide a line may be where people read it; None where programs do."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def cut(line: str, width: int | None) -> str:
    """Cut off what has no room in *width*, and show that there is more."""
    if width is None or len(line) <= width:
        return line
    return f"{line[: max(width - 1, 0)]}…"


def printable(text: str) -> str:
    """Escape what does not print: a line break would tear a table, and a stranger's escape code rewrite the screen."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
