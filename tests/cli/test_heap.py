"""What the collector looks through while we serve."""

import gc
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from extender.cli.heap import THRESHOLDS, settle


@pytest.fixture
def _as_before() -> Iterator[None]:
    thresholds, callbacks = gc.get_threshold(), list(gc.callbacks)
    yield
    gc.set_threshold(*thresholds)
    gc.callbacks[:] = callbacks
    gc.unfreeze()


@pytest.mark.usefixtures("_as_before")
def test_what_was_read_is_not_looked_through_again() -> None:
    settle()
    kept = [[number] for number in range(1000)]
    before = gc.get_freeze_count()
    gc.collect()
    assert gc.get_freeze_count() >= before + len(kept)


@pytest.mark.usefixtures("_as_before")
def test_what_refers_to_itself_is_freed_all_the_same() -> None:
    settle()
    circle: list[object] = []
    circle.append(circle)
    del circle
    assert gc.collect() >= 1


@pytest.mark.usefixtures("_as_before")
def test_settling_twice_is_settling_once() -> None:
    settle()
    callbacks = list(gc.callbacks)
    settle()
    assert gc.callbacks == callbacks


@pytest.mark.usefixtures("_as_before")
def test_the_c_library_is_told_what_to_give_back(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, *tuple[int, ...]]] = []
    library = SimpleNamespace(
        mallopt=lambda *numbers: told.append(("mallopt", *numbers)), malloc_trim=lambda pad: told.append(("trim", pad))
    )
    monkeypatch.setattr("ctypes.CDLL", lambda _name: library)
    settle()
    assert told == [("mallopt", -1, 2 << 20), ("mallopt", -3, 1 << 20), ("trim", 0)]


@pytest.mark.usefixtures("_as_before")
def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda _name: SimpleNamespace())
    settle()
    assert gc.get_threshold() == THRESHOLDS
