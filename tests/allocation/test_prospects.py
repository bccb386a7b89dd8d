"""Of several things that are short that one is told which says whether it helps to wait."""

from dataclasses import replace

import pytest

from extender.allocation.features import ALL
from extender.allocation.fit import Fitter
from extender.allocation.plain import plain_of
from extender.allocation.question import Question, ask
from extender.model.claim import ClaimSpec, DerivedAttribute, DeviceRequest, RequestSlot, ResourceClaim, Selector
from extender.model.device import NodeSelection, Seal
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.taint import Taint
from tests.allocation.small import ANY, CLASSES, cluster, device, holder, node, published

# So many of a model, and what a slot asks for: that, or one of a list.
Wanted = tuple[str, int]
Slot = Wanted | list[Wanted]
H100, A100, B200, NIC = ("h100", 1), ("a100", 1), ("b200", 1), ("nic", 1)
H100S, A100S = ("h100", 2), ("a100", 2)
SICK = Taint(key="sick", effect="NoSchedule")
HERE = NodeSelection(node_name=NodeName("n"))
# Whatever derives attributes is searched for.
DERIVED = (DerivedAttribute("a.example.com/z", "1"),)


def asked(claims: list[list[Slot]], *, is_counted: bool) -> Question:
    """Ask for the slots of some claims."""
    made = [
        ResourceClaim(
            key=ObjectKey("ns", f"c{number}"),
            uid=Uid(""),
            spec=ClaimSpec(
                requests=tuple(_slot(f"r{index}", item, is_counted=is_counted) for index, item in enumerate(slots))
            ),
        )
        for number, slots in enumerate(claims)
    ]
    return ask(made, CLASSES, ALL)


def _slot(name: str, slot: Slot, *, is_counted: bool) -> RequestSlot:
    if isinstance(slot, tuple):
        return RequestSlot(name=name, exactly=_request(name, slot, is_counted=is_counted))
    return RequestSlot(
        name=name, first_available=tuple(_request(item[0], item, is_counted=is_counted) for item in slot)
    )


def _request(name: str, item: Wanted, *, is_counted: bool) -> DeviceRequest:
    model, count = item
    selector = Selector(f"device.attributes[device.driver].model == '{model}'")
    derived = () if is_counted else DERIVED
    return DeviceRequest(
        name=name, class_name=ANY, mode="ExactCount", count=count, selectors=(selector,), derived_attributes=derived
    )


def told(claims: list[list[Slot]], *, is_counted: bool) -> str:
    """Ask a node whose two H100 and two A100 are in use, but for one A100, and whose B200 is tainted."""
    question = asked(claims, is_counted=is_counted)
    assert (plain_of(question) is not None) == is_counted
    models = {"h0": "h100", "h1": "h100", "a0": "a100", "a1": "a100"}
    devices = [device(name, {"model": model}) for name, model in models.items()]
    devices.append(device("b0", {"model": "b200"}, taints=(SICK,)))
    held = [holder(name, "n", name) for name in ("h0", "h1", "a0")]
    snapshot = cluster(node("n"), published("n", *devices), *held).snapshot
    return str(Fitter(question).fit(snapshot).reason(0, question))


counted_and_searched = pytest.mark.parametrize("is_counted", [True, False], ids=["counted", "searched"])
TAINTED = "needs 1 free device, has 0: 1 has taint sick=:NoSchedule"


@counted_and_searched
@pytest.mark.parametrize(
    ("alternatives", "reason"),
    [
        pytest.param([H100, NIC], "r0/h100 needs 1 free device, has 0: 2 in use", id="the last never"),
        pytest.param([NIC, H100], "r0/h100 needs 1 free device, has 0: 2 in use", id="the first never"),
        pytest.param([H100S, A100S], "r0/a100 needs 2 free devices, has 1: 1 in use", id="fewer missing"),
        pytest.param([H100, B200], "r0/h100 needs 1 free device, has 0: 2 in use", id="both alike"),
        pytest.param([B200, H100], f"r0/b200 {TAINTED}", id="both alike, the other way"),
        pytest.param([NIC, ("fpga", 1)], "r0/nic needs 1 free device, has 0: no other matches", id="both never"),
    ],
)
def test_of_alternatives_that_one_is_told_for_which_it_helps_most_to_wait(
    alternatives: list[Wanted], reason: str, *, is_counted: bool
) -> None:
    assert told([[alternatives]], is_counted=is_counted) == f"claim c0, request {reason}"


NEVER = "needs 1 free device, has 0: no other matches"
WAITS = "needs 1 free device, has 0: 2 in use"


@counted_and_searched
@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        pytest.param([[H100, NIC]], f"claim c0, request r1 {NEVER}", id="one claim"),
        pytest.param([[NIC, H100]], f"claim c0, request r0 {NEVER}", id="one claim, the other way"),
        pytest.param([[H100], [NIC]], f"claim c1, request r0 {NEVER}", id="two claims"),
        pytest.param([[NIC], [H100]], f"claim c0, request r0 {NEVER}", id="two claims, the other way"),
        pytest.param([[B200, H100]], f"claim c0, request r0 {TAINTED}", id="both wait"),
        pytest.param([[H100, [NIC, B200]]], f"claim c0, request r0 {WAITS}", id="a way out"),
    ],
)
def test_of_several_requests_that_one_is_told_for_which_it_is_in_vain_to_wait(
    claims: list[list[Slot]], reason: str, *, is_counted: bool
) -> None:
    assert told(claims, is_counted=is_counted) == reason


def test_what_is_kept_from_everybody_is_told_before_what_is_in_use() -> None:
    closed = replace(published("m", device("x", {"model": "nic"})), selection=HERE, seal=Seal.CLOSED)
    slices = published("n", device("h", {"model": "h100"})), closed
    snapshot = cluster(node("n"), *slices, holder("u", "n", "h")).snapshot
    kinds: list[tuple[list[list[Slot]], str]]
    kinds = [([[H100, NIC]], "c0, request r1"), ([[NIC], [H100]], "c0, request r0")]
    for claims, place in kinds:
        question = asked(claims, is_counted=True)
        reason = str(Fitter(question).fit(snapshot).reason(0, question))
        assert reason.startswith(f"claim {place} needs 1 free device, has 0: 1 in a pool that is closed")
    question = asked([[[NIC, H100]]], is_counted=True)
    assert "in use" in str(Fitter(question).fit(snapshot).reason(0, question))
