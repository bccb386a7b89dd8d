from collections import Counter
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from extender.topology.typical import ANY, KINDS, MEMORY, Census, PodAsk, Typical
from loadtests.quality.openb import frequent
from loadtests.quality.traces import unknown
from tests.topology.fleets import asks

ONE, TWO, THREE = (PodAsk(cpu, 0, 1, 1) for cpu in (1, 2, 3))


def test_the_most_frequent_asks_are_typical_until_enough_pods_are_met() -> None:
    counts = Counter({ONE: 5, TWO: 70, THREE: 25})
    assert frequent(counts, 950).asks == ((TWO, 70), (THREE, 25))
    assert frequent(counts, 951).asks == ((ONE, 5), (TWO, 70), (THREE, 25))


def test_asks_that_are_not_met_are_not_typical() -> None:
    assert Typical.of({ONE: 1, TWO: 0}).asks == ((ONE, 1),)
    assert Typical.of({}).asks == ()


def test_pods_without_devices_count_but_are_not_served() -> None:
    typical = Typical.of({ONE: 1, PodAsk(4, 4): 2})
    assert (typical.total, typical.served) == (3, ((ONE, 1),))


@given(st.dictionaries(asks(), st.integers(0, 5)), st.integers(0, 1000), st.randoms(use_true_random=False))
def test_the_order_of_counts_does_not_matter(counts: dict[PodAsk, int], covering: int, chance: Random) -> None:
    moved = list(counts.items())
    chance.shuffle(moved)
    assert frequent(Counter(dict(moved)), covering) == frequent(Counter(counts), covering)
    assert Typical.of(dict(moved)) == Typical.of(counts)


def test_what_was_asked_becomes_typical() -> None:
    census = Census()
    told = [census.meet(ask) for ask in (ONE, TWO, TWO, THREE)]
    assert told[0] == Typical.of({ONE: 1})
    assert told[-1] == Typical.of({ONE: 1, TWO: 2, THREE: 1})


def test_what_is_expected_at_the_start_counts_as_if_it_was_asked() -> None:
    start = unknown(2)
    assert start.asks == ((PodAsk(0, 0, 1000, 1, 0b01), 1), (PodAsk(0, 0, 1000, 1, 0b10), 1))
    assert Census(start).meet(ONE) == Typical.of({**dict(start.asks), ONE: 1})


def test_what_is_typical_is_told_less_and_less_often() -> None:
    census = Census()
    told = [number for number in range(1000) if census.meet(ONE)]
    assert len(told) < 30
    assert all(later - earlier >= earlier // 4 for earlier, later in pairwise(told))


def test_what_is_not_asked_any_more_is_forgotten() -> None:
    census = Census()
    for _ in range(MEMORY):
        census.meet(ONE)
    typical = [told for told in (census.meet(TWO) for _ in range(20 * MEMORY)) if told]
    assert typical[-1].asks[0][0] == TWO


def test_only_the_most_frequent_of_very_many_kinds_are_told() -> None:
    census = Census()
    told = [census.meet(PodAsk(cpu, 0, 1, 1)) for cpu in range(2 * KINDS)]
    assert max(len(typical.asks) for typical in told if typical) == KINDS


def test_what_is_expected_of_very_many_models_is_told_of_each() -> None:
    census = Census(unknown(2 * KINDS))
    assert census.meet(ONE) == Typical.of({**dict(unknown(2 * KINDS).asks), ONE: 1})


@given(
    st.one_of(st.just(ANY), st.integers(0, 1 << 20), st.integers(0, 20).map(lambda bit: 1 << bit)), st.integers(1, 30)
)
def test_a_model_will_do_where_its_bit_is_set(bits: int, models: int) -> None:
    ask = PodAsk(0, 0, 1, 1, bits)
    assert ask.on(models).tolist() == [bool(bits >> model & 1) for model in range(models)]
    assert ask.numbers(models).tolist() == [model for model in range(models) if bits >> model & 1]


def test_what_was_learnt_is_told_of_models_by_their_new_numbers() -> None:
    plain, some, other, gone = PodAsk(4, 4), *(ONE._replace(models=bits) for bits in (0b101, 0b110, 0b1000))
    census = Census(Typical.of({plain: 1, some: 2, other: 3, gone: 4}))
    census.renumber({0: 0, 2: 1})
    first, second = (ONE._replace(models=bits) for bits in (0b11, 0b10))
    assert census.meet(first) == Typical.of({plain: 1, first: 3, second: 3})


def test_asks_that_differ_in_models_that_are_gone_are_one() -> None:
    typical = Typical.of({ONE._replace(models=0b101): 2, ONE._replace(models=0b011): 3, TWO: 1})
    assert typical.renumbered({0: 4}) == Typical.of({ONE._replace(models=0b10000): 5, TWO: 1})
