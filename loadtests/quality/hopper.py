"""A node with eight GPUs behind a switch, each with a NIC on its own PCIe root, and CPUs on two NUMA nodes."""

from collections.abc import Iterable, Mapping, Sequence

from extender.allocation.board import Board, board_of
from extender.allocation.features import ALL
from extender.allocation.question import EVERY, EXACT, Question, ask
from extender.allocation.situation import Situation, UsageOf
from extender.allocation.tainting import Tainting
from extender.allocation.usage import UNUSED, WHOLE, Usage
from extender.model.claim import ClaimSpec, Constraint, DeviceClass, DeviceRequest, RequestSlot, ResourceClaim, Selector
from extender.model.device import Attribute, Capacity, Device, NodeSelection, ResourceSlice, Traits
from extender.model.names import ClassName, DeviceKey, DeviceName, DriverName, NodeName, ObjectKey, PoolName, Uid
from extender.model.node import Node
from extender.model.quantity import parse_quantity
from extender.topology.aliases import Member, place_of
from extender.topology.choice import Ranker
from extender.topology.configuration import Configuration
from extender.topology.ground import Anchored, Ground, Grounds
from extender.topology.machine import groups_of
from extender.topology.residual import Mix
from extender.topology.tables import ALIASES, shipped

GPU, NIC, CPU = (DriverName(name) for name in ("gpu.nvidia.com", "dra.net", "dra.cpu"))
NODE = NodeName("node")
CORES = 56
NANOS = 10**9
# Instead of a count: all that there are.
EVERY_ONE = -1
BUSES = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")
ROOTS = ("15", "37", "48", "59", "97", "b7", "c7", "d7")
CLASSES = {
    ClassName(name): DeviceClass(name=ClassName(name), selectors=(Selector(f"device.driver == '{driver}'"),))
    for name, driver in (("gpu", GPU), ("nic", NIC), ("cpu", CPU))
}
MIX = Mix.of({1: 40, 2: 30, 4: 25, 8: 5})


def gpu(index: int) -> Device:
    return device(
        f"gpu-{index}",
        type="gpu",
        productName="NVIDIA H100 80GB HBM3",
        pciBusID=f"0000:{BUSES[index]}:00.0",
        pcieRoot=f"pci0000:{ROOTS[index]}",
        numaNode=index // 4,
    )


def nic(index: int) -> Device:
    return device(f"net-{index}", pcieRoot=f"pci0000:{ROOTS[index]}", numaNode=index // 4)


def cpus(zone: int) -> Device:
    capacity = (("dra.cpu/cpu", Capacity(parse_quantity(str(CORES)))),)
    made = device(f"cpu-{zone}", numaNode=zone)
    return Device(made.name, made.attributes, capacity, Traits(allow_multiple_allocations=True))


def published() -> tuple[ResourceSlice, ...]:
    return (
        sliced(GPU, *map(gpu, range(8))),
        sliced(NIC, *map(nic, range(8))),
        sliced(CPU, *map(cpus, range(2))),
    )


def board(*slices: ResourceSlice) -> Board:
    return board_of(Node(name=NODE), slices or published(), Tainting((), CLASSES), ALL)


def question(*claims: Mapping[str, int], constraints: Sequence[Constraint] = ()) -> Question:
    """Ask for devices, a claim for each argument: how many of each class; of CPUs, how many cores of one NUMA node.

    A class may be asked for several times: what follows a dash makes the names differ. All claims have *constraints*.
    """
    named = enumerate(claims)
    return ask([_claim(f"claim-{index}", wanted, tuple(constraints)) for index, wanted in named], CLASSES, ALL)


def grounds(configuration: Configuration | None = None) -> Grounds:
    """Know the links of boards by a configuration, the shipped one without any; each board is looked at once."""
    known: dict[int, Ground] = {}

    def ground_of(situation: Situation) -> Ground:
        board = situation.board
        if id(board) not in known:
            known[id(board)] = ground_on(board, configuration or shipped())
        return known[id(board)]

    return ground_of


def ground_on(board: Board, configuration: Configuration) -> Ground:
    """Say what stands on *board*."""
    members = [Member(candidate.key, candidate.device) for candidate in board.candidates]
    groups = [Anchored(Ranker(group.shape, MIX), group) for group in groups_of(board.node, members, configuration)]
    aliases = {name: tuple(names) for name, names in ALIASES.items()}
    return Ground(board, tuple(groups), tuple(place_of(member, aliases) for member in members))


def _claim(name: str, wanted: Mapping[str, int], constraints: tuple[Constraint, ...]) -> ResourceClaim:
    requests = tuple(RequestSlot(name=key, exactly=_request(key, count)) for key, count in wanted.items())
    return ResourceClaim(
        key=ObjectKey("ns", name), uid=Uid(name), spec=ClaimSpec(requests=requests, constraints=constraints)
    )


def _request(key: str, count: int) -> DeviceRequest:
    class_name = ClassName(key.partition("-")[0])
    if class_name != "cpu":
        mode = EVERY if count == EVERY_ONE else EXACT
        return DeviceRequest(name=key, class_name=class_name, mode=mode, count=max(0, count))
    cores = (("dra.cpu/cpu", parse_quantity(str(count))),)
    return DeviceRequest(name=key, class_name=class_name, mode=EXACT, count=1, capacity=cores)


def device(name: str, **values: str | int) -> Device:
    standard = ("pciBusID", "pcieRoot", "numaNode")
    named = sorted(
        (f"resource.kubernetes.io/{key}" if key in standard else key, value) for key, value in values.items()
    )
    attributes = tuple((key, Attribute("int" if isinstance(value, int) else "string", value)) for key, value in named)
    return Device(DeviceName(name), attributes)


def sliced(driver: DriverName, *devices: Device) -> ResourceSlice:
    return ResourceSlice(
        name=f"{NODE}-{driver}",
        driver=driver,
        pool=PoolName(NODE),
        generation=1,
        slice_count=1,
        selection=NodeSelection(node_name=NODE),
        devices=devices,
    )


def key(driver: DriverName, name: str) -> DeviceKey:
    return DeviceKey(driver, PoolName(NODE), DeviceName(name))


def usages(held: Iterable[DeviceKey], cores: Sequence[int] = (0, 0)) -> UsageOf:
    """Take devices, and so many cores of each NUMA node."""
    taken = dict.fromkeys(held, WHOLE)
    for zone, count in enumerate(cores):
        if count:
            taken[key(CPU, f"cpu-{zone}")] = Usage(shares=1, consumed=(("dra.cpu/cpu", count * NANOS),))
    return lambda one: taken.get(one, UNUSED)
