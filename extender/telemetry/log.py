"""Log lines: JSON for machines, text for terminals; both carry the same fields."""

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, TextIO

from extender.telemetry.keys import KEYS

# Names and messages of others may be as long as an object.
MOST_LETTERS: Final = 4096
# Made once: ``json.dumps`` would make one for each line.
ENCODER: Final = json.JSONEncoder(default=str)


def configure(stream: TextIO, level: str, style: str) -> logging.Handler:
    """Send the log to *stream* in *style*: json, text, or auto, which is text on a terminal."""
    is_text = style == "text" or (style == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextLines() if is_text else JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    return handler


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _written(record.getMessage()),
            **dict(_fields(record)),
        }
        if record.exc_info:
            line["traceback"] = "\n".join(_traceback(self.formatException(record.exc_info)))
        return ENCODER.encode(line)


class TextLines(logging.Formatter):
    """Time, level, message, fields."""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {key}={_shown(value)}" for key, value in _fields(record))
        time = _time(record).strftime("%H:%M:%S")
        line = f"{time} {record.levelname.lower():7} {_one_line(_written(record.getMessage()))}{fields}"
        raised = _traceback(self.formatException(record.exc_info)) if record.exc_info else ()
        return "\n".join((line, *map(_one_line, raised)))


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _fields(record: logging.LogRecord) -> Iterator[tuple[str, object]]:
    for key, value in record.__dict__.items():
        if key in KEYS:
            yield key, _written(value) if isinstance(value, str) else value


def _traceback(text: str) -> Iterator[str]:
    """Yield the lines of a traceback: what was raised may tell what others have called something."""
    return map(_written, text.split("\n"))


def _written(text: str) -> str:
    """Cut off what is too long, and replace half characters, which cannot be written."""
    cut = text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}…"
    return cut.encode(errors="replace").decode()


def _shown(value: object) -> str:
    text = _one_line(str(value))
    return f'"{text}"' if " " in text or not text else text


def _one_line(text: str) -> str:
    """Spell what would end the line or colour the terminal: names and messages of others get here."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
