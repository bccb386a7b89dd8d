import json
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest

from extender.allocation.masks import mask_of, places_of
from extender.allocation.situation import Situation
from extender.topology.chips import chips_of
from extender.topology.partitioned import Partitioned
from extender.topology.policy import KEEPING, Placing
from extender.topology.quality import ONE
from tests.allocation.checker import violations
from tests.allocation.drawing import Draw
from tests.topology.cases import FIRST_AT, answered, broken_rules, given, situation
from tests.topology.mig import PROFILES, case, claim, request

Json = dict[str, Any]
TWO = ("gpu-0", "gpu-1")


def short(names: Sequence[str]) -> list[str]:
    """Shorten gpu-0-mig-1g5gb-19-6 to 0:1g6."""
    parts = [name.split("-") for name in names]
    return [f"{part[1]}:{part[3][:2]}{part[5]}" if len(part) > 2 else part[1] for part in parts]


def full(names: str) -> list[str]:
    """Do the opposite, for several."""
    kinds = {"1g": "1g5gb-19", "2g": "2g10gb-14", "3g": "3g20gb-9", "4g": "4g20gb-5", "7g": "7g40gb-0"}
    parts = [(name.partition(":")[0], name.partition(":")[2]) for name in names.split()]
    return [f"gpu-{gpu}-mig-{kinds[cut[:2]]}-{cut[2:]}" if cut else f"gpu-{gpu}" for gpu, cut in parts]


@pytest.mark.parametrize(
    ("profile", "held", "best"),
    [
        pytest.param("1g.5gb", "", "0:1g6", id="a slice that no larger pair needs"),
        pytest.param("1g.5gb", "0:1g6", "0:1g4", id="a slice of the half that is broken"),
        pytest.param("2g.10gb", "", "0:2g4", id="the upper half, for four fit into the lower one only"),
        pytest.param("2g.10gb", "0:3g4", "0:2g0", id="what is left"),
        pytest.param("3g.20gb", "", "0:3g4", id="the upper half leaves room for four"),
        pytest.param("3g.20gb", "0:1g6", "0:3g0", id="the half that is whole, where the GPU is broken anyway"),
        pytest.param("1g.5gb", "0:7g0", "1:1g6", id="where there is room"),
        pytest.param("1g.5gb", "1:1g6", "1:1g4", id="a GPU that is broken"),
        pytest.param("3g.20gb", "1:1g6", "1:3g0", id="a GPU that is broken, for more"),
        pytest.param("2g.10gb", "0:3g0 1:1g6 1:1g5", "0:2g4", id="a half into which four would not fit"),
        pytest.param("", "0:1g6", "1", id="the whole one"),
        pytest.param("", "", "0", id="any whole one"),
    ],
)
def test_a_partition_is_placed_where_it_breaks_least(profile: str, held: str, best: str) -> None:
    asked = case(TWO, [claim(request(profile))], full(held))
    assert short(given(asked, Partitioned())) == [best]


@pytest.mark.parametrize(
    ("profile", "count", "held", "placing", "best"),
    [
        pytest.param("1g.5gb", 1, "1:1g6", Placing.SPREAD, ["0:1g6"], id="the emptiest GPU"),
        pytest.param("1g.5gb", 1, "1:1g6", Placing.PACK, ["1:1g4"], id="the fullest GPU"),
        pytest.param("1g.5gb", 1, "0:3g0 1:4g0", Placing.PACK, ["1:1g6"], id="the fuller of two"),
        pytest.param("1g.5gb", 1, "0:3g0 1:4g0", Placing.SPREAD, ["0:1g6"], id="the emptier of two"),
        pytest.param("1g.5gb", 2, "", Placing.SPREAD, ["0:1g6", "1:1g6"], id="one of each GPU"),
        pytest.param("1g.5gb", 2, "", Placing.PACK, ["0:1g4", "0:1g5"], id="both of one GPU"),
    ],
)
def test_partitions_are_packed_and_spread(
    profile: str, count: int, held: str, placing: Placing, best: list[str]
) -> None:
    asked = case(TWO, [claim(request(profile, count))], full(held))
    assert sorted(short(given(asked, Partitioned(placing_of=lambda _: placing)))) == best


@pytest.mark.parametrize(("placing", "sign"), [(Placing.PACK, -1), (Placing.SPREAD, 1)])
def test_a_node_is_worth_what_packing_and_spreading_leave_free_on_its_chips(placing: Placing, sign: int) -> None:
    asked = case(TWO, [claim(request("1g.5gb"))], full("0:7g0"))
    seen, preference = situation(asked), Partitioned(placing_of=lambda _: placing)
    place = next(iter(preference.sets(seen, FIRST_AT, seen.eligible[FIRST_AT].free, 1, ())))
    (part,) = preference.value(seen, FIRST_AT, place).parts
    taken, free = (int(word) for word in part.text.split() if word.isdigit())
    # Who has the GPU as one partition leaves a quarter of its counters, as encoders are.
    assert 0 < taken < 1000 < free < 2000
    assert part.text == f"{placing}: takes {taken} of {free} free thousandths of chips"
    assert part.value == sign * (2 * ONE * (free - taken) // 2000)


def test_small_partitions_one_after_another_fill_one_gpu_from_the_end() -> None:
    held: list[str] = []
    for _ in range(7):
        held += given(case(TWO, [claim(request("1g.5gb"))], held), Partitioned())
    assert short(held) == ["0:1g6", "0:1g4", "0:1g5", "0:1g0", "0:1g1", "0:1g2", "0:1g3"]


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param([claim(request("1g.5gb", 4))], id="one request"),
        pytest.param([claim(*(request("1g.5gb", name=f"r{index}") for index in range(4)))], id="several requests"),
        pytest.param([claim(request("1g.5gb"), name=f"c{index}") for index in range(4)], id="several claims"),
    ],
)
def test_several_partitions_of_a_pod_break_one_gpu_only(claims: list[Json]) -> None:
    found = short(given(case(("gpu-0", "gpu-1", "gpu-2"), claims), Partitioned()))
    assert {name[0] for name in found} == {"0"}


def test_seven_go_onto_one_gpu_and_eight_onto_two() -> None:
    names = [f"gpu-{index}" for index in range(4)]
    seven = short(given(case(names, [claim(request("1g.5gb", 7))]), Partitioned()))
    assert {name[0] for name in seven} == {"0"}
    eight = short(given(case(names, [claim(request("1g.5gb", 8))]), Partitioned()))
    assert sorted(name[0] for name in eight) == ["0"] * 7 + ["1"]
    assert "1:1g6" in eight


def test_a_rule_that_partitions_are_of_one_gpu_is_kept() -> None:
    # The rest of the first GPU would be filled first, but there is only room for one.
    asked = case(TWO, [claim(request("2g.10gb", 2), together=True)], full("0:3g4 0:1g3"))
    assert {name[0] for name in short(given(asked, Partitioned()))} == {"1"}
    assert violations(asked, asked["node"], answered(asked, Partitioned())["allocations"]) == []


def change(preference: Partitioned, seen: Situation, places: Sequence[int]) -> int:
    return preference.value(seen, FIRST_AT, places).value


def test_the_first_set_is_the_best_of_all() -> None:
    chance, preference = Draw(5), Partitioned()
    for _ in range(40):
        held = drawn_holders(chance)
        profile, size = chance.pick(PROFILES[:3]), chance.pick((1, 2, 3))
        asked = case(TWO, [claim(request(profile, size))], held)
        seen = situation(asked)
        mask = seen.eligible[FIRST_AT].free
        told = answered(asked, None)
        places = [place for place in range(mask.bit_length()) if mask >> place & 1]
        chosen = [places for places in combinations(places, size) if is_possible(seen, places)]
        assert bool(chosen) is told["fits"]
        if chosen:
            first = next(iter(preference.sets(seen, FIRST_AT, mask, size, ())))
            assert first in chosen
            assert change(preference, seen, first) == max(change(preference, seen, places) for places in chosen)


def drawn_holders(chance: Draw) -> list[str]:
    held: list[str] = []
    for _ in range(chance.between(0, 5)):
        asked = case(TWO, [claim(request(chance.pick(PROFILES[:4])))], held)
        seen = situation(asked)
        mask = seen.eligible[FIRST_AT].free
        fitting = [place for place in range(mask.bit_length()) if mask >> place & 1 and is_possible(seen, (place,))]
        held += [seen.board.candidates[place].key.device for place in fitting and [chance.pick(fitting)]]
    return held


def is_possible(seen: Situation, places: Sequence[int]) -> bool:
    balance = seen.balance(0)
    for place in places:
        device = seen.board.candidates[place].device
        if not balance.admits(device, grouped=True):
            return False
        balance.take(device)
    return True


def test_what_gpus_are_called_and_where_they_are_listed_does_not_matter() -> None:
    chance, preference = Draw(7), Partitioned()
    for _ in range(20):
        held, wanted = drawn_holders(chance), claim(request(chance.pick(PROFILES[:3]), chance.pick((1, 2))))
        asked = case(TWO, [wanted], held)
        shuffled = json.loads(json.dumps(asked))
        shuffled["slices"] = chance.shuffled(shuffled["slices"])
        for published in shuffled["slices"]:
            if "devices" in published["spec"]:
                published["spec"]["devices"] = chance.shuffled(published["spec"]["devices"])
        swapped = json.loads(json.dumps(asked).replace("gpu-0", "gpu-x").replace("gpu-1", "gpu-0"))
        if answered(asked, None)["fits"]:
            names = given(asked, preference)
            assert sorted(given(shuffled, preference)) == sorted(names)
            assert value_of(swapped, given(swapped, preference)) == value_of(asked, names)


def value_of(asked: Json, names: Sequence[str]) -> int:
    seen = situation(asked)
    places = [place for place, candidate in enumerate(seen.board.candidates) if candidate.key.device in names]
    return change(Partitioned(), seen, places)


def test_a_value_says_what_is_kept() -> None:
    asked = case(TWO, [claim(request("1g.5gb", 2))], full("0:3g4"))
    seen = situation(asked)
    by_name = {str(candidate.key.device): place for place, candidate in enumerate(seen.board.candidates)}
    left = "1 of 2 of 3g.20gb, 0 of 1 of 7g.40gb, 0 of 1 of whole devices"
    appraisal = Partitioned().value(seen, FIRST_AT, [by_name[name] for name in full("0:1g0 1:1g6")])
    assert appraisal.value == sum(part.value for part in appraisal.parts) < 0
    assert [part.text for part in appraisal.parts] == [
        "kept whole on gpu-0: 3 of 4 placements of 1g.5gb, 1 of 2 of 2g.10gb, 0 of 1 of 3g.20gb, 0 of 1 of 4g.20gb",
        f"kept whole on gpu-1: 6 of 7 placements of 1g.5gb, {left}",
    ]


def test_a_whole_gpu_costs_all_that_it_was_good_for() -> None:
    seen = situation(case(TWO, [claim(request(""))], full("0:1g6")))
    preference = Partitioned()
    costs = [change(preference, seen, (place,)) for chip in chips_of(seen.board) for place in chip.cuts]
    assert min(costs) == -KEEPING * ONE // 1000


def test_whole_ones_are_those_of_which_nobody_has_a_part() -> None:
    names = ("gpu-0", "gpu-1", "gpu-2")
    seen = situation(case(names, [claim(request("", 1))], full("1:1g3 2")))
    preference = Partitioned()
    whole = [seen.board.candidates[place].key.device for place in places_of(preference.wholes(seen))]
    assert whole == ["gpu-0"]
    assert not preference.concerns(seen, FIRST_AT, seen.eligible[FIRST_AT].free)
    parts = situation(case(names, [claim(request("1g.5gb"))]))
    assert preference.concerns(parts, FIRST_AT, parts.eligible[FIRST_AT].free)
    assert not preference.concerns(parts, FIRST_AT, mask_of(()))


def test_demand_is_counted_by_profile() -> None:
    board = situation(case(TWO, [claim(request("1g.5gb"))])).board
    told = {profile for chip in chips_of(board) for profile in chip.pattern.profiles}
    assert told == {*PROFILES, "whole devices"}


@pytest.mark.parametrize("start", range(0, 500, 100))
def test_allocations_in_drawn_clusters_break_no_rule(start: int) -> None:
    assert broken_rules(Partitioned(), start, 100) == []
