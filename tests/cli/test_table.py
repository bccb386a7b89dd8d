import pytest

from extender.cli.table import aligned


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert aligned([("A", "LONGER", "C"), ("wide", "b", "c")]) == "A     LONGER  C\nwide  b       c\n"


def test_lines_have_no_trailing_blanks() -> None:
    assert aligned([("name", "error"), ("gpu-0", "")]) == "name   error\ngpu-0\n"


@pytest.mark.parametrize(
    ("width", "line"),
    [(12, "gpu  a text"), (11, "gpu  a text"), (10, "gpu  a te…"), (1, "…"), (None, "gpu  a text")],
)
def test_no_line_is_longer_than_the_width(width: int | None, line: str) -> None:
    assert aligned([("gpu", "a text")], width) == f"{line}\n"


def test_a_cell_cannot_tear_the_table_or_steer_the_terminal() -> None:
    assert aligned([("a\nb", "\x1b[2J", "ü")]) == "a\\nb  \\x1b[2J  ü\n"
