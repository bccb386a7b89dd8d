"""Small clusters for laws: what an API server holds, and the changes that lead there."""

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from extender.model.change import Change, Changed, Gone, Kind, Listed, Noun
from extender.model.claim import AllocatedDevice, Allocation, ClaimSpec, DeviceClass, ResourceClaim
from extender.model.device import Attribute, Capacity, Device, NodeSelection, ResourceSlice, Traits
from extender.model.names import ClassName, DeviceKey, DeviceName, DriverName, NodeName, ObjectKey, PoolName, Uid
from extender.model.node import Node
from extender.model.problem import Problem
from extender.model.quantity import parse_quantity
from extender.model.taint import DeviceTaintRule, Taint
from extender.state.cluster import Cluster, key_of_noun

NODES = tuple(map(NodeName, ("n1", "n2", "n3")))
DRIVERS = tuple(map(DriverName, ("gpu.example.com", "nic.example.com")))
SLICES = ("a", "b", "c", "d")
DEVICES = tuple(map(DeviceName, ("d0", "d1", "d2")))
KINDS: tuple[Kind, ...] = (ResourceSlice, ResourceClaim, Node, DeviceClass, DeviceTaintRule)

attributes = st.dictionaries(
    st.sampled_from(("model", "gpu.example.com/model", "numa", "topology.example.com/root")),
    st.sampled_from(
        (
            Attribute("string", "A100"),
            Attribute("int", 1),
            Attribute("bool", True),  # noqa: FBT003 - the value of an attribute
            Attribute("invalid", "no value"),
        )
    ),
)
capacities = st.dictionaries(
    st.sampled_from(("memory", "gpu.example.com/memory")),
    st.sampled_from((Capacity(parse_quantity("40Gi")), Capacity(parse_quantity("1")))),
)
traits = st.sampled_from(
    (
        Traits(),
        Traits(),
        Traits(allow_multiple_allocations=True),
        Traits(taints=(Taint(key="sick", effect="NoSchedule"),)),
    )
)


@st.composite
def devices(draw: st.DrawFn) -> tuple[Device, ...]:
    names = draw(st.lists(st.sampled_from(DEVICES), max_size=4))
    return tuple(
        Device(name, tuple(sorted(draw(attributes).items())), tuple(sorted(draw(capacities).items())), draw(traits))
        for name in names
    )


@st.composite
def slices(draw: st.DrawFn) -> ResourceSlice:
    selection = draw(
        st.sampled_from((*(NodeSelection(node_name=name) for name in NODES), NodeSelection(all_nodes=True), None))
    )
    return ResourceSlice(
        name=draw(st.sampled_from(SLICES)),
        driver=draw(st.sampled_from(DRIVERS)),
        pool=PoolName(draw(st.sampled_from(NODES))),
        generation=draw(st.sampled_from((1, 2))),
        slice_count=1,
        selection=selection,
        devices=draw(devices()),
    )


@st.composite
def results(draw: st.DrawFn) -> AllocatedDevice:
    key = DeviceKey(
        draw(st.sampled_from(DRIVERS)), PoolName(draw(st.sampled_from(NODES))), draw(st.sampled_from(DEVICES))
    )
    whole = AllocatedDevice(request="r", device=key)
    share = replace(whole, share_id="s", consumed_capacity=(("memory", parse_quantity("3Gi")),))
    return draw(st.sampled_from((whole, whole, share, replace(whole, admin_access=True))))


@st.composite
def claims(draw: st.DrawFn) -> ResourceClaim:
    name = draw(st.sampled_from(("c1", "c2", "c3", "c4")))
    allocation = Allocation(devices=tuple(draw(st.lists(results(), max_size=3)))) if draw(st.booleans()) else None
    whole = ResourceClaim(key=ObjectKey("default", name), uid=Uid(name), spec=ClaimSpec(), allocation=allocation)
    return draw(st.sampled_from((whole, whole, replace(whole, problem=problem(whole)))))


nodes = st.builds(
    lambda name, zone: Node(name=name, labels=(("zone", zone),)), st.sampled_from(NODES), st.sampled_from("xy")
)
classes = st.builds(
    lambda name, extended: DeviceClass(name=ClassName(name), extended_resource=extended),
    st.sampled_from(("gpu", "nic")),
    st.sampled_from((None, "example.com/gpu")),
)
rules = st.builds(
    lambda name, key: DeviceTaintRule(name=name, selector=None, taint=Taint(key=key, effect="NoExecute")),
    st.sampled_from(("r1", "r2")),
    st.sampled_from(("x", "y")),
)
NOUNS: dict[Kind, st.SearchStrategy[Noun]] = {
    ResourceSlice: slices(),
    ResourceClaim: claims(),
    Node: nodes,
    DeviceClass: classes,
    DeviceTaintRule: rules,
}


def problem(noun: Noun) -> Problem:
    return Problem(type(noun).__name__, key_of_noun(noun), "spec", "is broken")


@st.composite
def changes(draw: st.DrawFn) -> Change:
    kind = draw(st.sampled_from((ResourceSlice, ResourceSlice, ResourceClaim, ResourceClaim, *KINDS)))
    noun = draw(NOUNS[kind])
    what = draw(st.sampled_from(("changed",) * 6 + ("gone", "gone", "broken", "listed")))
    if what == "gone":
        return Gone(kind, key_of_noun(noun))
    if what == "listed":
        items = {key_of_noun(item): item for item in draw(st.lists(NOUNS[kind], max_size=5))}
        return Listed(kind, tuple(problem(item) if draw(st.integers(0, 5)) == 0 else item for item in items.values()))
    return Changed(problem(noun) if what == "broken" else noun)


@dataclass
class World:
    """What the API server holds, told change by change: the slow and obvious account."""

    objects: dict[Kind, dict[ObjectKey, Noun | Problem]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    # A claim that can no longer be read keeps what it held when it could.
    readable_claims: dict[ObjectKey, ResourceClaim] = field(default_factory=dict)

    def apply(self, change: Change) -> None:
        match change:
            case Changed(what):
                self._put(what)
            case Gone(kind, key):
                self._drop(kind, key)
            case Listed(kind, items):
                kept = set(map(key_of_noun, items))
                for key in self.objects[kind].keys() - kept:
                    self._drop(kind, key)
                for item in items:
                    self._put(item)

    def _put(self, what: Noun | Problem) -> None:
        if isinstance(what, Problem):
            kind = next(kind for kind in KINDS if kind.__name__ == what.kind)
            self.objects[kind][what.key] = what
            return
        self.objects[type(what)][key_of_noun(what)] = what
        if isinstance(what, ResourceClaim):
            self.readable_claims[what.key] = what

    def _drop(self, kind: Kind, key: ObjectKey) -> None:
        self.objects[kind].pop(key, None)
        if kind is ResourceClaim:
            self.readable_claims.pop(key, None)

    def rebuilt(self) -> Cluster:
        """Tell all of it to a new cluster at once."""
        cluster = Cluster()
        cluster.apply(Listed(ResourceClaim, tuple(self.readable_claims.values())))
        for key, claim in self.objects[ResourceClaim].items():
            if isinstance(claim, Problem):
                assert key == claim.key
                cluster.apply(Changed(claim))
        for kind in KINDS:
            if kind is not ResourceClaim:
                cluster.apply(Listed(kind, tuple(self.objects[kind].values())))
        return cluster
