"""Bytes from a file or a pipe as JSON values: one document, or one document per line (JSON Lines)."""

import sys
from collections.abc import Iterator
from errno import EBADF
from typing import BinaryIO, NamedTuple

import orjson

from extender.kube.decoding import decoded
from extender.model.parse import Readable, parse_list
from extender.model.problem import Problem


class NotJson(NamedTuple):
    """Text that is not JSON, and where it stops being so; lines and columns count from 1."""

    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: not JSON: {self.message}"


def piped() -> BinaryIO:
    """Return standard input; raise OSError where whoever has called us closed it."""
    if sys.stdin is None:
        raise OSError(EBADF, "is closed", "standard input")
    return sys.stdin.buffer


def documents(text: bytes) -> Iterator[object]:
    """Yield each document of *text*, or a NotJson in the place of one that cannot be read."""
    try:
        yield orjson.loads(text)
    except orjson.JSONDecodeError:
        yield from _by_line(text) if _is_one_per_line(text) else (_document(text),)


def objects(text: bytes) -> Iterator[Readable | Problem | NotJson]:
    """Yield each object of *text*, those of lists one by one, or what is wrong in the place of one."""
    for document in documents(text):
        if isinstance(document, NotJson):
            yield document
        else:
            yield from parse_list(document)


def _by_line(text: bytes) -> Iterator[object]:
    for number, line in enumerate(text.split(b"\n"), start=1):
        if line.strip():
            yield _document(line, number)


def _document(text: bytes, line: int = 1) -> object:
    try:
        return decoded(text)
    except orjson.JSONDecodeError as error:
        return NotJson(line + error.lineno - 1, error.colno, error.msg)


def _is_one_per_line(text: bytes) -> bool:
    # One broken line, be it the first or the last, must not hide that the others stand for themselves.
    lines = text.strip().split(b"\n")
    return any(isinstance(_document(line), dict) for line in (lines[0], lines[-1]))
