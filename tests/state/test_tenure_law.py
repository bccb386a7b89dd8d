"""Whatever happens to replicas and their requests: no two write at a time, and afterwards somebody leads again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from extender.state.tenure import LeaseTimes, Record, Tenure
from tests.state.replicas import Misfortune, World

TIMES = LeaseTimes(lease_s=15, trust_s=10, renew_s=2, linger_s=90)
BAD_S, CALM_S = 400.0, 300.0

times = st.floats(0, BAD_S)


@dataclass(frozen=True, kw_only=True)
class Fate:
    """What replicas live through: the rates of their clocks, and whose scheduler leads from when on."""

    seed: int
    clocks: Sequence[float]
    strikes: Sequence[Misfortune]
    schedulers: Sequence[tuple[float, int]] = ()
    deleted: Sequence[float] = ()
    annotated: Sequence[float] = ()
    knows_pods: bool = False
    clears: bool = False


fates = st.builds(
    Fate,
    seed=st.integers(0, 2**32),
    clocks=st.lists(st.floats(0.9, 1.1), min_size=2, max_size=3),
    strikes=st.lists(
        st.builds(Misfortune, times, st.integers(0, 2), st.one_of(st.just(0.0), st.floats(1, 150))), max_size=6
    ),
    schedulers=st.lists(st.tuples(times, st.integers(0, 2)), max_size=4),
    deleted=st.lists(times, max_size=2),
    annotated=st.lists(times, max_size=4),
    knows_pods=st.booleans(),
    clears=st.booleans(),
)


def world_of(seed: int, calm_from: float, schedulers: Sequence[tuple[float, int]], times: LeaseTimes = TIMES) -> World:
    return World(times, Random(seed), calm_from, schedulers)  # noqa: S311 - to be the same each time


def lived(fate: Fate, times: LeaseTimes = TIMES) -> World:
    """Let replicas live through it all and a calm afterwards, in which one scheduler leads."""
    led = [(0.0, 0), *sorted((at, whose % len(fate.clocks)) for at, whose in fate.schedulers), (BAD_S, 1)]
    world = world_of(fate.seed, BAD_S, led, times)
    world.knows_pods, world.clears = fate.knows_pods, fate.clears
    world.start(fate.clocks)
    for strike in fate.strikes:
        world.at(strike.at, partial(world.strike, strike))
    for at in fate.deleted:
        world.at(at, world.delete)
    for at in fate.annotated:
        world.at(at, world.annotate)
    world.run(BAD_S + max((item.seconds for item in fate.strikes), default=0) + CALM_S)
    return world


# A replica that has seen no Lease, before and after another was created, led by and deleted.
UNSEEN = Fate(
    seed=560,
    clocks=(1.0, 0.9375),
    strikes=(Misfortune(1, 0, 29), Misfortune(27, 1, 62), Misfortune(93, 1, 12)),
    schedulers=((105.0, 1),),
    deleted=(103.0,),
)

# A leader that stands still and goes on, under whom the Lease is deleted; whoever has created another ends at once.
CREATED = Fate(
    seed=442,
    clocks=(1.0, 1.0),
    strikes=(Misfortune(141.74085198060527, 0, 6.918165217095704), Misfortune(142.95119387534294, 1)),
    schedulers=((141.54085198060528, 1),),
    deleted=(141.84085198060527,),
    knows_pods=True,
    clears=True,
)


@settings(max_examples=200, deadline=None)
@given(fates)
@example(UNSEEN)
@example(CREATED)
def test_no_write_arrives_once_another_process_may_write_and_in_the_end_somebody_leads(fate: Fate) -> None:
    world = lived(fate)
    assert world.overlaps() == []
    assert world.serving == ["pod-1"]


def test_the_simulation_notices_who_follows_at_once_the_maker_of_a_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    def has_ended(tenure: Tenure, record: Record) -> bool:
        return record.holder.rpartition(".")[0] == tenure.before

    monkeypatch.setattr(Tenure, "_has_ended", has_ended)
    assert lived(CREATED).overlaps()


def test_the_simulation_notices_who_follows_at_once_whoever_led(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tenure, "_has_ended", lambda *_: True)
    strikes, moves = (Misfortune(50, 0, 5),), ((50.1, 1),)
    fates = (Fate(seed=seed, clocks=(1.0, 1.0), strikes=strikes, schedulers=moves, clears=True) for seed in range(50))
    assert any(lived(fate).overlaps() for fate in fates)


def test_most_of_the_time_somebody_leads_where_nothing_happens() -> None:
    world = world_of(1, 0.0, [(0.0, 0)])
    world.start([1.0, 1.0])
    world.run(1000)
    assert {write.by.partition("_")[0] for write in world.writes} == {"pod-0"}
    assert max(after.sent - before.sent for before, after in zip(world.writes, world.writes[1:], strict=False)) < 3


@pytest.mark.parametrize(
    "times",
    [
        pytest.param(replace(TIMES, linger_s=0), id="no wait for what was sent"),
        pytest.param(replace(TIMES, trust_s=300), id="trust beyond the lease"),
    ],
)
def test_the_simulation_notices_times_that_are_too_bold(times: LeaseTimes) -> None:
    strikes = [Misfortune(50, 0), Misfortune(110, 0, 150)]
    moves = ((112.0, 1),)
    fates = (Fate(seed=seed, clocks=(0.9, 1.1), strikes=strikes, schedulers=moves) for seed in range(50))
    worlds = (lived(fate, times) for fate in fates)
    assert any(world.overlaps() for world in worlds)
