"""Where several GPUs share a NIC, or some nodes have none, who wants GPUs alone leaves those that are close to one."""

from dataclasses import replace
from itertools import count

import pytest

from extender.model.change import Changed
from extender.model.claim import Constraint, RequestSlot
from extender.model.device import NodeSelection, ResourceSlice, Traits
from extender.model.names import ClassName, DeviceKey, DeviceName, NodeName, PoolName
from extender.model.quantity import parse_quantity
from extender.scheduling.planner import Offer
from extender.state.belief import Belief
from extender.topology.document import Document
from extender.topology.policies import Policies
from tests.scheduling.cast import held, pod
from tests.scheduling.machines import GPU, NVIDIA, ROOT
from tests.scheduling.mixed import NET, NIC, asks, cluster, nics, one, planner_of, published, some

L40S = "NVIDIA L40S"
NUMBERS = count()


def cards(node_name: str, count: int, product: str = L40S) -> ResourceSlice:
    return published(node_name, NVIDIA, count, product=product)


def one_nic(node_name: str, index: int, count: int) -> ResourceSlice:
    """Publish the NIC on the root of one of *count* GPUs alone."""
    every = nics(node_name, count)
    return replace(every, devices=every.devices[index : index + 1])


def placed(belief: Belief, *classes: object, size: int = 1, match: str = "") -> tuple[str, list[str], str]:
    """Return node, devices and reasons of the next pod, with *size* GPUs, and NICs if so asked."""
    rules = (Constraint(match_attribute=match),) if match else ()
    return given(belief, some(size, GPU, "gpu"), *(some(1, NIC, "nic") for _ in classes), rules=rules)


def given(belief: Belief, *requests: RequestSlot, rules: tuple[Constraint, ...] = ()) -> tuple[str, list[str], str]:
    """Return node, devices and reasons of the next pod."""
    name = f"c{next(NUMBERS)}"
    asked = asks(name, *requests)
    belief.apply(Changed(replace(asked, spec=replace(asked.spec, constraints=rules))))
    plan = planner_of(belief, Document()).plan(pod(name, name), None, 0.0)
    assert isinstance(plan, Offer)
    assert plan.placement.appraisal
    devices = [str(item.device.device) for _, allocation in plan.placement.claims for item in allocation.devices]
    return (
        str(plan.placement.node),
        devices,
        "; ".join(part.text for part in plan.placement.appraisal.parts if part.text),
    )


def test_gpus_alone_leave_those_on_the_numa_node_of_the_only_nic() -> None:
    belief = cluster(cards("a", 8), one_nic("a", 7, 8))
    alone = [placed(belief, size=size)[1] for size in (1, 1, 2)]
    assert alone == [["d0"], ["d1"], ["d2", "d3"]]
    _, _, reasons = placed(belief, NIC)
    assert "NIC on the same PCIe root as its GPU (1 of 1)" in reasons


@pytest.mark.parametrize(("with_nic", "without"), [("a", "b"), ("b", "a")])
def test_of_equal_nodes_gpus_alone_fill_the_one_without_nics(with_nic: str, without: str) -> None:
    belief = cluster(cards("a", 8), cards("b", 8), one_nic(with_nic, 7, 8), nodes="ab")
    assert [placed(belief, size=size)[0] for size in (1, 1, 2, 4)] == [without] * 4
    assert placed(belief, NIC)[0] == with_nic


def test_a_gpu_on_the_root_of_the_only_nic_is_left_for_who_needs_both_on_one() -> None:
    belief = cluster(cards("a", 4, "NVIDIA H100 80GB HBM3"), one_nic("a", 0, 4))
    assert placed(belief)[1] == ["d1"]
    assert placed(belief, NIC, match=ROOT)[1] == ["d0", "d0"]


def test_that_no_nic_is_free_is_not_told_while_one_is() -> None:
    belief = cluster(cards("a", 8), one_nic("a", 0, 8))
    assert "2 x GPU taken for which no NIC is left over" in placed(belief, size=2)[2]


@pytest.mark.parametrize(
    ("size", "others", "text"),
    [
        (1, (), "1 x GPU taken for which a NIC is left over"),
        (2, (NIC,), "1 x GPU taken for which a NIC is left over"),
        (1, (NIC,), "1 x GPU and NIC taken together"),
    ],
)
def test_a_nic_is_told_as_taken_only_by_who_takes_it(size: int, others: tuple[object, ...], text: str) -> None:
    belief = cluster(cards("a", 4), nics("a", 4))
    assert text in placed(belief, *others, size=size)[2]


def looking(size: int, class_name: ClassName, name: str) -> RequestSlot:
    return RequestSlot(name=name, exactly=replace(one(size, class_name, name), admin_access=True))


@pytest.mark.parametrize("size", [1, 0])
def test_a_nic_that_is_only_looked_at_is_not_told_as_taken(size: int) -> None:
    belief = cluster(cards("a", 4), nics("a", 4))
    _, devices, reasons = given(belief, some(1), looking(size, NIC, "nic"))
    assert devices == ["d0", "d0", "d1", "d2", "d3"][: 1 + (size or 4)]
    assert reasons == "on NUMA 0 alone; 1 x GPU taken for which a NIC is left over"


def test_a_gpu_that_is_only_looked_at_is_not_told_as_taken_and_leads_nobody() -> None:
    belief = cluster(cards("a", 4), nics("a", 4))
    given(belief, some(3))
    _, devices, reasons = given(belief, looking(0, GPU, "gpu"), some(1, NIC, "nic"))
    assert devices == ["d0", "d1", "d2", "d3", "d0"]
    assert reasons == "on NUMA 0 alone"


def test_who_only_looks_on_keeps_nobody_from_what_is_close() -> None:
    belief = cluster(cards("a", 4), one_nic("a", 3, 4))
    _, devices, reasons = given(belief, looking(0, NIC, "all"), some(1))
    assert devices == ["d3", "d0"]
    assert "1 x GPU taken for which no NIC is left over" in reasons


def shareable(node_name: str, count: int) -> ResourceSlice:
    return published(node_name, NVIDIA, count, product=L40S, traits=Traits(allow_multiple_allocations=True))


def share() -> RequestSlot:
    amounts = (("memory", parse_quantity("8Gi")),)
    return RequestSlot(name="gpu", exactly=replace(one(1, GPU, "gpu"), capacity=amounts))


def test_a_share_of_a_gpu_leaves_no_gpu_behind_without_a_nic() -> None:
    belief = cluster(shareable("a", 2), nics("a", 2))
    _, devices, reasons = given(belief, share(), some(1, NIC, "nic"))
    assert devices == ["d0", "d0"]
    assert "1 x GPU and NIC taken together; NIC on the same PCIe root as its GPU (1 of 1)" in reasons


@pytest.mark.parametrize(("near", "far"), [("a", "b"), ("b", "a")])
def test_a_share_goes_where_a_nic_is_close_to_it(near: str, far: str) -> None:
    belief = cluster(shareable("a", 2), shareable("b", 2), one_nic(near, 0, 2), one_nic(far, 3, 4), nodes="ab")
    assert given(belief, share(), some(1, NIC, "nic"))[0] == near


def test_who_has_a_share_of_a_gpu_is_on_its_numa_node_wherever_the_nics_are() -> None:
    belief = cluster(shareable("a", 2), nics("a", 2))
    _, devices, reasons = given(belief, share(), some(2, NIC, "nic"))
    assert devices == ["d0", "d0", "d1"]
    assert "on NUMA 0 alone" in reasons


@pytest.mark.parametrize(("near", "far"), [("a", "b"), ("b", "a")])
def test_shares_go_where_they_are_on_one_numa_node(near: str, far: str) -> None:
    one, (first, _, last) = shareable(near, 4), shareable(far, 3).devices
    close = replace(one, devices=one.devices[:2])
    apart = replace(one, name=f"{far}-gpus", pool=PoolName(far), selection=NodeSelection(node_name=NodeName(far)))
    belief = cluster(close, replace(apart, devices=(first, last)), nics(near, 2), nics(far, 2), nodes="ab")
    asked = share()
    assert asked.exactly is not None
    two = replace(asked, exactly=replace(asked.exactly, count=2))
    assert given(belief, two, some(1, NIC, "nic"))[0] == near


@pytest.mark.parametrize("asked", [share(), some(1, GPU, "gpu")])
def test_who_has_a_share_and_a_nic_has_it_of_a_gpu_that_the_nic_is_close_to(asked: RequestSlot) -> None:
    belief = cluster(shareable("a", 4), one_nic("a", 3, 4))
    assert given(belief, asked, some(1, NIC, "nic"))[1] == ["d3", "d3"]


@pytest.mark.parametrize(("policy", "gpu"), [("protect", "d3"), ("pack", "d0"), ("spread", "d3")])
def test_where_gpus_are_packed_or_spread_a_nic_that_is_close_comes_second(policy: str, gpu: str) -> None:
    belief = cluster(shareable("a", 4), one_nic("a", 3, 4))
    planner = planner_of(belief, Document(policies=Policies(default=policy)))
    for name, others in (("first", ()), ("next", (some(1, NIC, "nic"),))):
        belief.apply(Changed(asks(name, share(), *others)))
        plan = planner.plan(pod(name, name), None, 0.0)
    assert isinstance(plan, Offer)
    ((_, allocation),) = plan.placement.claims
    assert [item.device.device for item in allocation.devices] == [gpu, "d3"]


def shared_nics(node_name: str, count: int, *indices: int) -> ResourceSlice:
    """Publish the NICs on the roots of some of *count* GPUs; each has ten shares."""
    every = published(node_name, NET, count, traits=Traits(allow_multiple_allocations=True))
    return replace(every, devices=tuple(every.devices[index] for index in indices))


def nic_share(name: str = "nic", amount: str = "8Gi") -> RequestSlot:
    return RequestSlot(name=name, exactly=replace(one(1, NIC, name), capacity=(("memory", parse_quantity(amount)),)))


def test_a_share_of_a_nic_is_of_one_that_is_close_to_its_gpu() -> None:
    belief = cluster(cards("a", 4), shared_nics("a", 4, *range(4)))
    given(belief, some(3))
    _, devices, reasons = given(belief, some(1), nic_share())
    assert devices == ["d3", "d3"]
    assert "NIC on the same PCIe root as its GPU (1 of 1)" in reasons


@pytest.mark.parametrize("asked", [share(), some(1, GPU, "gpu")])
@pytest.mark.parametrize(("near", "far"), [("a", "b"), ("b", "a")])
def test_a_share_of_a_nic_goes_where_it_is_close(near: str, far: str, asked: RequestSlot) -> None:
    gpus = shareable if asked.exactly and asked.exactly.capacity else cards
    belief = cluster(gpus("a", 2), gpus("b", 2), shared_nics(near, 2, 0), shared_nics(far, 4, 3), nodes="ab")
    assert given(belief, asked, nic_share())[0] == near


def test_gpus_with_a_share_each_of_one_nic_are_both_close_to_it() -> None:
    belief = cluster(cards("a", 4), shared_nics("a", 4, 3))
    _, devices, reasons = given(belief, some(2), nic_share(), nic_share("other"))
    assert devices == ["d2", "d3", "d3", "d3"]
    assert "on the same PCIe root as its GPU (1 of 2); NIC on the NUMA node of its GPU (1 of 2)" in reasons


@pytest.mark.parametrize(
    ("amount", "devices"), [("40Gi", ["d0", "d1", "d0", "d0"]), ("41Gi", ["d6", "d7", "d4", "d5"])]
)
def test_gpus_are_close_to_nics_that_have_enough_left_for_all_of_them(amount: str, devices: list[str]) -> None:
    belief = cluster(cards("a", 8), shared_nics("a", 8, 0, 4, 5))
    # On the other NUMA node no GPU is left on the root of a NIC.
    taken = [DeviceKey(NVIDIA, PoolName("a"), DeviceName(name)) for name in ("d4", "d5")]
    belief.apply(Changed(held(asks("held", some(2)), *taken)))
    assert given(belief, some(2), nic_share("nic", amount), nic_share("other", amount))[1] == devices


@pytest.mark.parametrize(("one_index", "many_index"), [(0, 3), (3, 0)])
def test_gpus_are_close_to_the_nic_that_goes_with_them_where_only_some_can_be_shared(
    one_index: int, many_index: int
) -> None:
    many = replace(shared_nics("a", 4, many_index), name="a-shared", slice_count=2)
    alone = replace(one_nic("a", one_index, 4), slice_count=2)
    belief = cluster(cards("a", 4), many, alone)
    assert given(belief, some(1), some(1, NIC, "nic"))[1] == [f"d{one_index}"] * 2
    belief = cluster(cards("a", 4), many, alone)
    assert given(belief, some(1), nic_share())[1] == [f"d{many_index}"] * 2


def test_of_shares_that_leave_the_same_those_are_taken_that_are_close_to_each_gpu() -> None:
    belief = cluster(cards("a", 4), shared_nics("a", 4, 0, 1, 3))
    taken = [DeviceKey(NVIDIA, PoolName("a"), DeviceName(name)) for name in ("d1", "d2")]
    belief.apply(Changed(held(asks("held", some(2)), *taken)))
    (nic,) = [replace(slot, exactly=replace(slot.exactly, count=2)) for slot in [nic_share()] if slot.exactly]
    assert given(belief, some(2), nic)[1] == ["d0", "d3", "d0", "d3"]
