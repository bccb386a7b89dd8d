"""On small nodes that mix GPUs as they are, GPUs that can be cut or shared, and NICs, nothing is worth more."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.allocation.attempt import Pick
from extender.allocation.choose import choosing
from extender.allocation.counters import balance_of
from extender.allocation.masks import places_of
from extender.allocation.solve import BEST, Solution
from extender.allocation.work import finished
from extender.model.claim import DeviceClass, DeviceRequest, RequestSlot, Selector
from extender.model.device import (
    PLAIN,
    Attribute,
    Capacity,
    CounterConsumption,
    CounterSet,
    Device,
    NodeSelection,
    ResourceSlice,
    Traits,
)
from extender.model.device import Counter as Amount
from extender.model.names import ClassName, DeviceName, DriverName, NodeName, PoolName
from extender.model.quantity import parse_quantity
from extender.scheduling.commons import Commons
from extender.scheduling.preferring import Preferring
from extender.scheduling.taste import Taste
from extender.topology.demand import EXPECTED, Demand
from extender.topology.document import Document
from tests.scheduling.cast import belief_of, node
from tests.scheduling.machines import NUMA, NVIDIA, ROOT
from tests.scheduling.mixed import BUS, NET, asks

SHARED = Traits(allow_multiple_allocations=True)
ABOUT = f"device.driver == '{NVIDIA}' && device.attributes['{NVIDIA}'].type"
TESTS = {"gpu": f"{ABOUT} == 'gpu'", "part": f"{ABOUT} == 'mig'", "nic": f"device.driver == '{NET}'"}
CLASSES = [DeviceClass(name=ClassName(name), selectors=(Selector(test),)) for name, test in TESTS.items()]
# What sums are rounded by.
TRIFLE = 4
Place = tuple[int, str]
places = st.tuples(st.integers(0, 1), st.sampled_from("abc"))


def device(name: str, place: Place, traits: Traits = PLAIN, **more: str) -> Device:
    zone, root = place
    texts = {key: Attribute("string", text) for key, text in {ROOT: f"{root}{zone}", **more}.items()}
    amounts = (("some", Capacity(parse_quantity("100"))),)
    return Device(DeviceName(name), tuple(sorted({NUMA: Attribute("int", zone), **texts}.items())), amounts, traits)


def drawing(index: int, amount: int) -> Traits:
    counters = (Amount("halves", parse_quantity(str(amount))),)
    return Traits(consumes_counters=(CounterConsumption(f"chip-{index}", counters),))


def gpu(index: int, place: Place, kind: str) -> Iterator[Device]:
    """Yield a GPU, and its halves where it can be cut."""
    more = {"productName": "P", BUS: f"0000:{index:02x}:00.0"}
    traits = {"plain": PLAIN, "shared": SHARED, "cut": drawing(index, 2)}[kind]
    yield device(f"gpu-{index}", place, traits, type="gpu", **more)
    for half in range(2 if kind == "cut" else 0):
        yield device(f"gpu-{index}-{half}", place, drawing(index, 1), type="mig", profile="half", **more)


def published(driver: DriverName, devices: Sequence[Device], sets: Sequence[CounterSet] = ()) -> list[ResourceSlice]:
    """Publish devices, and what they draw from in a slice of its own."""
    slices = enumerate(((devices, ()), ((), sets)))
    return [
        ResourceSlice(
            name=f"{driver}-{index}",
            driver=driver,
            pool=PoolName("n"),
            generation=1,
            slice_count=2,
            selection=NodeSelection(node_name=NodeName("n")),
            devices=tuple(some),
            shared_counters=tuple(counted),
        )
        for index, (some, counted) in slices
    ]


@st.composite
def nodes(draw: st.DrawFn, gpus: Sequence[str], nics: Traits) -> list[ResourceSlice]:
    """Draw a few GPUs of some kinds and NICs, on some roots and NUMA nodes."""
    drawn = draw(st.lists(st.tuples(places, st.sampled_from(gpus)), min_size=1, max_size=4))
    cards = [one for index, drawn_of in enumerate(drawn) for one in gpu(index, *drawn_of)]
    others = [device(f"nic-{index}", place, nics) for index, place in enumerate(draw(st.lists(places, max_size=3)))]
    sets = [CounterSet(f"chip-{index}", (Amount("halves", parse_quantity("2")),)) for index in range(len(drawn))]
    return [*published(NVIDIA, cards, sets), *published(NET, others)]


def wants(class_name: str, count: int = 1, part: str = "") -> RequestSlot:
    amounts = (("some", parse_quantity(part)),) if part else ()
    asked = DeviceRequest(
        name=class_name, class_name=ClassName(class_name), mode="ExactCount", count=count, capacity=amounts
    )
    return RequestSlot(name=class_name, exactly=asked)


def chosen(slices: Sequence[ResourceSlice], requests: Sequence[RequestSlot]) -> tuple[Preferring, Solution] | None:
    belief = belief_of(*CLASSES, node("n"), *slices)
    taste = Taste(Document(demand=Demand(others=EXPECTED)), belief.learning.mix_for, Commons(belief.loads))
    snapshot, claims = belief.cluster.snapshot, (asks("c", *requests),)
    question = belief.questions.question(claims, snapshot.classes)
    preferring = taste.preferring(question, taste.policies(claims))
    taste._tenants.commons.look(snapshot)
    found = finished(choosing(snapshot, 0, question, preferring.manner(BEST)))
    return (preferring, found) if isinstance(found, Solution) else None


def every(solution: Solution) -> Iterator[Solution]:
    """Yield all that could be had: of what is shared there is enough for all that is asked for here."""
    situation = solution.situation
    options = [
        [tuple(Pick(at, place) for place in some) for some in combinations(places_of(found.free), ask.count)]
        for (at, ask), found in zip(situation.asks.items(), situation.eligible.values(), strict=True)
    ]
    for parts in product(*options):
        picks = tuple(pick for part in parts for pick in part)
        taken = Counter(pick.place for pick in picks if not situation.is_shareable(pick.place))
        candidates = [situation.board.candidates[place] for place in taken]
        balances = (
            balance_of(pool, (one.device for one in candidates if one.pool == index))
            for index, pool in enumerate(situation.board.pools)
        )
        if max(taken.values(), default=1) == 1 and all(min(b.left.values(), default=0) >= 0 for b in balances):
            yield Solution(situation, picks)


@pytest.mark.parametrize(
    ("gpus", "nics", "requests"),
    [
        pytest.param(["plain"], SHARED, [wants("gpu"), wants("nic", part="25")], id="a GPU, a share of a NIC"),
        pytest.param(["plain", "cut"], SHARED, [wants("gpu", 2), wants("nic", part="25")], id="two, one share"),
        pytest.param(["plain", "cut"], PLAIN, [wants("gpu", 2), wants("nic", 2)], id="GPUs that can be cut, NICs"),
        pytest.param(["cut"], PLAIN, [wants("part"), wants("nic")], id="a part, a NIC"),
        pytest.param(["cut"], PLAIN, [wants("part", 2), wants("nic", 2)], id="two parts, two NICs"),
        pytest.param(["cut"], SHARED, [wants("part", 2), wants("nic", part="25")], id="two parts, a share"),
        pytest.param(["shared"], SHARED, [wants("gpu", part="25"), wants("nic", part="25")], id="shares of both"),
    ],
)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_nothing_that_could_be_had_is_worth_more(
    gpus: list[str], nics: Traits, requests: list[RequestSlot], data: st.DataObject
) -> None:
    found = chosen(data.draw(nodes(gpus, nics)), requests)
    if found:
        preferring, solution = found
        best = max(preferring.appraise(one).value for one in every(solution))
        assert preferring.appraise(solution).value >= best - TRIFLE
