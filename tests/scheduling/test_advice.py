"""An advisor filters and scores for kube-scheduler's own plugin: it promises nothing, and rejects no pod."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress

import pytest

from extender.allocation.solve import FIRST, Manner
from extender.model.change import Changed
from extender.model.claim import ResourceClaim
from extender.model.device import Attribute, Device, ResourceSlice
from extender.model.names import DeviceName
from extender.model.node import Pod
from extender.scheduling import survey
from extender.scheduling.advice import Advice, Advisor
from extender.scheduling.commons import Commons
from extender.scheduling.judging import SEARCHES
from extender.scheduling.planner import Plain
from extender.scheduling.taste import Taste
from extender.state.belief import Belief
from extender.topology.document import Document
from tests.scheduling.cast import consumer, names, pod
from tests.scheduling.machines import NUMA, fleet, gpu, wanted
from tests.scheduling.mixed import NET, NIC, asks, cluster, published, some
from tests.topology.configured import configured

DGX = "dgx-1v"
POD = pod("p", "c")
EVERY = names("a", "b", "c")


def believing(*claims: ResourceClaim) -> Belief:
    """Return three machines of one kind; what is taken of b and c makes the first fit there a better one than on a."""
    belief = fleet(dict.fromkeys("abc", DGX), {"b": (1, 2), "c": (1, 2, 3)})
    for item in claims or (wanted("c", 2),):
        belief.apply(Changed(item))
    return belief


def advisor(belief: Belief, manner: Manner = FIRST, *, scores: bool = True) -> Advisor:
    taste = Taste(Document(), belief.learning.mix_for, Commons(belief.loads)) if scores else None
    return Advisor(belief, lambda: "share", manner, taste)


def advice(belief: Belief, *asked: str) -> Advice:
    found = advisor(belief).advise(POD, names(*asked))
    assert isinstance(found, Advice)
    return found


def passing(found: Advice, *asked: str) -> list[str]:
    return list(compress(asked, found.passes))


def given(found: Advice) -> list[str]:
    assert found.placement is not None
    return [item.device.device for _, allocation in found.placement.claims for item in allocation.devices]


def test_nodes_are_scored_by_what_the_first_fit_would_give_there() -> None:
    found = advice(believing(), *EVERY)
    assert found.scores == {"b": 10, "c": 9, "a": 8}
    # Not by what could be had: on node a there are better pairs than the first.
    assert given(found) == ["gpu-0", "gpu-3"]
    assert [item.node for item in found.best] == ["b", "c"]
    assert "links 25+25 GB/s of best 50" in found.best[0].words


def test_nothing_is_promised() -> None:
    belief = believing()
    advice(belief, *EVERY)
    assert list(belief.ledger) == []
    assert belief.seen_by() is belief.cluster.snapshot


def test_nodes_without_the_devices_are_left_out_as_long_as_others_remain() -> None:
    found = advice(believing(wanted("c", 6)), *EVERY)
    assert passing(found, *EVERY) == ["a", "b"]
    assert [tally.example for tally in found.rejected] == ["c"]


def test_where_no_node_would_do_all_pass_for_the_plugin_knows_better() -> None:
    assert isinstance(advisor(believing(wanted("c", 9))).advise(POD, names(*EVERY)), Plain)


def test_a_node_that_is_not_known_yet_passes_without_a_score() -> None:
    found = advice(believing(wanted("c", 6)), "a", "new", "c")
    assert passing(found, "a", "new", "c") == ["a", "new"]
    assert found.scores == {"a": 10}


def test_a_claim_that_is_allocated_leaves_the_nodes_where_it_can_be_used() -> None:
    held = replace(wanted("c", 1), reserved_for=(consumer(POD),))
    belief = believing(held)
    allocated = next(item for item in belief.cluster.claims if item.key.name == "held-b")
    assert allocated.allocation is not None
    belief.apply(Changed(replace(held, resource_version="2", allocation=replace(allocated.allocation, devices=()))))
    found = advice(belief, *EVERY)
    assert (passing(found, *EVERY), dict(found.scores)) == (["b"], {})


@pytest.mark.parametrize(
    "asking",
    [pod("p"), pod("p", "missing"), replace(POD, scheduler="theirs"), replace(POD, scheduling_group="gang")],
    ids=["no-claims", "claim-not-shown-yet", "another-scheduler", "gang"],
)
def test_what_is_not_our_concern_passes_everywhere(asking: Pod) -> None:
    assert isinstance(advisor(believing()).advise(asking, names(*EVERY)), Plain)


def test_a_question_that_makes_no_sense_to_us_is_left_to_the_plugin() -> None:
    strange = replace(wanted("c", 1), spec=replace(wanted("c", 1).spec, unknown_fields=("news",)))
    assert isinstance(advisor(believing(strange)).advise(POD, names(*EVERY)), Plain)


def test_while_a_question_takes_too_long_to_answer_all_nodes_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    belief = believing(wanted("c", 6))
    monkeypatch.setattr(survey, "AT_ONCE", 0)
    assert isinstance(advisor(belief).advise(POD, names(*EVERY)), Plain)
    for fitter in belief.questions.late():
        fitter.fit(belief.cluster.snapshot)
    assert passing(advice(belief, *EVERY), *EVERY) == ["a", "b"]


def test_without_a_placement_document_nodes_are_filtered_only() -> None:
    found = advisor(believing(wanted("c", 6)), scores=False).advise(POD, names(*EVERY))
    assert isinstance(found, Advice)
    assert (passing(found, *EVERY), dict(found.scores), found.placement) == (["a", "b"], {}, None)


def test_nodes_beyond_what_may_be_searched_for_one_pod_pass_and_are_scored_next_time() -> None:
    machines = {f"n{number:03}": DGX for number in range(SEARCHES + 10)}
    taken = {name: tuple(index for index in range(7) if number >> index & 1) for number, name in enumerate(machines)}
    belief = fleet(machines, taken)
    belief.apply(Changed(wanted("c", 1)))
    advising, asked = advisor(belief), names(*machines)
    first, second = (advising.advise(POD, asked) for _ in range(2))
    assert isinstance(first, Advice)
    assert isinstance(second, Advice)
    assert first.passes.sum() == second.passes.sum() == len(machines)
    assert len(first.scores) == SEARCHES
    assert len(second.scores) == len(machines)


def test_what_changes_is_looked_at_anew() -> None:
    belief = believing()
    advising = advisor(belief)
    assert isinstance(advising.advise(POD, names(*EVERY)), Advice)
    belief.apply(Changed(replace(wanted("d", 1), allocation=None)))
    taken = next(item for item in belief.cluster.claims if item.key.name == "held-b").allocation
    assert taken is not None
    device = replace(taken.devices[0], device=gpu("b", 3))
    belief.apply(Changed(replace(wanted("d", 1), allocation=replace(taken, devices=(device,)))))
    found = advising.advise(POD, names(*EVERY))
    assert isinstance(found, Advice)
    assert given(found) == ["gpu-0", "gpu-4"]


def cards(zones: Sequence[int]) -> ResourceSlice:
    """Return cards that every node reaches, of given NUMA nodes."""
    found = (Device(DeviceName(f"d{index}"), ((NUMA, Attribute("int", zone)),)) for index, zone in enumerate(zones))
    return replace(published("fabric", NET, 0, is_everywhere=True), devices=tuple(found))


def test_what_a_shared_pool_is_published_with_anew_is_looked_at_anew() -> None:
    # No selector reads where the cards are; the first two are the best ones, or are not.
    far, near = (0, 1, 0), (0, 0, 1)
    belief = cluster(cards(far), nodes="ab")
    belief.apply(Changed(asks("c", some(2, NIC))))
    advising, values = advisor(belief), list[int]()
    for generation, zones in enumerate((far, near, far), 1):
        belief.apply(Changed(replace(cards(zones), generation=generation)))
        found = advising.advise(POD, names("a", "b"))
        assert isinstance(found, Advice)
        values.append(found.best[0].value)
    assert values[0] == values[2] < values[1]


def test_what_was_found_out_by_another_placement_document_is_not_told_any_more() -> None:
    belief = believing()
    advising = advisor(belief)
    known = advising.advise(POD, names("a"))
    apart = configured({"deviceTopology": [{"match": {}, "products": [{"product": "V100", "count": 8, "flat": 1}]}]})
    advising.taste = Taste(Document(configuration=apart), belief.learning.mix_for, Commons(belief.loads))
    anew = advising.advise(POD, names("a"))
    assert isinstance(known, Advice)
    assert isinstance(anew, Advice)
    assert known.best[0].words != anew.best[0].words
