import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from extender.telemetry import keys
from extender.telemetry.log import JsonLines, TextLines, configure
from tests.tree import ROOT, files


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """Give the root logger, and put it back as it was."""
    logger = logging.getLogger()
    handlers, level = logger.handlers[:], logger.level
    yield logger
    logger.handlers[:] = handlers
    logger.setLevel(level)


def record(message: str, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("extender.web", logging.WARNING, "", 0, message, (), None)
    made.created = 1_790_000_000.25
    made.__dict__.update(fields)
    return made


def test_a_json_line_has_a_fixed_message_and_its_fields() -> None:
    line = json.loads(JsonLines().format(record("bound", **{keys.POD: "lab/p", keys.COUNT: 2})))
    assert line == {
        "time": "2026-09-21T14:13:20.250Z",
        "level": "warning",
        "logger": "extender.web",
        "message": "bound",
        "pod": "lab/p",
        "count": 2,
    }


def test_a_text_line_says_the_same() -> None:
    line = TextLines().format(record("bound", **{keys.POD: "lab/p", keys.REASON: "no device"}))
    assert line == '14:13:20 warning bound pod=lab/p reason="no device"'


@pytest.mark.parametrize("style", [JsonLines(), TextLines()], ids=["json", "text"])
def test_a_line_stays_one_line_whatever_the_names_are(style: logging.Formatter) -> None:
    line = style.format(record("read\n", **{keys.POD: "a\nb\x1b[31m\u2028", keys.NODE: "\ud800"}))
    assert len(line.splitlines()) == 1
    assert "\x1b" not in line
    assert line.encode()


@pytest.mark.parametrize("style", [JsonLines(), TextLines()], ids=["json", "text"])
def test_what_is_too_long_for_a_line_is_cut_off(style: logging.Formatter) -> None:
    line = style.format(record("m" * 1_000_000, **{keys.POD: "p" * 1_000_000}))
    assert line.encode().count(b"p") < 5000
    assert line.encode().count(b"m") < 5000


@pytest.mark.parametrize("style", [JsonLines(), TextLines()], ids=["json", "text"])
def test_an_exception_comes_with_its_traceback(style: logging.Formatter) -> None:
    made = record("crashed")
    made.exc_info = (ValueError, ValueError("why"), None)
    assert "ValueError: why" in style.format(made)


@pytest.mark.parametrize("style", [JsonLines(), TextLines()], ids=["json", "text"])
def test_what_an_exception_says_is_written_like_a_name(style: logging.Formatter) -> None:
    made = record("crashed")
    made.exc_info = (ValueError, ValueError(f"\x1b[31m\ud800{'x' * 1_000_000}\nnext"), None)
    text = style.format(made)
    assert "\x1b" not in text
    assert text.encode().count(b"x") < 5000
    assert "next" in text


def test_fields_without_a_key_are_left_out() -> None:
    assert "secret" not in JsonLines().format(record("read", token="secret"))  # noqa: S106 - no password


@pytest.mark.parametrize(
    ("stream", "style", "is_json"),
    [
        pytest.param(Terminal(), "auto", False, id="terminal"),
        pytest.param(io.StringIO(), "auto", True, id="pipe"),
        pytest.param(Terminal(), "json", True, id="json"),
        pytest.param(io.StringIO(), "text", False, id="text"),
    ],
)
def test_terminals_get_text_and_pipes_json(
    root: logging.Logger,
    stream: io.StringIO,
    style: str,
    is_json: bool,  # noqa: FBT001 - a column
) -> None:
    configure(stream, "info", style)
    logging.getLogger("extender").info("ready")
    logging.getLogger("extender").debug("detail")
    assert stream.getvalue().startswith("{") == is_json
    assert "detail" not in stream.getvalue()
    assert len(root.handlers) == 1


def test_keys_are_distinct_words() -> None:
    assert len(keys.KEYS) == len([name for name in vars(keys) if name.isupper() and name != "KEYS"])
    assert all(re.fullmatch(r"[a-z]+([A-Z]+[a-z]*)*", key) for key in keys.KEYS)


def test_no_key_is_a_field_that_logging_has_itself() -> None:
    assert not keys.KEYS & logging.makeLogRecord({}).__dict__.keys()


SPELT_OUT = re.compile(r"""extra=\{[^}]*["']""")


def spelt_out(folder: Path) -> list[str]:
    return [path.name for path in files(".py", root=folder) if SPELT_OUT.search(path.read_text())]


def test_log_lines_name_their_keys_by_constants() -> None:
    assert spelt_out(ROOT / "extender") == []


def test_a_planted_key_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text('LOG.info("x", extra={"pod": 1})\n')
    assert spelt_out(tmp_path) == ["planted.py"]
