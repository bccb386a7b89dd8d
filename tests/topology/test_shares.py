from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.topology.quality import ONE
from extender.topology.shares import (
    COARSE,
    Amounts,
    Demand,
    Room,
    Typical,
    coarse,
    fragmentation,
    fragments,
    gains,
    mix_of,
    quantised,
)


def gpus(*left: int) -> list[Room]:
    """Make devices of a thousand each."""
    return [Room((1000,), (amount,)) for amount in left]


@pytest.mark.parametrize(
    ("left", "asked", "milli"),
    [
        pytest.param((1000, 1000), Typical((500,)), 0, id="all can be used"),
        pytest.param((300, 700), Typical((500,)), 300, id="what is left of one is too little"),
        pytest.param((300, 400), Typical((500,)), 700, id="nothing suffices: all that is left"),
        pytest.param((1000, 900), Typical((1000,), devices=2), 1900, id="one of two: all that is left"),
        pytest.param((1000, 900, 1000), Typical((1000,), devices=2), 900, id="two of three"),
        pytest.param((0, 0), Typical((100,)), 0, id="nothing is left"),
    ],
)
def test_fragments_are_what_is_left_where_it_is_too_little(left: tuple[int, ...], asked: Typical, milli: int) -> None:
    assert fragments(gpus(*left), asked) == milli * ONE // 1000


def test_fragmentation_is_the_mean_over_what_is_typical() -> None:
    mix = [Typical((500,), 3), Typical((1000,), 1)]
    assert fragmentation(gpus(300, 700), mix) == (3 * 300 + 1000) * ONE // 1000 // 4
    assert fragmentation(gpus(300, 700), []) == 0


def test_of_several_capacities_the_scarcest_decides_and_their_mean_is_idle() -> None:
    room = Room((100, 80), (100, 10))
    assert fragments([room], Typical((10, 20))) == room.idle == (ONE + ONE // 8) // 2
    assert fragments([room], Typical((10, 10))) == 0


ROOMS = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=1, max_size=5).map(
    lambda lefts: [Room((10, 10), left) for left in lefts]
)
MIXES = st.lists(
    st.builds(
        Typical, st.tuples(st.integers(0, 10), st.integers(0, 10)), weight=st.integers(1, 5), devices=st.integers(1, 3)
    ),
    max_size=4,
)


@given(ROOMS, MIXES, st.tuples(st.integers(0, 10), st.integers(0, 10)))
def test_a_gain_is_the_difference_between_before_and_after(
    rooms: list[Room], mix: list[Typical], taken: Amounts
) -> None:
    for index, gain in gains(rooms, mix, dict.fromkeys(range(len(rooms)), taken)).items():
        after = [*rooms[:index], rooms[index].without(taken), *rooms[index + 1 :]]
        assert gain == fragmentation(rooms, mix) - fragmentation(after, mix)


@given(ROOMS, MIXES)
def test_the_order_of_devices_does_not_matter(rooms: list[Room], mix: list[Typical]) -> None:
    assert len({fragmentation(order, mix) for order in list(permutations(rooms))[:6]}) == 1


def test_differences_of_a_percent_of_a_score_do_not_count() -> None:
    assert [coarse(gain) for gain in (-COARSE, -1, 0, COARSE - 1, COARSE)] == [-1, -1, 0, 0, 1]


@given(st.integers(0, 1 << 70))
def test_quantised_amounts_are_nearly_what_they_were(amount: int) -> None:
    assert 0 <= amount - quantised(amount) <= amount // 16
    assert quantised(quantised(amount)) == quantised(amount)


def test_where_nothing_is_known_whole_devices_are_typical() -> None:
    mix = mix_of(["milli"], [(1000,), (500,), (1000,)], {})
    assert mix == (Typical((500,)), Typical((1000,)))
    assert mix_of(["milli"], [(1000,)], {(("other", 5),): 1}) == (Typical((1000,)),)


def test_the_rarest_is_not_typical_and_what_hardly_differs_is_one() -> None:
    demand: Demand = {
        (("milli", 500),): 60,
        (("milli", 501),): 20,
        (("milli", 100),): 17,
        (("milli", 1000),): 3,
        (("milli", 7),): 0,
    }
    assert mix_of(["milli"], [], demand) == (Typical((500,), 80), Typical((100,), 17))


def test_a_capacity_that_nobody_asks_for_does_not_count() -> None:
    assert mix_of(["cores", "memory"], [], {(("memory", 8),): 2}) == (Typical((0, 8), 2),)
