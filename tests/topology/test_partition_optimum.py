import pytest

from extender.topology.partitioned import Partitioned
from extender.topology.partitions import Remains
from loadtests.quality.chip import A100, PROFILES, Asked, Chip, Rule, fitting, rest_of
from loadtests.quality.partitions import MIXES, Run, first_fit, on_one, ours
from tests.allocation.drawing import Draw
from tests.topology.cases import given
from tests.topology.mig import a100, case, claim, request

CHIP = Chip()
KINDS = {
    "1g.5gb": "1g5gb-19",
    "2g.10gb": "2g10gb-14",
    "3g.20gb": "3g20gb-9",
    "4g.20gb": "4g20gb-5",
    "7g.40gb": "7g40gb-0",
}


def device(chip: int, cut: int) -> str:
    """Name a cut as the driver does."""
    start = A100.cuts[cut].draws[1:].index(1)
    return f"gpu-{chip}-mig-{KINDS[A100.cuts[cut].profile]}-{start}"


def test_the_gpu_that_is_measured_is_that_of_the_sample_slice() -> None:
    measured, published = Remains(A100), Remains(a100())
    for profile in A100.profiles:
        told = [remains.placements(remains.pattern.untouched, profile) for remains in (measured, published)]
        assert told[0] == told[1]
    assert sorted(cut.profile for cut in A100.cuts) == sorted(cut.profile for cut in a100().cuts)


@pytest.mark.parametrize("load", [0.5, 1.0])
@pytest.mark.parametrize("asked", MIXES, ids=lambda asked: asked.name)
def test_no_rule_loses_less_than_the_optimum_and_ours_hardly_more(asked: Asked, load: float) -> None:
    best = asked.lost(CHIP.blocking(CHIP.best(asked, load), asked, load))
    rules: dict[str, Rule] = {"random": fitting, "first": on_one(first_fit), "ours": on_one(ours())}
    lost = {name: asked.lost(CHIP.blocking(rule, asked, load)) for name, rule in rules.items()}
    assert best - 1e-6 <= min(lost.values())
    assert lost["ours"] < min(lost["random"], lost["first"])
    assert lost["ours"] <= best + 0.003


def test_what_is_exact_on_one_gpu_is_what_a_simulation_comes_to() -> None:
    asked, placing = MIXES[1], ours()
    exact = CHIP.blocking(on_one(placing), asked, 0.8)
    told = Run(asked, 0.8, chips=1, arrivals=20_000).blocking(placing, seed=3)
    assert asked.lost(told) == pytest.approx(asked.lost(exact), abs=0.02)


def test_of_eight_gpus_fewer_are_broken_than_by_first_fit() -> None:
    run = Run(MIXES[0], 0.8, arrivals=4000)
    assert MIXES[0].lost(run.blocking(ours(), 3)) < MIXES[0].lost(run.blocking(first_fit, 3)) - 0.01


def test_what_is_measured_is_what_the_search_gives() -> None:
    chance, placing, preference = Draw(3), ours(), Partitioned()
    names = ("gpu-0", "gpu-1", "gpu-2")
    for _ in range(40):
        states = [chance.pick(list(CHIP.number)) for _ in names]
        profile = chance.pick(list(PROFILES))
        held = [device(chip, cut) for chip, state in enumerate(states) for cut in state]
        found = placing(states, profile)
        asked = case(names, [claim(request(profile))], held)
        if found:
            assert given(asked, preference) == [device(*found)]
        else:
            assert all(not fitting(state, profile) for state in states)


def test_what_is_held_leaves_what_is_left_one_after_another() -> None:
    remains = Remains(A100)
    for state in CHIP.number:
        rest = A100.untouched
        for cut in state:
            after = remains.after(rest, cut)
            assert after
            rest = after
        assert rest == rest_of(state)
