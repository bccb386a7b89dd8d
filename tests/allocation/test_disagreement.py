"""Requests that a constraint binds together are told what there is with one value, each by its name."""

import pytest

from extender.allocation.choose import choose
from extender.allocation.features import ALL
from extender.allocation.fit import Fitter
from extender.allocation.plain import plain_of
from extender.allocation.question import Question, ask
from extender.allocation.reason import reason_of
from extender.allocation.solve import Nothing
from extender.model.claim import ClaimSpec, Constraint, DeviceRequest, RequestSlot, ResourceClaim, Selector
from extender.model.device import Device
from extender.model.names import ObjectKey, Uid
from tests.allocation.small import ANY, CLASSES, cluster, device, holder, node, published

ROOT = "gpu.example.com/root"
SAME_ROOT = (Constraint(match_attribute=ROOT),)
# The name of a request, how many it asks for, and of which models.
Wanted = tuple[str, int, str]
GPU, NIC, ANYTHING = ("gpu", 1, "gpu"), ("nic", 1, "nic"), ("any", 1, "gpu nic")


def asked(*claims: list[Wanted], rules: tuple[Constraint, ...] = SAME_ROOT) -> Question:
    made = [
        ResourceClaim(
            key=ObjectKey("ns", f"c{number}"),
            uid=Uid(""),
            spec=ClaimSpec(requests=tuple(map(_slot, wanted)), constraints=rules),
        )
        for number, wanted in enumerate(claims)
    ]
    return ask(made, CLASSES, ALL)


def _slot(wanted: Wanted) -> RequestSlot:
    name, count, models = wanted
    selector = Selector(f"device.attributes[device.driver].model in {models.split()}")
    request = DeviceRequest(name=name, class_name=ANY, mode="ExactCount", count=count, selectors=(selector,))
    return RequestSlot(name=name, exactly=request)


def on(root: str, **counts: int) -> list[Device]:
    """Publish so many devices of some models on a root."""
    names = [(model, f"{root}-{model}{index}") for model, count in counts.items() for index in range(count)]
    return [device(name, {"model": model, "root": root}) for model, name in names]


def told(question: Question, *devices: Device, taken: tuple[str, ...] = ()) -> str:
    """Explain a node, counted and searched."""
    held = [holder(name, "n", name) for name in taken]
    snapshot = cluster(node("n"), published("n", *devices), *held).snapshot
    assert plain_of(question) is not None
    answer = choose(snapshot, 0, question)
    assert isinstance(answer, Nothing)
    counted = str(Fitter(question).fit(snapshot).reason(0, question))
    assert counted == str(reason_of(answer.situation))
    return counted


ONE = f"with one value of {ROOT}, best has"


@pytest.mark.parametrize(
    ("wanted", "devices", "taken", "reason"),
    [
        pytest.param(
            [GPU, NIC],
            [*on("r0", gpu=2, nic=1), *on("r1", gpu=2), *on("r2", nic=1)],
            ("r0-nic0",),
            f"claim c0 needs 1 free device for request gpu and 1 for request nic {ONE} 1 and 0",
            id="never both",
        ),
        pytest.param(
            [("gpu", 4, "gpu"), ("nic", 2, "nic")],
            [*on("r0", gpu=5, nic=1), *on("r1", gpu=1, nic=2)],
            (),
            f"claim c0 needs 4 free devices for request gpu and 2 for request nic {ONE} 4 and 1",
            id="where least is missing",
        ),
        pytest.param(
            [("gpu", 4, "gpu"), NIC],
            [*on("r0", gpu=3, nic=1), *on("r1", gpu=3)],
            (),
            f"claim c0 needs 4 free devices for request gpu and 1 for request nic {ONE} 3 and 1",
            id="one everywhere",
        ),
        pytest.param(
            [("g1", 1, "gpu"), NIC, ("g2", 1, "gpu")],
            [*on("r0", gpu=1, nic=4), *on("r1", gpu=2)],
            (),
            f"claim c0 needs 2 free devices for requests g1 and g2 and 1 for request nic {ONE} 2 and 0",
            id="two alike",
        ),
        pytest.param(
            [("g1", 2, "gpu"), NIC, ("g2", 1, "gpu")],
            [*on("r0", gpu=2, nic=1), *on("r1", gpu=2)],
            (),
            f"claim c0 needs 3 free devices for requests g1 and g2 and 1 for request nic {ONE} 2 and 1",
            id="two alike everywhere",
        ),
        pytest.param(
            [("g1", 2, "gpu"), ("g2", 2, "gpu")],
            [*on("r0", gpu=3), *on("r1", gpu=3)],
            (),
            f"claim c0 needs 4 free devices {ONE} 3",
            id="all alike",
        ),
        pytest.param(
            [ANYTHING, GPU],
            [*on("r0", gpu=1), *on("r1", nic=2)],
            (),
            f"claim c0 needs 2 free devices {ONE} 1",
            id="the same device",
        ),
        pytest.param(
            [GPU, NIC],
            [device("g", {"model": "gpu"}), device("x", {"model": "nic"})],
            (),
            f"claim c0 needs 1 free device for request gpu and 1 for request nic {ONE} 0 and 0",
            id="no values",
        ),
        pytest.param(
            [GPU, NIC, ("dpu", 1, "dpu")],
            [*on("r0", gpu=1, nic=1), *on("r1", dpu=1, nic=1)],
            (),
            f"claim c0 needs 1 free device for request gpu, 1 for request nic and 1 for request dpu {ONE} 1, 1 and 0",
            id="three",
        ),
    ],
)
def test_what_one_value_has_of_each_request_is_told(
    wanted: list[Wanted], devices: list[Device], taken: tuple[str, ...], reason: str
) -> None:
    assert told(asked(wanted), *devices, taken=taken) == reason


def test_what_one_value_has_is_told_of_requests_for_devices_that_several_can_have() -> None:
    shared = device("x", {"model": "nic", "root": "r1"}, allow_multiple_allocations=True)
    question = asked([GPU, NIC])
    reason = f"claim c0 needs 1 free device for request gpu and 1 for request nic {ONE} 1 and 0"
    assert told(question, *on("r0", gpu=1), shared) == reason
    both = asked([("one", 1, "nic"), ("two", 2, "nic")])
    assert told(both, shared) == "claim c0, request two needs 2 free devices, has 1: no other matches"


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        pytest.param(
            [[("g1", 2, "gpu"), ("g2", 2, "gpu")]],
            "claim c0, requests g1 and g2 need 4 free devices together, has 3",
            id="one claim",
        ),
        pytest.param(
            [[("g1", 2, "gpu")], [("g2", 2, "gpu")]],
            "2 requests of the pod's claims need 4 free devices together, has 3",
            id="two claims",
        ),
        pytest.param(
            [[("gpu", 3, "gpu"), ("any", 2, "gpu nic")]],
            "claim c0: each request has enough free devices, but not all can be given them together",
            id="not alike",
        ),
        pytest.param(
            [[("gpu", 3, "gpu")], [("any", 2, "gpu nic")]],
            "each request has enough free devices, but not all can be given them together",
            id="not alike, two claims",
        ),
    ],
)
def test_requests_that_take_each_others_devices_are_named(claims: list[list[Wanted]], reason: str) -> None:
    assert told(asked(*claims, rules=()), *on("r0", gpu=3, nic=1)) == reason
