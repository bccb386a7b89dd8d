from collections.abc import Sequence
from itertools import product

import pytest

from extender.allocation.attempt import Pick
from extender.allocation.masks import places_of
from extender.allocation.preference import Preference, Tightest, Turn, most_constrained_first
from extender.allocation.question import At
from extender.allocation.situation import Situation
from extender.topology.frames import Framed
from extender.topology.partitioned import Partitioned
from tests.topology.cases import FIRST_AT, broken_rules, given, sharing, situation
from tests.topology.mig import case, claim, request

NAMES = ("gpu-0", "gpu-1", "gpu-2")


def test_partitions_that_several_may_have_draw_once() -> None:
    # Each GPU is in one mode: whoever has a share of a mode keeps the others out of the GPU's other one.
    counters = [{"name": f"gpu-{gpu}-mutex", "counters": {"mode": {"value": "1"}}} for gpu in range(2)]
    devices = [
        {
            "name": f"gpu-{gpu}-{mode}",
            "attributes": {"mode": {"string": mode}},
            "allowMultipleAllocations": mode == "cpx",
            "capacity": {"partitions": {"value": "8", "requestPolicy": {"default": "1", "validValues": ["1"]}}},
            "consumesCounters": [{"counterSet": f"gpu-{gpu}-mutex", "counters": {"mode": {"value": "1"}}}],
        }
        for gpu, mode in product(range(2), ("cpx", "spx"))
    ]
    asked = case(NAMES[:2], [claim(request("", name="r"))])
    expression = "device.attributes['gpu.nvidia.com'].mode == 'cpx'"
    asked["claims"][0]["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [{"cel": {"expression": expression}}]
    spec = asked["slices"][0]["spec"] | {"pool": {"name": "mig-a100", "generation": 1, "resourceSliceCount": 2}}
    asked["slices"] = [
        {"metadata": {"name": "counters"}, "spec": spec | {"sharedCounters": counters}},
        {"metadata": {"name": "devices"}, "spec": {**spec, "devices": devices, "sharedCounters": []}},
    ]
    asked["usedShares"] = [{"id": "gpu.nvidia.com/mig-a100/gpu-1-cpx/share"}]
    asked["usedCapacity"] = [
        {"driver": "gpu.nvidia.com", "pool": "mig-a100", "device": "gpu-1-cpx", "consumed": {"partitions": "1"}}
    ]
    preferences: list[Preference] = [Partitioned(), Framed(Partitioned(), sharing(), Tightest())]
    assert [given(asked, preference) for preference in preferences] == [["gpu-1-cpx"]] * 2
    seen = situation(asked)
    assert not Partitioned().concerns(seen, FIRST_AT, seen.eligible[FIRST_AT].free)
    names = [str(candidate.key.device) for candidate in seen.board.candidates]
    possible = places_of(Partitioned().possible(seen, (1 << len(names)) - 1))
    assert [names[place] for place in possible] == ["gpu-0-cpx", "gpu-0-spx", "gpu-1-cpx"]


class Last:
    """Takes the last devices."""

    def order(self, situation: Situation) -> list[Turn]:
        return most_constrained_first(situation)

    def sets(self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]) -> list[tuple[int, ...]]:
        del situation, at, picks
        return [places_of(mask)[-size:]]


def test_each_ask_is_left_to_who_knows_of_its_devices() -> None:
    framed = Framed(Partitioned(), sharing(), Last())
    assert given(case(NAMES, [claim(request("1g.5gb"))]), framed) == ["gpu-0-mig-1g5gb-19-6"]
    # The third GPU has a partition.
    whole = case(NAMES, [claim(request("", 2))], ["gpu-2-mig-1g5gb-19-6"])
    assert given(whole, framed) == ["gpu-0", "gpu-1"]


def test_what_whole_devices_are_worth_is_for_others_to_say() -> None:
    framed = Framed(Partitioned(), sharing(), Last())
    seen = situation(case(NAMES, [claim(request("1g.5gb"))]))
    places = {str(candidate.key.device): place for place, candidate in enumerate(seen.board.candidates)}
    assert framed.value(seen, FIRST_AT, [places["gpu-0"]]) is None
    part = places["gpu-0-mig-1g5gb-19-6"]
    assert framed.value(seen, FIRST_AT, [part]) == Partitioned().value(seen, FIRST_AT, [part])


@pytest.mark.parametrize("start", range(0, 500, 100))
def test_allocations_in_drawn_clusters_break_no_rule(start: int) -> None:
    assert broken_rules(Framed(Partitioned(), sharing(), Tightest()), start, 100) == []
