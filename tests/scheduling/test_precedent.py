"""What was found out before is used again, and never makes a difference to what is chosen."""

from dataclasses import replace
from itertools import combinations
from operator import itemgetter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from extender.allocation.choose import choosing
from extender.allocation.features import Features
from extender.allocation.question import Question
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import Answer, Manner
from extender.allocation.work import Work
from extender.model.change import Change, Changed
from extender.model.claim import DeviceConfig
from extender.model.device import Attribute, ResourceSlice
from extender.model.names import DeviceName, ObjectKey, Uid
from extender.scheduling.choosing import Chooser
from extender.scheduling.commons import Commons
from extender.scheduling.needs import Needs
from extender.scheduling.placement import Placement
from extender.scheduling.planner import Offer, Plan, Planner, Rejection
from extender.scheduling.survey import survey
from extender.scheduling.taste import Taste
from extender.state.belief import Belief
from extender.topology.document import Document
from tests.allocation.fleets import CLASSES as FLEET_CLASSES
from tests.allocation.fleets import Fleet
from tests.scheduling.cast import OURS, pod, surveyed
from tests.scheduling.machines import GPU_CLASS, NVIDIA
from tests.scheduling.mixed import NIC, asks, cluster, gpus, nics, published, some
from tests.scheduling.story import NAMES, Story, forgotten, fresh_taste
from tests.topology.configured import configured


def fresh_planner(belief: Belief) -> Planner:
    return Planner(belief, Chooser(belief, lambda: "share", taste=fresh_taste(belief)))


@given(st.integers(0, 1 << 30))
@example(4946)
@settings(max_examples=30)
def test_devices_are_those_that_would_be_chosen_without_memory(seed: int) -> None:
    fleet, belief = Fleet(seed), Belief((OURS,), Features())
    for change in (*map(Changed, FLEET_CLASSES.values()), *fleet.changes()):
        belief.apply(change)
    commons, claims = Commons(belief.loads), [fleet.claim(0), fleet.claim(1)]
    chooser = Chooser(belief, lambda: "share", taste=fresh_taste(belief, commons))
    for number in range(4):
        subject = pod(f"p{number}")
        named = (replace(item, key=ObjectKey("ns", f"p{number}{item.key.name}")) for item in claims)
        needs = Needs(subject, pending=tuple(replace(item, uid=Uid(item.key.name)) for item in named))
        survey(needs, belief.seen_by(subject.uid), belief.questions, chooser.taste)
        names = belief.cluster.snapshot.layout.nodes
        told = [chooser.place(needs, name) for name in names]
        with forgotten(belief, chooser, commons):
            assert [chooser.place(needs, name) for name in names] == told
        belief.apply(fleet.change())


def described(plan: Plan) -> object:
    """Tell all of a plan; reasons that are as frequent come in the order in which they were met first."""
    if isinstance(plan, Rejection):
        return plan.word, plan.elsewhere, plan.is_hopeless, sorted(plan.rejected)
    if not isinstance(plan, Offer):
        return plan
    return plan.nodes, plan.scores, plan.placement, plan.best, plan.fitting, sorted(plan.rejected)


@given(st.integers(0, 1 << 30))
@settings(max_examples=60)
def test_plans_are_those_that_would_be_made_without_memory(seed: int) -> None:
    follow(seed)


@pytest.mark.parametrize("seed", range(8))
def test_what_there_is_no_room_for_is_worked_out_again(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr("extender.allocation.likeness.NODES", 2)
    follow(seed)


def follow(seed: int) -> None:
    """Tell a story to one who remembers and to one who does not: they plan alike."""
    story = Story(seed)
    belief, bare = story.begin(), Story(seed).begin()
    planner, other = fresh_planner(belief), fresh_planner(bare)
    for number in range(12):
        made, subject, names = story.claim(), pod(f"p{number}", f"c{number}"), story.names()
        changes: list[Change] = [Changed(replace(made, key=ObjectKey("ns", f"c{number}"))), Changed(subject)]
        for known in (belief, bare):
            for change in changes:
                known.apply(change)
        plan = planner.plan(subject, names, 0.0)
        with forgotten(bare, other.chooser):
            assert described(other.plan(subject, names, 0.0)) == described(plan)
        changes = [*(story.showing(subject, plan.placement) if isinstance(plan, Offer) else ()), *story.aside()]
        for known in (belief, bare):
            for change in changes:
                known.apply(change)


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_nodes_in_one_state_are_searched_once(monkeypatch: pytest.MonkeyPatch, devices: int) -> None:
    searched: list[int] = []

    def counted(snapshot: Snapshot, number: int, asked: Question, manner: Manner) -> Work[Answer]:
        searched.append(number)
        return choosing(snapshot, number, asked, manner)

    monkeypatch.setattr("extender.scheduling.choosing.choosing", counted)
    belief = cluster(*(gpus(name, 4) for name in NAMES), nodes=NAMES)
    planner = fresh_planner(belief)
    for number, name in enumerate(NAMES):
        belief.apply(Changed(asks(f"c{number}", some(devices))))
        plan = planner.plan(pod(f"p{number}", f"c{number}"), [name], 0.0)
        assert isinstance(plan, Offer)
        ((held, allocation),) = plan.placement.claims
        assert held.key.name == f"c{number}"
        assert {str(item.device.pool) for item in allocation.devices} == {str(name)}
    assert len(searched) == 1


def test_a_node_that_was_looked_at_closely_is_not_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.scheduling.choosing.choosing", None)
    belief = cluster(gpus("n0", 4), nics("n0", 4), nodes=NAMES[:1])
    belief.apply(Changed(asks("c", some(2), some(1, NIC, "nic"))))
    planner = fresh_planner(belief)
    plan = planner.plan(pod("p", "c"), None, 0.0)
    assert isinstance(plan, Offer)
    assert plan.placement.appraisal is not None
    assert plan.placement.appraisal.basis.policies == ("protect",)
    with forgotten(belief, planner.chooser), monkeypatch.context() as undone:
        undone.setattr("extender.scheduling.choosing.choosing", choosing)
        assert planner.chooser.place(surveyed(plan).needs, NAMES[0], belief.seen_by(pod("p").uid)) == plan.placement


def test_what_is_shared_with_other_nodes_is_searched_each_time() -> None:
    belief = cluster(*(gpus(name, 2, is_everywhere=True) for name in NAMES[:1]), nodes=NAMES)
    planner = fresh_planner(belief)
    for number, name in enumerate(NAMES[:3]):
        belief.apply(Changed(asks(f"c{number}", some(1))))
        plan = planner.plan(pod(f"p{number}", f"c{number}"), [name], 0.0)
        assert isinstance(plan, Offer) == (number < 2)


def test_classes_are_written_down_as_they_are_now() -> None:
    belief = cluster(*(gpus(name, 2) for name in NAMES), nodes=NAMES)
    planner, told = fresh_planner(belief), []
    for number, said in enumerate("aab"):
        belief.apply(Changed(replace(GPU_CLASS, config=(DeviceConfig(opaque={"said": said}),))))
        belief.apply(Changed(asks(f"c{number}", some(1))))
        plan = planner.plan(pod(f"p{number}", f"c{number}"), [NAMES[number]], 0.0)
        assert isinstance(plan, Offer)
        assert isinstance(plan.placement, Placement)
        told += [entry.opaque for _, allocation in plan.placement.claims for entry in allocation.config]
    assert told == [{"said": "a"}, {"said": "a"}, {"said": "b"}]


PEERS = "example.com/peers"


def paired(*names: str) -> ResourceSlice:
    """Publish four GPUs by these *names*, of which the first is linked to d1 and the third to d3."""
    cards, linked = published("n0", NVIDIA, 4), {0: "d1", 2: "d3"}
    devices = (
        replace(
            item,
            name=DeviceName(name),
            attributes=tuple(sorted((*item.attributes, *_linked_to(linked.get(index))), key=itemgetter(0))),
        )
        for index, (item, name) in enumerate(zip(cards.devices, names, strict=True))
    )
    return replace(cards, devices=tuple(devices))


def _linked_to(peer: str | None) -> tuple[tuple[str, Attribute], ...]:
    return ((PEERS, Attribute("strings", (peer,))),) if peer else ()


def test_links_go_by_the_names_that_devices_have_now() -> None:
    belief = cluster(paired("d0", "d1", "d2", "d3"), nodes=NAMES[:1])
    linked = configured({"deviceTopology": [{"match": {}, "peers": {"attribute": PEERS, "linkWeight": 25}}]})
    taste = Taste(Document(configuration=linked), belief.learning.mix_for)
    assert linked_in(taste, belief) == {(0, 1), (2, 3)}
    belief.apply(Changed(paired("d0", "d2", "d1", "d3")))
    assert linked_in(taste, belief) == {(0, 2), (2, 3)}


def linked_in(taste: Taste, belief: Belief) -> set[tuple[int, ...]]:
    """Return the pairs of devices that are linked, by their places on the only node."""
    ((group,),) = (taste.atlas.machines[number] for number in taste.atlas.numbers(belief.cluster.snapshot).tolist())
    pairs = combinations(range(len(group.indices)), 2)
    return {tuple(sorted(group.indices[index] for index in pair)) for pair in pairs if group.links.links[pair]}
