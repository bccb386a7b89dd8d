from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from extender.topology.configuration import Configuration
from extender.topology.fragmentation import Measure, Rows
from extender.topology.policy import Placing
from extender.topology.portions import WHOLE, Catalogue
from extender.topology.shared import PLENTY, Beside, Criteria, Shared
from extender.topology.typical import PodAsk, Typical
from tests.allocation.drawing import Draw
from tests.topology.cases import FIRST_AT, answered, broken_rules, given, sharing, situation

Json = dict[str, Any]
DRIVER = "gpu.example.com"


def gpu(name: str, *, shared: bool = True, **capacity: str) -> Json:
    policy = {"validRange": {"min": "1", "step": "1"}}
    amounts = {key: {"value": text} | ({"requestPolicy": policy} if shared else {}) for key, text in capacity.items()}
    return {"name": name, "allowMultipleAllocations": shared, "capacity": amounts}


def claim(name: str = "c", count: int = 1, **amounts: str) -> Json:
    exactly = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": count}
    asked = {"capacity": {"requests": amounts}} if amounts else {}
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly | asked}]}}}


def case(devices: Sequence[Json], claims: Sequence[Json], used: Mapping[str, Mapping[str, str]] | None = None) -> Json:
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    shares = [
        {"driver": DRIVER, "pool": "n", "device": device, "consumed": amounts}
        for device, amounts in (used or {}).items()
    ]
    return {
        "name": "shares",
        "node": {"metadata": {"name": "n"}},
        "classes": [{"metadata": {"name": "any"}, "spec": {}}],
        "slices": [
            {"metadata": {"name": "s"}, "spec": {"driver": DRIVER, "pool": pool, "nodeName": "n", "devices": devices}}
        ],
        "claims": list(claims),
        "usedCapacity": shares,
    }


def gpus(**left: int) -> tuple[list[Json], dict[str, dict[str, str]]]:
    """Make devices of a thousand each, and what is taken of them."""
    return [gpu(name, milli="1000") for name in left], {
        name: {"milli": str(1000 - some)} for name, some in left.items()
    }


Mix = Mapping[int, int]
HALVES: Mix = {500: 1}


def expecting(mix: Mix, devices: int = 4, **criteria: Any) -> Shared:
    """Expect portions in thousandths, by how often they are asked for; whole devices where nothing is known."""
    if not mix and not criteria:
        return sharing()
    typical = Typical.of({PodAsk(0, 0, amount, 1): weight for amount, weight in (mix or {WHOLE: 1}).items()})
    columns = ([PLENTY], [PLENTY], [[WHOLE] * devices], [0])
    measure = Measure(typical, Rows(*(np.array(column) for column in columns)))
    return judged_by(Criteria(measure, **criteria))


def judged_by(criteria: Criteria) -> Shared:
    return Shared(Catalogue(Configuration()), lambda _, __: criteria)


@pytest.mark.parametrize(
    ("left", "asked", "mix", "best"),
    [
        pytest.param({"a": 1000, "b": 500}, 500, {}, "b", id="what is exactly enough"),
        pytest.param({"a": 1000, "b": 600, "c": 300}, 250, {}, "c", id="the tightest"),
        pytest.param({"b": 1000, "a": 1000}, 100, {}, "a", id="of equal ones the first by name"),
        pytest.param({"a": 600, "b": 1000}, 200, HALVES, "b", id="not the tightest, where halves are asked for"),
        pytest.param({"a": 600, "b": 1000}, 100, HALVES, "a", id="what halves do not need"),
        pytest.param({"a": 400, "b": 600}, 300, HALVES, "a", id="what is too little for halves anyway"),
    ],
)
def test_a_share_is_taken_where_it_costs_the_others_least(
    left: dict[str, int], asked: int, mix: Mix, best: str
) -> None:
    devices, used = gpus(**left)
    assert given(case(devices, [claim(milli=str(asked))], used), expecting(mix)) == [best]


def test_several_claims_of_a_pod_see_what_the_others_take() -> None:
    devices, used = gpus(a=1000, b=1000)
    claims = [claim(f"c{index}", milli="300") for index in range(3)]
    assert given(case(devices, claims, used), sharing()) == ["a", "a", "a"]
    claims = [claim(f"c{index}", milli="600") for index in range(2)]
    assert given(case(devices, claims, used), sharing()) == ["a", "b"]


def test_several_shares_of_a_request_are_of_several_devices() -> None:
    devices, used = gpus(a=1000, b=300, c=1000, d=250)
    assert given(case(devices, [claim(count=2, milli="250")], used), sharing()) == ["b", "d"]


def test_devices_that_only_one_can_have_come_last() -> None:
    devices = [gpu("a", shared=False, milli="1000"), gpu("b", milli="1000")]
    assert given(case(devices, [claim(milli="100")]), sharing()) == ["b"]
    assert given(case(devices, [claim(milli="100")], {"b": {"milli": "950"}}), sharing()) == ["a"]


def test_kinds_of_devices_are_told_apart_by_their_capacities() -> None:
    devices = [
        gpu("a", milli="1000", memory="80Gi"),
        gpu("b", milli="1000", memory="80Gi"),
        gpu("nic", bandwidth="100"),
    ]
    used = {"b": {"milli": "500", "memory": "40Gi"}}
    assert given(case(devices, [claim(milli="500", memory="40Gi")], used), sharing()) == ["b"]
    assert given(case(devices, [claim(milli="500", memory="41Gi")], used), sharing()) == ["a"]


@pytest.mark.parametrize(("placing", "best"), [(Placing.PROTECT, "b"), (Placing.PACK, "a"), (Placing.SPREAD, "c")])
def test_packing_takes_the_tightest_device_and_spreading_the_emptiest(placing: Placing, best: str) -> None:
    devices, used = gpus(a=600, b=700, c=1000)
    assert given(case(devices, [claim(milli="200")], used), expecting(HALVES, placing=placing)) == [best]


def test_how_many_models_there_are_elsewhere_does_not_matter() -> None:
    devices, used = gpus(a=1000, b=500)
    seen = situation(case(devices, [claim(milli="300")], used))
    catalogue, others = Catalogue(Configuration()), [gpu(f"x{size}", milli=str(size)) for size in range(1, 9)]
    catalogue.on(situation(case(others, [claim()])).board)
    values = [sharing(known).value(seen, FIRST_AT, [place]) for known in (catalogue, None) for place in (0, 1)]
    assert catalogue.on(seen.board) == {0: 8, 1: 8}
    assert values[:2] == values[2:]


def test_what_the_node_has_beside_its_devices_counts() -> None:
    # Where there is no CPU for one more half, what halves could use of the devices is lost already.
    devices, used = gpus(a=600, b=1000)
    asked = case(devices, [claim(milli="200")], used)
    typical = Typical.of({PodAsk(1000, 0, 500, 1): 1})
    measure = Measure(typical, Rows(*(np.array(column) for column in ([4000], [PLENTY], [[WHOLE] * 2], [0]))))
    for cpu, best in ((4000, "b"), (1500, "a")):
        shared = judged_by(Criteria(measure, Beside(cpu, PLENTY), Beside(cpu=1000)))
        assert given(asked, shared) == [best]


def test_a_value_says_what_is_taken_and_what_is_lost() -> None:
    devices, used = gpus(a=600, b=1000)
    seen = situation(case(devices, [claim(milli="200")], used))
    texts = []
    for place in (0, 1):
        appraisal = expecting(HALVES, 2).value(seen, FIRST_AT, [place])
        assert appraisal.value == sum(part.value for part in appraisal.parts) <= 0
        texts += [part.text for part in appraisal.parts]
    lost = "what typical pods can still use falls by"
    assert texts == [
        f"takes 200 of 600 free thousandths of a; {lost} 600",
        f"takes 200 of 1000 free thousandths of b; {lost} 200",
    ]


def test_it_concerns_shares_only() -> None:
    shares = situation(case([gpu("a", milli="1000")], [claim(milli="800")]))
    assert sharing().concerns(shares, FIRST_AT, 1)
    assert not sharing().concerns(shares, FIRST_AT, 0)
    whole = situation(case([gpu("a", shared=False, milli="1000")], [claim()]))
    assert not sharing().concerns(whole, FIRST_AT, 1)


def usable(left: Mapping[str, int], mix: Mix) -> int:
    """Return what typical pods could use, times all weights."""
    return sum(weight * some for amount, weight in mix.items() for some in left.values() if some >= amount)


def test_the_device_is_the_one_by_which_typical_pods_lose_least() -> None:
    chance = Draw(2)
    for _ in range(40):
        left = {name: chance.between(0, 10) * 100 for name in "abcd"}
        asked = chance.between(1, 6) * 100
        mix = {100 * portion: chance.between(1, 5) for portion in (2, 5, 10)}
        keys = []
        for name, amount in left.items():
            if amount >= asked:
                gained = usable(left | {name: amount - asked}, mix) - usable(left, mix)
                keys.append((-(gained // sum(mix.values())), amount, name))
        devices, used = gpus(**left)
        told = answered(case(devices, [claim(milli=str(asked))], used), None)
        assert told["fits"] is bool(keys)
        if keys:
            assert given(case(devices, [claim(milli=str(asked))], used), expecting(mix)) == [min(keys)[2]]


def test_where_devices_are_listed_does_not_matter() -> None:
    chance = Draw(1)
    for _ in range(20):
        devices, used = gpus(**{name: chance.between(0, 10) * 100 for name in "abcd"})
        asked = case(devices, [claim(milli=str(chance.between(1, 6) * 100))], used)
        if answered(asked, None)["fits"]:
            shuffled = case(chance.shuffled(devices), asked["claims"], used)
            assert given(shuffled, sharing()) == given(asked, sharing())


@pytest.mark.parametrize("start", range(0, 500, 100))
def test_allocations_in_drawn_clusters_break_no_rule(start: int) -> None:
    assert broken_rules(sharing(), start, 100) == []
