"""Each rule finds its violation, and nothing in a cluster that is sound."""

import ast
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.invariants.checker import Lingering, Moment, at_once, counted, doubles, doubles_in_use, held, unwanted
from tests.invariants.drawing import (
    OTHER,
    SCHEDULER,
    claim,
    device,
    device_class,
    moment,
    node,
    pod,
    published,
    request,
    result,
)
from tests.invariants.reading import Json, quantity, selects
from tests.invariants.waiting import Unjudged, fitting

SHARED = device("s", allowMultipleAllocations=True, capacity={"memory": {"value": "10Gi"}})
SETS = [{"name": "chip", "counters": {"slices": {"value": "7"}}}]


def part(name: str, slices: int) -> Json:
    draws = {"counterSet": "chip", "counters": {"slices": {"value": str(slices)}}}
    return device(name, consumesCounters=[draws])


PARTS = published("a", part("half", 4), part("whole", 7), part("rest", 3), driver=OTHER, sharedCounters=SETS)
PART = device_class("part", OTHER)


def some(name: str, amount: str, *users: str) -> Json:
    return claim(name, result("a", "s", consumedCapacity={"memory": amount}, shareID=name), users=users)


def mapped(status: Json) -> Json:
    made = pod("p", on="a", **{"example.com/gpu": "1"})
    made["status"] |= status
    return made


MAPPED = {"extendedResourceClaimStatus": {"resourceClaimName": "x"}}
EXTENDED = device_class(extendedResourceName="example.com/gpu")

SOUND: dict[str, dict[str, Any]] = {
    "nothing": {"pods": [], "claims": []},
    "a bound pod": {"pods": [pod("p", "c", on="a")], "claims": [claim("c", result("a", "g0"), users=("p",))]},
    "a claim of two pods": {
        "pods": [pod("p", "c", on="a"), pod("q", "c", on="a")],
        "claims": [claim("c", result("a", "g0"), users=("p", "q"))],
    },
    "an administrator who looks": {
        "pods": [],
        "claims": [claim("c", result("a", "g0")), claim("d", result("a", "g0", adminAccess=True))],
    },
    "a device for many": {
        "pods": [],
        "claims": [some("c", "5Gi"), some("d", "5Gi")],
        "slices": [published("a", SHARED)],
    },
    "parts of a chip": {
        "pods": [],
        "claims": [claim("c", result("a", "half", OTHER)), claim("d", result("a", "rest", OTHER))],
        "slices": [PARTS],
    },
    "a pod that has ended": {"pods": [pod("p", "c", on="a", phase="Succeeded")], "claims": []},
    "devices by number": {
        "pods": [mapped(MAPPED)],
        "claims": [claim("x", result("a", "g0"), users=("p",))],
        "classes": [EXTENDED],
    },
    "devices by number from a plugin": {
        "pods": [mapped({})],
        "claims": [],
        "classes": [EXTENDED],
        "nodes": [{**node("a"), "status": {"allocatable": {"example.com/gpu": "4"}}}],
    },
    "a new generation with the same devices": {
        "pods": [pod("p", "c", on="a")],
        "claims": [claim("c", result("a", "g0"), users=("p",))],
        "slices": [published("a"), published("a", device("g0"), generation=2)],
    },
}
PLANTED: dict[str, tuple[dict[str, Any], str]] = {
    "a device in two claims": (
        {"pods": [], "claims": [claim("c", result("a", "g0")), claim("d", result("a", "g0"))]},
        "device gpu.example.com/a/g0 is in default/c and default/d",
    ),
    "a device twice in one claim": (
        {"pods": [], "claims": [claim("c", result("a", "g0"), result("a", "g0"))]},
        "device gpu.example.com/a/g0 is in default/c and default/c",
    ),
    "more of a device than there is": (
        {"pods": [], "claims": [some("c", "5Gi"), some("d", "6Gi")], "slices": [published("a", SHARED)]},
        "device gpu.example.com/a/s: 11811160064 of 10737418240 memory taken",
    ),
    "more of a chip than there is": (
        {
            "pods": [],
            "claims": [claim("c", result("a", "half", OTHER)), claim("d", result("a", "whole", OTHER))],
            "slices": [PARTS],
        },
        "counter part.example.com/a/chip/slices: 11 of 7 taken",
    ),
    "a bound pod without its claim": (
        {"pods": [pod("p", "c", on="a")], "claims": []},
        "pod default/p on a: claim default/c is not there",
    ),
    "a bound pod whose claim is not made": (
        {
            "pods": [
                {
                    **pod("p", on="a"),
                    "spec": {"nodeName": "a", "containers": [], "resourceClaims": [{"name": "t"}]},
                }
            ],
            "claims": [],
        },
        "pod default/p on a: claim None is not there",
    ),
    "a bound pod without devices": (
        {"pods": [pod("p", "c", on="a")], "claims": [claim("c", users=("p",))]},
        "pod default/p on a: claim default/c has no devices",
    ),
    "a bound pod for whom nothing is reserved": (
        {"pods": [pod("p", "c", on="a")], "claims": [claim("c", result("a", "g0"), users=("q",))]},
        "pod default/p on a: claim default/c is not reserved for it",
    ),
    "a bound pod with devices elsewhere": (
        {"pods": [pod("p", "c", on="b")], "claims": [claim("c", result("a", "g0"), users=("p",))]},
        "pod default/p on b: claim default/c is allocated for other nodes",
    ),
    "a bound pod with a device that is gone": (
        {
            "pods": [pod("p", "c", on="a")],
            "claims": [claim("c", result("a", "g0"), users=("p",))],
            "slices": [published("a", device("g0")), published("a", device("g1"), generation=2)],
        },
        "pod default/p on a: claim default/c has gpu.example.com/a/g0, which is not there",
    ),
    "a bound pod with too few devices": (
        {
            "pods": [pod("p", "c", on="a")],
            "claims": [claim("c", result("a", "g0"), users=("p",), asks=request(2))],
        },
        "pod default/p on a: claim default/c has 1 devices for r, not 2",
    ),
    "a pod bound to nowhere": (
        {"pods": [pod("p", "c", on="z")], "claims": [claim("c", result("a", "g0"), users=("p",))]},
        "pod default/p on z: there is no such node",
    ),
    "devices by number that nobody gave": (
        {"pods": [mapped({})], "claims": [], "classes": [EXTENDED]},
        "pod default/p on a: claim None is not there",
    ),
}


@pytest.mark.parametrize("given", SOUND.values(), ids=SOUND)
def test_nothing_is_said_of_a_sound_cluster(given: dict[str, Any]) -> None:
    assert at_once(moment(**given)) == []


@pytest.mark.parametrize(("given", "said"), PLANTED.values(), ids=PLANTED)
def test_a_planted_violation_is_found(given: dict[str, Any], said: str) -> None:
    assert at_once(moment(**given)) == [said]


@pytest.mark.parametrize(
    ("nodes", "is_used"), [(("a", "a"), True), (("a", ""), False)], ids=["both bound", "one of them bound"]
)
def test_a_double_is_in_use_only_where_both_pods_are_bound(nodes: tuple[str, str], *, is_used: bool) -> None:
    pods = [pod("p", "c", on=nodes[0]), pod("q", "d", on=nodes[1])]
    claims = [claim("c", result("a", "g0"), users=("p",)), claim("d", result("a", "g0"), users=("q",))]
    there = moment(pods=pods, claims=claims)
    assert [*doubles(there)]
    assert bool([*doubles_in_use(there)]) is is_used


def test_what_is_reserved_for_a_pod_that_does_not_name_it_is_not_in_use() -> None:
    claims = [claim("c", result("a", "g0"), users=("p",)), claim("d", result("a", "g0"), users=("p",))]
    assert not [*doubles_in_use(moment(pods=[pod("p", "c", on="a")], claims=claims))]


BOUND, LATER = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"


def twice(written: str, entry: str = "t", users: tuple[str, ...] = ("p",)) -> dict[str, Any]:
    """Return a bound pod for which two claims were made, of which it names since *written* the one without devices."""
    made = [claim("first", result("a", "g0"), users=users), claim("second")]
    for each, asked in zip(made, ("t", entry), strict=True):
        each["metadata"]["annotations"] = {"resource.kubernetes.io/pod-claim-name": asked}
        each["metadata"]["ownerReferences"] = [{"uid": "uid-p", "controller": True}]
    there = pod("p", on="a")
    there["metadata"]["managedFields"] = [
        {"manager": "ResourceClaimController", "subresource": "status", "time": written}
    ]
    there["spec"]["resourceClaims"] = [{"name": "t", "resourceClaimTemplateName": "t"}]
    there["status"] |= {
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": BOUND}],
        "resourceClaimStatuses": [{"name": "t", "resourceClaimName": "second"}],
    }
    return {"pods": [there], "claims": made}


def test_a_pod_that_was_given_the_name_of_another_claim_once_it_was_bound_has_the_devices_of_the_first() -> None:
    assert at_once(moment(**twice(LATER))) == []


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(twice("2026-01-01T00:00:00Z"), id="named before it was bound"),
        pytest.param(twice(LATER, entry="u"), id="made for another entry"),
        pytest.param(twice(LATER, users=("q",)), id="reserved for another pod"),
    ],
)
def test_another_claim_excuses_nothing_where_the_pod_was_not_bound_with_it(given: dict[str, Any]) -> None:
    assert at_once(moment(**given)) == ["pod default/p on a: claim default/second has no devices"]


def owned(by: str) -> Json:
    made = claim("c", result("a", "g0"))
    made["metadata"]["ownerReferences"] = [{"uid": f"uid-{by}"}]
    return made


@pytest.mark.parametrize(
    ("pods", "given", "is_found"),
    [
        pytest.param([], claim("c", result("a", "g0")), True, id="nobody's"),
        pytest.param([], claim("c", result("a", "g0"), users=("p",)), True, id="of a pod that is gone"),
        pytest.param([pod("p", "c", phase="Failed")], claim("c", result("a", "g0")), True, id="of one that has ended"),
        pytest.param([pod("p", "c")], claim("c", result("a", "g0")), False, id="of a pod that waits"),
        pytest.param([pod("p")], claim("c", result("a", "g0"), users=("p",)), False, id="reserved for a pod"),
        pytest.param([pod("p")], owned("p"), False, id="made for a pod"),
        pytest.param([], claim("c"), False, id="without devices"),
    ],
)
def test_a_claim_without_a_living_pod_is_found(pods: list[Json], given: Json, *, is_found: bool) -> None:
    assert bool([*unwanted(moment(pods=pods, claims=[given]))]) is is_found


def test_what_lingers_is_overdue_only_if_it_was_there_all_the_time() -> None:
    seen = Lingering()
    seen.look(["a", "b"], 0)
    seen.look(["b"], 5)
    seen.look(["a", "b"], 9)
    assert seen.overdue(10, 10) == []
    assert seen.overdue(8, 10) == ["b"]
    assert seen.overdue(0, 10) == ["a", "b"]


def linked(*values: int) -> Json:
    return published("a", *(device(f"g{i}", attributes={"numa": {"int": value}}) for i, value in enumerate(values)))


def alike(count: int) -> Json:
    return claim("c", asks=request(count), constraints=[{"matchAttribute": "gpu.example.com/numa"}])


WAITING: dict[str, tuple[dict[str, Any], bool]] = {
    "a free device": ({"pods": [pod("p", "c")], "claims": [claim("c")]}, True),
    "no node has so many": ({"pods": [pod("p", "c")], "claims": [claim("c", asks=request(3))]}, False),
    "all are taken": (
        {
            "pods": [pod("p", "c")],
            "claims": [claim("c"), *(claim(f"{n}{g}", result(n, g)) for n in ("a", "b") for g in ("g0", "g1"))],
        },
        False,
    ),
    "its own can be moved": (
        {
            "pods": [pod("p", "c")],
            "claims": [claim("c", result("a", "g0"), users=("p",))],
            "slices": [published("a", device("g0"))],
        },
        True,
    ),
    "shared with somebody elsewhere": (
        {
            "pods": [pod("p", "c", "d"), pod("q", "c", on="a")],
            "claims": [claim("c", result("a", "g0"), users=("q",)), claim("d"), claim("e", result("a", "g1"))],
        },
        False,
    ),
    "as many alike": (
        {"pods": [pod("p", "c")], "claims": [alike(2)], "slices": [linked(0, 1, 1)]},
        True,
    ),
    "not so many alike": (
        {"pods": [pod("p", "c")], "claims": [alike(3)], "slices": [linked(0, 1, 1)]},
        False,
    ),
    "no room for its CPUs": ({"pods": [pod("p", "c", cpu="5")], "claims": [claim("c")]}, False),
    "a claim is not made": ({"pods": [pod("p", "c")], "claims": []}, False),
    "enough of a shared device": (
        {
            "pods": [pod("p", "d")],
            "claims": [some("c", "5Gi"), claim("d", asks=request(capacity={"requests": {"memory": "5Gi"}}))],
            "slices": [published("a", SHARED)],
        },
        True,
    ),
    "too little of a shared device": (
        {
            "pods": [pod("p", "d")],
            "claims": [some("c", "5Gi"), claim("d", asks=request(capacity={"requests": {"memory": "6Gi"}}))],
            "slices": [published("a", SHARED)],
        },
        False,
    ),
    "the rest of a chip": (
        {
            "pods": [pod("p", "d")],
            "claims": [claim("c", result("a", "half", OTHER)), claim("d", asks=request(of="part"))],
            "slices": [PARTS],
            "classes": [PART],
        },
        True,
    ),
    "no chip is left": (
        {
            "pods": [pod("p", "d")],
            "claims": [claim("c", result("a", "whole", OTHER)), claim("d", asks=request(of="part"))],
            "slices": [PARTS],
            "classes": [PART],
        },
        False,
    ),
    "devices by number": (
        {"pods": [pod("p", **{"example.com/gpu": "2"})], "claims": [], "classes": [EXTENDED]},
        True,
    ),
    "more by number than there are": (
        {"pods": [pod("p", **{"example.com/gpu": "3"})], "claims": [], "classes": [EXTENDED]},
        False,
    ),
    "bound": ({"pods": [pod("p", "c", on="a")], "claims": [claim("c")]}, False),
}


@pytest.mark.parametrize(("given", "fits"), WAITING.values(), ids=WAITING)
def test_a_pod_that_waits_is_named_where_it_fits(given: dict[str, Any], *, fits: bool) -> None:
    assert fitting(moment(**given), SCHEDULER) == (["default/p"] if fits else [])
    assert fitting(moment(**given), "somebody-else") == []


def test_what_the_rules_do_not_know_is_said_and_not_judged() -> None:
    odd = claim("c", asks={"name": "r", "firstAvailable": []})
    with pytest.raises(Unjudged, match="claim default/c: request r"):
        fitting(moment(pods=[pod("p", "c")], claims=[odd]), SCHEDULER)


@pytest.mark.parametrize(
    ("text", "value"),
    [("500m", Fraction(1, 2)), ("2Gi", Fraction(2 * 1024**3)), ("1e3", Fraction(1000)), ("7", Fraction(7))],
)
def test_quantities_are_read(text: str, value: Fraction) -> None:
    assert quantity(text) == value


@pytest.mark.parametrize(
    ("operator", "values", "is_match"),
    [
        ("In", ["x", "1"], True),
        ("NotIn", ["1"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
        ("Gt", ["0"], True),
        ("Lt", ["0"], False),
    ],
)
def test_node_selectors_are_read(operator: str, values: list[str], *, is_match: bool) -> None:
    term = {"matchExpressions": [{"key": "k", "operator": operator, "values": values}]}
    assert selects({"nodeSelectorTerms": [term]}, node("a", k="1")) is is_match
    assert not selects({"nodeSelectorTerms": [{}]}, node("a", k="1"))


def test_holds_are_added_up_and_must_be_told() -> None:
    text = '# HELP x\ndra_extender_holds{phase="offered"} 2.0\ndra_extender_holds{phase="writing"} 1.0\nother 3\n'
    assert held(text) == 3
    assert counted(text, "other") == 3
    with pytest.raises(ValueError, match="dra_extender_holds"):
        held("")


def test_a_moment_of_nothing_is_sound() -> None:
    assert at_once(Moment()) == []


def foreign(path: Path) -> list[str]:
    """Name what a module imports that is neither Python's nor its neighbour's."""
    found = []
    for each in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in each.names] if isinstance(each, ast.Import) else []
        names += [each.module or "."] if isinstance(each, ast.ImportFrom) else []
        found += [
            name
            for name in names
            if name.partition(".")[0] not in sys.stdlib_module_names and not name.startswith("tests.invariants.")
        ]
    return found


@pytest.mark.parametrize("module", ["reading", "published", "checker", "waiting", "drawing"])
def test_the_rules_share_no_code_with_what_they_judge(module: str) -> None:
    path = Path(__file__).with_name(f"{module}.py")
    assert foreign(path) == []
    assert "importlib" not in path.read_text()


def test_an_import_of_the_product_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("import re\nfrom extender.model import device\n")
    assert foreign(tmp_path / "m.py") == ["extender.model"]
