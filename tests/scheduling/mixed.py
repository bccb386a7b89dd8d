"""Nodes with GPUs and NICs over two NUMA nodes, for tests of what policies have and what they do not."""

from collections.abc import Iterable
from dataclasses import replace

from extender.model.claim import DeviceClass, DeviceRequest, RequestSlot, ResourceClaim, Selector
from extender.model.device import PLAIN, Attribute, Capacity, Device, NodeSelection, ResourceSlice, Traits
from extender.model.names import ClassName, DeviceName, DriverName, NodeName, PoolName
from extender.model.quantity import parse_quantity
from extender.scheduling.choosing import Chooser
from extender.scheduling.planner import Offer, Plan, Planner
from extender.scheduling.ranking import AnswerPolicy
from extender.scheduling.taste import Taste
from extender.state.belief import Belief
from extender.topology.document import Document
from extender.topology.policies import ANNOTATION, Policies
from tests.scheduling.cast import belief_of, claim, node
from tests.scheduling.machines import GPU, GPU_CLASS, NUMA, NVIDIA, ROOT

NET = DriverName("dra.net")
NIC, ANY = ClassName("nic"), ClassName("any")
CLASSES = (
    GPU_CLASS,
    DeviceClass(name=NIC, selectors=(Selector(f"device.driver == '{NET}'"),)),
    DeviceClass(name=ANY, selectors=(Selector("true"),)),
)
BUS = "resource.kubernetes.io/pciBusID"
RESERVED = "example.com/reserved"
H100 = "NVIDIA H100 80GB HBM3"


def published(
    node_name: str,
    driver: DriverName,
    count: int,
    reserved: Iterable[int] = (),
    *,
    product: str = "",
    traits: Traits = PLAIN,
    is_everywhere: bool = False,
) -> ResourceSlice:
    """Return devices of which the first half is on NUMA node 0, each on a PCIe root of its own."""
    kept = set(reserved)
    place = NodeSelection(all_nodes=True) if is_everywhere else NodeSelection(node_name=NodeName(node_name))
    return ResourceSlice(
        name=f"{node_name}-{driver}",
        driver=driver,
        pool=PoolName(node_name),
        generation=1,
        slice_count=1,
        selection=place,
        devices=tuple(_device(index, count, product, traits, is_reserved=index in kept) for index in range(count)),
    )


def _device(index: int, count: int, product: str, traits: Traits, *, is_reserved: bool) -> Device:
    found = {NUMA: Attribute("int", 2 * index // count), ROOT: Attribute("string", f"pci0000:{index:02x}")}
    if product:
        found |= {BUS: Attribute("string", f"0000:{index:02x}:01.0"), "type": Attribute("string", "gpu")}
        found["productName"] = Attribute("string", product)
    if is_reserved:
        found[RESERVED] = Attribute("bool", value=True)
    amounts = (("memory", Capacity(parse_quantity("80Gi"))),) if traits.allow_multiple_allocations else ()
    return Device(DeviceName(f"d{index}"), tuple(sorted(found.items())), amounts, traits)


def with_uuids(cards: ResourceSlice) -> ResourceSlice:
    """Return the same cards with the identities that links in annotations of nodes go by."""
    told = (
        replace(device, attributes=(("type", Attribute("string", "gpu")), ("uuid", Attribute("string", device.name))))
        for device in cards.devices
    )
    return replace(cards, devices=tuple(told))


def gpus(node_name: str, count: int, reserved: Iterable[int] = (), **others: object) -> ResourceSlice:
    return published(node_name, NVIDIA, count, reserved, product=H100, **others)  # type: ignore[arg-type]  # as there


def nics(node_name: str, count: int, reserved: Iterable[int] = ()) -> ResourceSlice:
    return published(node_name, NET, count, reserved)


def cluster(*slices: ResourceSlice, nodes: Iterable[str] = ("a",)) -> Belief:
    return belief_of(*CLASSES, *map(node, nodes), *slices)


def asks(name: str, *requests: RequestSlot, policy: str = "") -> ResourceClaim:
    asked = claim(name)
    notes = ((ANNOTATION, policy),) if policy else ()
    return replace(asked, annotations=notes, spec=replace(asked.spec, requests=requests))


def some(count: int, class_name: ClassName = GPU, name: str = "some") -> RequestSlot:
    return RequestSlot(name=name, exactly=one(count, class_name, name))


def one(count: int, class_name: ClassName = GPU, name: str = "some") -> DeviceRequest:
    """Ask for *count* devices, or for all."""
    mode = "ExactCount" if count else "All"
    return DeviceRequest(name=name, class_name=class_name, mode=mode, count=count)


def planner_by(belief: Belief, policies: Policies, answers: AnswerPolicy | None = None) -> Planner:
    return planner_of(belief, Document(policies=policies), answers)


def planner_of(belief: Belief, document: Document, answers: AnswerPolicy | None = None) -> Planner:
    taste = Taste(document, belief.learning.mix_for)
    return Planner(belief, Chooser(belief, lambda: "share", taste=taste), answers or AnswerPolicy())


def devices_of(plan: Plan) -> dict[str, list[str]] | None:
    """List what each claim is given; None where the pod is not placed."""
    if not isinstance(plan, Offer):
        return None
    return {
        given.key.name: [f"{item.device.driver}/{item.device.device}" for item in allocation.devices]
        for given, allocation in plan.placement.claims
    }
