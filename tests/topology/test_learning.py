"""What will be asked for, learnt from the claims that come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.topology.demand import EXPECTED, Demand
from extender.topology.learning import CLASSES, LEAST, MEMORY, Learning
from extender.topology.residual import Mix
from tests.scheduling.machines import GPU, wanted

NOTHING = Demand()


def learnt(*sizes: int) -> Learning:
    learning = Learning()
    for index, size in enumerate(sizes):
        learning.saw(wanted(f"c{index}", size))
    return learning


def test_before_enough_was_asked_for_the_usual_is_expected() -> None:
    assert learnt(*[4] * (LEAST - 1)).mix_for(GPU, NOTHING) == EXPECTED
    assert learnt(*[4] * LEAST).mix_for(GPU, NOTHING) == Mix.of({4: 16})


def test_shares_are_coarse_and_what_is_asked_for_at_all_has_one() -> None:
    assert learnt(*[2] * 7, *[4] * 8, 8).mix_for(GPU, NOTHING) == Mix.of({2: 7, 4: 8, 8: 1})
    assert learnt(*[2] * 99, *[4] * 100, 8).mix_for(GPU, NOTHING) == Mix.of({2: 8, 4: 8})


def test_a_small_shift_changes_nothing() -> None:
    learning = learnt(*[2, 4] * 40)
    before = learning.mix_for(GPU, NOTHING)
    for index in range(8):
        learning.saw(wanted(f"more-{index}", 4))
    assert learning.mix_for(GPU, NOTHING) is before


def test_what_was_asked_long_ago_is_forgotten() -> None:
    mix = learnt(*[2] * MEMORY, *[8] * 3 * MEMORY).mix_for(GPU, NOTHING)
    assert dict(mix.weights)[8] > 11


@pytest.mark.parametrize("size", [0, 1, 33, 10**9])
def test_singles_and_what_no_claim_can_have_teach_nothing(size: int) -> None:
    assert learnt(*[size] * 2 * LEAST).mix_for(GPU, NOTHING) == EXPECTED


def test_what_is_configured_is_not_learnt() -> None:
    demand = Demand(classes=((GPU, Mix.of({8: 1})),))
    assert learnt(*[2] * 2 * LEAST).mix_for(GPU, demand) == Mix.of({8: 1})


def test_classes_that_anybody_makes_up_are_forgotten_again() -> None:
    learning = Learning()
    for index in range(CLASSES + 50):
        claim = wanted("c", 2)
        (slot,) = claim.spec.requests
        assert slot.exactly is not None
        object.__setattr__(slot.exactly, "class_name", f"class-{index}")
        learning.saw(claim)
    assert len(learning._classes) == CLASSES


@given(st.lists(st.integers(1, 16), max_size=200))
def test_the_same_claims_teach_the_same(sizes: list[int]) -> None:
    assert learnt(*sizes).mix_for(GPU, NOTHING) == learnt(*sizes).mix_for(GPU, NOTHING)
