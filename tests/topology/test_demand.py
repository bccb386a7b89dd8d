from random import Random

from hypothesis import given
from hypothesis import strategies as st

from extender.topology.demand import Ask, Typical
from tests.topology.fleets import asks

ONE, TWO, THREE = (Ask(cpu, 0, 1, 1) for cpu in (1, 2, 3))


def test_the_most_frequent_asks_are_typical_until_enough_pods_are_met() -> None:
    counts = {ONE: 5, TWO: 70, THREE: 25}
    assert Typical.of(counts, covering=950).asks == ((TWO, 70), (THREE, 25))
    assert Typical.of(counts, covering=951).asks == ((ONE, 5), (TWO, 70), (THREE, 25))


def test_asks_that_are_not_met_are_not_typical() -> None:
    assert Typical.of({ONE: 1, TWO: 0}).asks == ((ONE, 1),)
    assert Typical.of({}).asks == ()


def test_pods_without_devices_count_but_are_not_served() -> None:
    typical = Typical.of({ONE: 1, Ask(4, 4): 2})
    assert (typical.total, typical.served) == (3, ((ONE, 1),))


@given(st.dictionaries(asks(), st.integers(0, 5)), st.integers(0, 1000), st.randoms(use_true_random=False))
def test_the_order_of_counts_does_not_matter(counts: dict[Ask, int], covering: int, chance: Random) -> None:
    moved = list(counts.items())
    chance.shuffle(moved)
    assert Typical.of(dict(moved), covering) == Typical.of(counts, covering)
