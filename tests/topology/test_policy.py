"""What a set is worth to a policy."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.topology.policies import SHIPPED
from extender.topology.policy import MOST_ZONES, STEP, ZONE, Outlook, Placing, Policy, Trait, Wish, worth
from extender.topology.quality import ONE

PROTECT, PACK, SPREAD, ONE_NUMA, LINKED = SHIPPED
# A perfect pair of eight free devices, after which nothing is lost.
PAIR = Outlook(2, ONE, 0, 1, is_linked=True, generation=0, avoided=0, free=8, every=8)
NEW, OLD = Trait("model", ("H100",)), Trait("model", ("A100",))


@pytest.mark.parametrize(
    ("policy", "changed", "value"),
    [
        pytest.param(PROTECT, {}, ONE, id="links count fully"),
        pytest.param(PROTECT, {"quality": 600_000}, 600_000, id="worse links count less"),
        pytest.param(PROTECT, {"size": 1, "quality": ONE}, 0, id="a single device has no links"),
        pytest.param(PROTECT, {"change": -400_000}, ONE - 200_000, id="what is lost counts half"),
        pytest.param(
            replace(PROTECT, numa=Wish.PREFERRED), {"zones": 2}, ONE - ZONE, id="a second NUMA node costs a little"
        ),
        pytest.param(PROTECT, {"free": 2}, ONE, id="how full the node is does not matter"),
        pytest.param(PROTECT, {"avoided": 1}, ONE - STEP, id="an avoided device costs more than all else"),
        pytest.param(PACK, {}, ONE - 1_500_000, id="packing costs what stays free"),
        pytest.param(PACK, {"free": 2}, ONE, id="packing a node full costs nothing"),
        pytest.param(PACK, {"free": 4}, ONE - 500_000, id="packing costs a share of the node, not of what is free"),
        pytest.param(PACK, {"change": -ONE}, ONE - 1_500_000, id="packing does not look at what is left"),
        pytest.param(SPREAD, {}, ONE + 1_500_000, id="spreading gains what stays free"),
        pytest.param(ONE_NUMA, {}, ONE, id="one NUMA node suits"),
        pytest.param(ONE_NUMA, {"zones": 2}, None, id="two do not"),
        pytest.param(LINKED, {"zones": 2}, ONE, id="linked across NUMA nodes"),
        pytest.param(LINKED, {"is_linked": False}, None, id="not fully linked"),
        pytest.param(replace(PROTECT, links=Wish.IGNORED), {}, 0, id="links that nobody wants"),
        pytest.param(replace(PROTECT, numa=Wish.IGNORED), {"zones": 2}, ONE, id="NUMA nodes that nobody looks at"),
        pytest.param(replace(PROTECT, prefer=(NEW, OLD)), {"generation": 1}, ONE - STEP, id="the second best"),
        pytest.param(replace(PROTECT, prefer=(NEW, OLD)), {"avoided": 1}, ONE - 3 * STEP, id="worse than any model"),
    ],
)
def test_what_a_pair_is_worth(policy: Policy, changed: dict[str, Any], value: int | None) -> None:
    assert worth(policy, PAIR._replace(**changed)) == value


@st.composite
def outlooks(draw: st.DrawFn) -> Outlook:
    size = draw(st.integers(1, 16))
    free = draw(st.integers(size, 64))
    return Outlook(
        size=size,
        quality=draw(st.integers(0, ONE)),
        change=draw(st.integers(-ONE, 0)),
        zones=draw(st.integers(1, size)),
        is_linked=draw(st.booleans()),
        generation=draw(st.integers(0, 3)),
        avoided=draw(st.integers(0, size)),
        free=free,
        every=draw(st.integers(free, 64)),
    )


POLICIES = st.builds(
    Policy,
    placing=st.sampled_from(Placing),
    numa=st.sampled_from(Wish),
    links=st.sampled_from(Wish),
    prefer=st.sampled_from([(), (NEW,), (NEW, OLD, NEW)]),
)


def at_most(one: int | None, other: int | None) -> bool:
    """Compare values, of which none at all is the least."""
    return one is None or (other is not None and one <= other)


@given(POLICIES, outlooks())
def test_being_strict_is_preferring_or_nothing(policy: Policy, outlook: Outlook) -> None:
    for preferred, strict in (
        (replace(policy, numa=Wish.PREFERRED), replace(policy, numa=Wish.STRICT)),
        (replace(policy, links=Wish.PREFERRED), replace(policy, links=Wish.STRICT)),
    ):
        assert worth(strict, outlook) in (worth(preferred, outlook), None)


@given(POLICIES, outlooks())
def test_a_stricter_policy_about_numa_nodes_never_makes_a_set_worth_more(policy: Policy, outlook: Outlook) -> None:
    values = [worth(replace(policy, numa=wish), outlook) for wish in (Wish.STRICT, Wish.PREFERRED, Wish.IGNORED)]
    assert at_most(values[0], values[1])
    assert at_most(values[1], values[2])


@given(POLICIES, outlooks(), st.sampled_from([("quality", -1), ("zones", 1), ("generation", 1), ("avoided", 1)]))
def test_a_worse_set_is_never_worth_more(policy: Policy, outlook: Outlook, worse: tuple[str, int]) -> None:
    field, step = worse
    changed = outlook._replace(**{field: getattr(outlook, field) + step})
    assert at_most(worth(policy, changed), worth(policy, outlook))


@given(POLICIES, outlooks(), outlooks())
def test_what_is_preferred_and_avoided_comes_before_all_else(policy: Policy, one: Outlook, other: Outlook) -> None:
    generations = len(policy.prefer)
    one = one._replace(generation=min(one.generation, generations))
    other = other._replace(generation=min(other.generation, generations))
    values = worth(policy, one), worth(policy, other)
    if (one.avoided, one.generation) < (other.avoided, other.generation) and None not in values:
        assert at_most(values[1], values[0])
        assert values[0] != values[1]


@given(outlooks(), st.data())
def test_of_nodes_of_one_size_packing_takes_the_one_with_the_least_free(outlook: Outlook, data: st.DataObject) -> None:
    fuller = outlook._replace(free=data.draw(st.integers(outlook.size, outlook.free)))
    assert at_most(worth(PACK, outlook), worth(PACK, fuller))
    assert at_most(worth(SPREAD, fuller), worth(SPREAD, outlook))


@pytest.mark.parametrize(
    ("size", "free", "small"),
    [
        pytest.param(1, 4, 4, id="as much is free on both"),
        pytest.param(1, 5, 4, id="more is free"),
        pytest.param(2, 5, 4, id="for a pair"),
        pytest.param(1, 3, 2, id="a small one that it would half fill"),
    ],
)
def test_packing_goes_on_with_a_node_of_eight_before_it_opens_a_small_one(size: int, free: int, small: int) -> None:
    used, empty = (PAIR._replace(size=size, free=left, every=every) for left, every in ((free, 8), (small, small)))
    assert worth(PACK, used) > worth(PACK, empty)  # type: ignore[operator]  # both are had
    assert worth(SPREAD, used) < worth(SPREAD, empty)  # type: ignore[operator]  # both are had


def test_many_numa_nodes_do_not_outweigh_what_is_preferred() -> None:
    scattered = PAIR._replace(zones=10 * MOST_ZONES, quality=0)
    policy = replace(PACK, prefer=(NEW,))
    assert worth(policy, scattered) > worth(policy, PAIR._replace(generation=1))  # type: ignore[operator]  # both are had
