"""What an advisor has found of nodes is used again, and never makes a difference to what it says."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.allocation.fit import Fitter
from extender.model.change import Change, Changed, Gone
from extender.model.device import Attribute, ResourceSlice, Traits
from extender.model.names import DeviceKey, DeviceName, ObjectKey, PoolName
from extender.model.node import Node
from extender.scheduling import findings, judging
from extender.scheduling.advice import Advice, Advisor
from extender.scheduling.commons import Commons
from extender.scheduling.findings import Findings
from extender.scheduling.plans import Plain
from extender.scheduling.precedent import Cases
from extender.scheduling.taste import Taste
from extender.state.belief import Belief
from extender.state.table import Numbers
from extender.topology.document import Document
from extender.topology.shared import Beside
from tests.scheduling.cast import held, node, pod
from tests.scheduling.machines import NVIDIA
from tests.scheduling.mixed import NET, asks, cluster, gpus, published, some, with_uuids
from tests.scheduling.story import NAMES, Story, crossed, forgotten, fresh_taste
from tests.topology.configured import configured

SHARED = 0.15
PEERS = "example.com/nvlinkPeers"


def fresh_advisor(belief: Belief) -> Advisor:
    return Advisor(belief, lambda: "share", taste=fresh_taste(belief))


def advice_of(advising: Advisor) -> Advice:
    found = advising.advise(pod("p", "c"), NAMES)
    assert isinstance(found, Advice)
    return found


def described(advice: Plain | Advice) -> object:
    if isinstance(advice, Plain):
        return advice
    told = advice.passes.tolist(), dict(advice.scores), advice.placement, advice.best
    return *told, sorted(advice.rejected)


def shared(random: Random) -> Iterator[Change]:
    """Yield what all nodes see beside their own: cards by network, other ones each time."""
    if random.random() < SHARED:
        cards = published("fabric", NET, random.choice((2, 4)), is_everywhere=True)
        yield Changed(crossed(cards) if random.random() < 0.5 else cards)


@given(st.integers(0, 1 << 30))
@settings(max_examples=60)
def test_advice_is_what_would_be_said_without_memory(seed: int) -> None:
    follow(seed)


@pytest.mark.parametrize("seed", range(8))
def test_what_there_is_no_room_for_is_judged_again(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(findings, "SPARE", -2 * len(NAMES))
    follow(seed)


def follow(seed: int) -> None:
    """Tell a story to an advisor who remembers and to one who does not: they say the same."""
    story, random = Story(seed), Random(seed)  # noqa: S311 - no secret depends on it
    belief, bare = story.begin(), Story(seed).begin()
    advising, other = fresh_advisor(belief), fresh_advisor(bare)
    for number in range(12):
        made, subject = story.claim(), pod(f"p{number}", f"c{number}")
        asked = story.names() or list(NAMES)
        for known in (belief, bare):
            known.apply(Changed(replace(made, key=ObjectKey("ns", f"c{number}"))))
            known.apply(Changed(subject))
        advice = advising.advise(subject, asked)
        with forgotten(bare, other):
            assert described(other.advise(subject, asked)) == described(advice)
        placement = advice.placement if isinstance(advice, Advice) else None
        changes = [*(story.showing(subject, placement) if placement else ()), *story.aside(), *shared(random)]
        for known in (belief, bare):
            for change in changes:
                known.apply(change)


def test_where_a_node_has_changed_and_nobody_has_looked_it_has_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    belief = cluster(*(gpus(name, 4) for name in NAMES), nodes=NAMES)
    belief.apply(Changed(asks("c", some(1))))
    advising = fresh_advisor(belief)
    assert len(advice_of(advising).scores) == len(NAMES)
    monkeypatch.setattr(judging, "SEARCHES", 0)
    for name in NAMES[:2]:
        taken = DeviceKey(NVIDIA, PoolName(name), DeviceName("d0"))
        belief.apply(Changed(held(asks(f"held-{name}", some(1)), taken)))
    assert sorted(advice_of(advising).scores) == list(NAMES[2:])


def test_what_was_found_of_shares_for_one_pod_is_not_told_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a pod needs beside shares of devices, and what is free there, is another each time."""
    traits = Traits(allow_multiple_allocations=True)
    belief = cluster(*(gpus(name, 2, traits=traits) for name in NAMES), nodes=NAMES)
    belief.apply(Changed(asks("c", some(1))))
    advising = fresh_advisor(belief)
    assert len(advice_of(advising).scores) == len(NAMES)
    assert advising.taste is not None
    advising.taste.advised = Cases()
    monkeypatch.setattr(judging, "SEARCHES", 0)
    assert len(advice_of(advising).scores) == 0


def test_who_asks_the_same_by_another_policy_takes_nothing_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    belief = cluster(*(gpus(name, 4) for name in NAMES), nodes=NAMES)
    for policy in ("pack", "spread"):
        belief.apply(Changed(asks(policy, some(1), policy=policy)))
    advising = fresh_advisor(belief)
    for policy in ("pack", "spread"):
        assert isinstance(advising.advise(pod(policy, policy), NAMES), Advice)
    looked, told_apart = list[int](), judging._told_apart

    def looking(found: Findings, fitter: Fitter, needed: Beside, nodes: Numbers) -> object:
        looked.extend(nodes.tolist())
        return told_apart(found, fitter, needed, nodes)

    monkeypatch.setattr(judging, "_told_apart", looking)
    for policy in ("pack", "spread"):
        advice = advising.advise(pod(policy, policy), NAMES)
        assert isinstance(advice, Advice)
        assert len(advice.scores) == len(NAMES)
    assert looked == []
    belief.apply(Gone(Node, ObjectKey("", NAMES[0])))
    assert isinstance(advising.advise(pod("pack", "pack"), NAMES), Advice)
    ((_, by_basis),) = advising.judge._findings.items()
    # What is large is not kept for those who are not asked.
    assert [known.snapshot.layout is belief.cluster.snapshot.layout for known in by_basis.values()] == [True, True]
    assert looked == []


def test_what_was_found_by_another_configuration_is_not_kept() -> None:
    belief = cluster(*(gpus(name, 4) for name in NAMES), nodes=NAMES)
    for policy in ("pack", "spread"):
        belief.apply(Changed(asks(policy, some(1), policy=policy)))
    advising = fresh_advisor(belief)
    assert isinstance(advising.advise(pod("pack", "pack"), NAMES), Advice)
    advising.taste = fresh_taste(belief)
    assert isinstance(advising.advise(pod("spread", "spread"), NAMES), Advice)
    ((_, by_basis),) = advising.judge._findings.items()
    assert [known.taste for known in by_basis.values()] == [advising.taste]


def test_of_a_question_that_fits_nowhere_nothing_is_kept() -> None:
    belief = cluster(gpus("n0", 1), nodes=NAMES[:1])
    belief.apply(Changed(asks("c", some(1))))
    advising = fresh_advisor(belief)
    assert len(advice_of(advising).scores) == len(advising.judge._findings) == 1
    belief.apply(Changed(held(asks("held", some(1)), DeviceKey(NVIDIA, PoolName("n0"), DeviceName("d0")))))
    assert isinstance(advising.advise(pod("p", "c"), NAMES[:1]), Plain)
    assert len(advising.judge._findings) == 0


def linked(names: Sequence[str], *, is_everywhere: bool) -> ResourceSlice:
    """Return cards of which the first one is linked to the one that is called d1, which no column tells."""
    made = published("n0", NVIDIA, len(names), is_everywhere=is_everywhere)
    first, *others = made.devices
    told = replace(first, attributes=(*first.attributes, (PEERS, Attribute("strings", ("d1:4",)))))
    devices = (replace(device, name=DeviceName(name)) for name, device in zip(names, (told, *others), strict=True))
    return replace(made, devices=tuple(devices))


@pytest.mark.parametrize("is_everywhere", [False, True], ids=["local", "shared"])
def test_devices_that_are_called_otherwise_are_judged_again(*, is_everywhere: bool) -> None:
    belief = cluster(linked(("d0", "d1", "d2"), is_everywhere=is_everywhere), nodes=NAMES[:2])
    belief.apply(Changed(asks("c", some(2))))
    peers = configured({"deviceTopology": [{"match": {}, "peers": {"attribute": PEERS, "linkWeight": 25}}]})
    taste = Taste(Document(configuration=peers), belief.learning.mix_for, Commons(belief.loads))
    advising, values = Advisor(belief, lambda: "share", taste=taste), list[int]()
    for names in (("d0", "d1", "d2"), ("d0", "d2", "d1"), ("d0", "d1", "d2")):
        belief.apply(Changed(linked(names, is_everywhere=is_everywhere)))
        values.append(advice_of(advising).best[0].value)
    assert values[0] == values[2] > values[1]


def test_a_node_that_says_something_else_of_its_links_is_judged_again() -> None:
    belief = cluster(with_uuids(published("n0", NVIDIA, 3)), nodes=NAMES[:1])
    belief.apply(Changed(asks("c", some(2))))
    advising, values = fresh_advisor(belief), list[int]()
    for score in (210, 20):
        links = json.dumps([{"uuid": "d0", "score": {"d1": score}}, {"uuid": "d1", "score": {"d2": 210}}])
        belief.apply(Changed(replace(node(NAMES[0]), annotations=(("hami.io/node-nvidia-score", links),))))
        values.append(advice_of(advising).best[0].value)
    assert values[0] > values[1]
