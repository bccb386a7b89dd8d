"""What counting leaves to a search, and what it makes of rules that nobody can satisfy."""

from itertools import product

import pytest

from extender.allocation.features import ALL
from extender.allocation.fit import Fitter
from extender.allocation.plain import plain_of
from extender.allocation.question import Question, ask
from extender.model.claim import ClaimSpec, Constraint, DeviceRequest, RequestSlot, ResourceClaim, Selector
from extender.model.device import ResourceSlice
from extender.model.names import ObjectKey, Uid
from tests.allocation.small import ANY, CLASSES, chosen, cluster, device, node, published, question, request, verdicts


def choices(slots: int, alternatives: int, rule: Constraint | None = None) -> Question:
    """Ask for a device in each slot, of a model of its own for each alternative."""
    named = [(f"r{slot}", f"s{choice}") for slot, choice in product(range(slots), range(alternatives))]
    asks = {
        (slot, choice): DeviceRequest(
            name=choice,
            class_name=ANY,
            mode="ExactCount",
            count=1,
            selectors=(Selector(f"device.attributes['gpu.example.com'].model == '{slot}{choice}'"),),
        )
        for slot, choice in named
    }
    requests = tuple(
        RequestSlot(name=slot, first_available=tuple(item for key, item in asks.items() if key[0] == slot))
        for slot in dict.fromkeys(slot for slot, _ in named)
    )
    spec = ClaimSpec(requests=requests, constraints=(rule,) if rule else ())
    return ask([ResourceClaim(key=ObjectKey("ns", "c"), uid=Uid("c"), spec=spec)], CLASSES, ALL)


@pytest.mark.parametrize(("alternatives", "is_plain"), [(4, True), (7, False)])
def test_the_last_of_many_ways_is_found_counted_or_not(alternatives: int, *, is_plain: bool) -> None:
    asked = choices(3, alternatives)
    assert (plain_of(asked) is not None) == is_plain
    devices = [device(f"d{slot}", {"model": f"r{slot}s{alternatives - 1}"}) for slot in range(3)]
    snapshot = cluster(node("n1"), node("n2"), published("n1", *devices), published("n2", *devices[:2])).snapshot
    assert verdicts(Fitter(asked), snapshot) == chosen(asked, snapshot) == ["FITS", "NO"]


@pytest.mark.parametrize(("covered", "verdict"), [("r0/s0", "FITS"), ("r0", "NO")])
def test_an_attribute_that_nobody_has_excludes_those_whom_its_rule_covers(covered: str, verdict: str) -> None:
    asked = choices(1, 2, Constraint(requests=(covered,), match_attribute="gpu.example.com/nothing"))
    devices = [device(f"d{choice}", {"model": f"r0s{choice}"}) for choice in range(2)]
    snapshot = cluster(node("n1"), published("n1", *devices)).snapshot
    assert plain_of(asked) is not None
    assert verdicts(Fitter(asked), snapshot) == chosen(asked, snapshot) == [verdict]


def test_a_rule_without_a_domain_is_left_to_the_search() -> None:
    asked = question(request(2), Constraint(match_attribute="rack"))
    alike, different = ([device(f"d{index}", {"rack": rack * index}) for index in range(2)] for rack in (0, 1))
    built = cluster(node("n1"), node("n2"), published("n1", *alike), published("n2", *different))
    assert plain_of(asked) is None
    assert verdicts(Fitter(asked), built.snapshot) == chosen(asked, built.snapshot) == ["FITS", "NO"]


def test_rules_that_compare_too_many_values_are_left_to_the_search() -> None:
    rules = [Constraint(match_attribute=f"gpu.example.com/{name}") for name in ("left", "right")]
    asked = question(request(2), *rules)
    crossed = [device(f"d{index:02}", {"left": index, "right": 63 - index}) for index in range(63)]
    twin = device("d63", {"left": 0, "right": 63})
    built = cluster(node("n1"), node("n2"), published("n1", *crossed, twin), published("n2", *crossed))
    assert plain_of(asked) is not None
    assert verdicts(Fitter(asked), built.snapshot) == chosen(asked, built.snapshot) == ["FITS", "NO"]


def test_more_values_than_a_node_has_devices_are_counted_all_the_same() -> None:
    # Each node has racks of its own: one for both devices, two, one for one of them alone, or none.
    racks = {"n1": (0, 0), "n2": (1, 2), "n3": (3, None), "n4": (None, None), "n5": (4, 4)}

    def pool(name: str) -> ResourceSlice:
        own = enumerate({} if rack is None else {"rack": rack} for rack in racks[name])
        return published(name, *(device(f"d{place}", rack) for place, rack in own))

    asked = question(request(2), Constraint(match_attribute="gpu.example.com/rack"))
    snapshot = cluster(*map(node, racks), *map(pool, racks)).snapshot
    assert plain_of(asked) is not None
    assert verdicts(Fitter(asked), snapshot) == chosen(asked, snapshot) == ["FITS", "NO", "NO", "NO", "FITS"]
