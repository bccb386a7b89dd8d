"""What the collector looks through while we serve."""

import gc
from collections.abc import Iterator

import pytest

from extender.cli.memory import settle


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
