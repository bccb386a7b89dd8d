"""One line that stands for all answers: ``python -m tests.allocation.digest``. Every Python must print the same."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from extender.cli.allocate import MANNERS, answer
from tests.allocation.clusters import question
from tests.allocation.hostile import FILE as HOSTILE
from tests.allocation.table import FILE as TABLE
from tests.allocation.table import cases

DRAWN = 500


def questions(drawn: int) -> Iterator[dict[str, Any]]:
    """Yield the table, where it is there, drawn clusters, and the hardest questions."""
    yield from cases() if TABLE.exists() else ()
    yield from (question(f"digest {number}") for number in range(drawn))
    yield from map(json.loads, HOSTILE.read_bytes().splitlines())


def digest(drawn: int = DRAWN) -> str:
    """Hash the answers in both orders, without what is different each time: the time that they took, and share ids."""
    total = hashlib.sha256()
    for case in questions(drawn):
        for order, manner in MANNERS.items():
            told = answer(json.dumps(case).encode(), manner)
            total.update(f"{order} {json.dumps(_lasting(told), sort_keys=True)}\n".encode())
    return total.hexdigest()


def _lasting(value: object) -> object:
    if isinstance(value, dict):
        return {name: _lasting(item) for name, item in value.items() if name not in ("micros", "shareID")}
    return [_lasting(item) for item in value] if isinstance(value, list) else value


if __name__ == "__main__":
    print(digest())  # noqa: T201 - a command line prints
