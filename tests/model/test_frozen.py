"""Values are what the standard library's frozen dataclasses are, but for the guard, which development mode has."""

import subprocess
import sys
from pathlib import Path

import pytest

from extender.model.frozen import dataclass
from tests.tree import ROOT

CHANGED = """
from extender.model.frozen import dataclass

@dataclass(frozen=True, slots=True)
class Value:
    number: int

Value(1).number = 2
"""


@dataclass(frozen=True, slots=True)
class Value:
    number: int


@dataclass(frozen=True, slots=True)
class OwnHash:
    number: int

    def __hash__(self) -> int:
        return 7


@dataclass(frozen=True, slots=True, eq=False)
class Same:
    number: int


@dataclass(slots=True)
class Counter:
    number: int


def in_development_mode(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-X", "dev", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_frozen_is_compared_and_hashed_by_its_fields() -> None:
    assert Value(1) == Value(1) != Value(2)
    assert len({Value(1), Value(1), Value(2)}) == 2


def test_hash_of_its_own_is_kept() -> None:
    assert hash(OwnHash(1)) == 7


def test_what_is_not_compared_is_hashed_by_identity() -> None:
    assert len({Same(1), Same(1)}) == 2


def test_what_is_not_frozen_has_no_hash() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Counter(1))


def test_change_of_a_value_is_refused_in_development_mode() -> None:
    assert "FrozenInstanceError" in in_development_mode("-c", CHANGED).stderr


def test_no_value_is_changed_once_it_is_made() -> None:
    played = in_development_mode("-m", "tests.interleavings", "--steps", "1000", "--seed", "7")
    assert played.returncode == 0, played.stdout + played.stderr


def test_every_frozen_dataclass_is_made_the_same_way() -> None:
    sources = ((path, path.read_text()) for path in Path(ROOT, "extender").rglob("*.py"))
    frozen = [(path, source) for path, source in sources if "@dataclass(frozen=True" in source]
    assert frozen
    assert not [path for path, source in frozen if "from extender.model.frozen import dataclass" not in source]
