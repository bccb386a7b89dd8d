"""A claim that cannot be read as a whole holds what it was given all the same, and is given nothing more."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from extender.allocation.extended import ANNOTATION
from extender.allocation.features import Features
from extender.allocation.question import Refusal
from extender.allocation.usage import WHOLE, Usage
from extender.model.change import Changed, Gone, Listed, Noun
from extender.model.claim import OwnerReference, ResourceClaim
from extender.model.footprint import Footprint
from extender.model.names import ClassName, ObjectKey
from extender.model.node import Pod
from extender.model.parse import parse_claim
from extender.model.problem import Problem
from extender.model.quantity import parse_quantity
from extender.scheduling.drift import LEFT, findings
from extender.scheduling.needs import Needs, Unplaceable, needs_of
from extender.scheduling.planner import Rejection
from extender.scheduling.remedy import unusable
from extender.scheduling.vocabulary import Word
from extender.scheduling.waking import Waker
from extender.state.belief import Belief
from extender.state.domain import Domain, writer_of
from tests.scheduling.cast import DRIVER, GPU_CLASS, OURS, claim, consumer, device, gpus, names, node, planner_of, pod

Json = dict[str, Any]
ME, KEY, POD = writer_of((OURS,)), claim("c").key, pod("p", "c")
FIELD = "spec.devices.requests[0].firstAvailable[0].capacity.requests[memory]"
VAST = {"name": "vast", "deviceClassName": "gpu", "capacity": {"requests": {"memory": "1e1001"}}}
SPEC = {"devices": {"requests": [{"name": "r", "firstAvailable": [VAST, {"name": "any", "deviceClassName": "gpu"}]}]}}
RESULT = {"request": "r/any", "driver": DRIVER, "pool": "n1", "device": "d0"}
SHARE = RESULT | {"shareID": "11111111-2222-3333-4444-555555555555"}


def raw(*results: Json, by: str = "kube-scheduler", spec: object = SPEC, **status: object) -> Json:
    """Write a claim with an amount that Kubernetes reads and we do not, and what it was given of it."""
    kept = [{"manager": by, "fieldsV1": {"f:status": {"f:allocation": {}}}}]
    metadata = {"name": "c", "namespace": KEY.namespace, "uid": "u", "resourceVersion": "9", "managedFields": kept}
    given = {"allocation": {"devices": {"results": list(results)}}} if results else {}
    return deepcopy({"metadata": metadata, "spec": spec, "status": given | status})


def read(written: Json) -> ResourceClaim:
    found = parse_claim(written)
    assert isinstance(found, ResourceClaim), found
    return found


def believing(*nouns: Noun, domain: Domain | None = None) -> Belief:
    belief = Belief((OURS,), Features(), domain=domain or Domain(writer=ME))
    belief.apply(Listed(ResourceClaim, ()))
    for noun in (GPU_CLASS, node("n1"), gpus("n1", 1), *nouns):
        belief.apply(Changed(noun))
    return belief


def told(belief: Belief) -> list[tuple[str, ObjectKey, str]]:
    return [(problem.kind, problem.key, problem.path) for problem in belief.cluster.problems]


def test_it_has_its_devices_from_the_first_list_on_until_it_is_gone() -> None:
    belief = Belief((OURS,), Features())
    belief.apply(Changed(gpus("n1", 1)))
    belief.apply(Listed(ResourceClaim, (read(raw(RESULT)),)))
    assert belief.cluster.snapshot.usage_at(0) == WHOLE
    belief.apply(Changed(read(raw())))
    assert not belief.cluster.snapshot.usage_at(0).is_held
    belief.apply(Changed(read(raw(RESULT))))
    belief.apply(Gone(ResourceClaim, KEY))
    assert not belief.cluster.snapshot.usage_at(0).is_held


def test_its_shares_are_shares() -> None:
    amounts = {"consumedCapacity": {"memory": "1Gi"}}
    belief = believing(read(raw(SHARE | amounts)))
    assert belief.cluster.snapshot.usage_at(0) == Usage(0, 1, (("memory", parse_quantity("1Gi").nanos),))


@pytest.mark.parametrize("classes", [(), ("gpu",)], ids=["all", "some"])
def test_an_allocation_of_it_by_somebody_else_is_foreign_whatever_class_it_is_of(classes: tuple[str, ...]) -> None:
    belief = believing(read(raw()), domain=Domain(writer=ME, classes=frozenset(classes)))
    (found,) = belief.foreign_in(Changed(read(raw(RESULT))))
    assert (found.devices, found.writers) == ((device("n1", 0),), ("kube-scheduler",))
    assert belief.foreign_in(Changed(read(raw(RESULT, by=ME)))) == ()


@pytest.mark.parametrize("results", [(), (RESULT,)], ids=["without-devices", "with-devices"])
def test_a_pod_that_asks_for_it_is_refused_with_the_field(results: tuple[Json, ...]) -> None:
    belief = believing(read(raw(*results)), POD)
    refused = needs_of(POD, belief)
    assert isinstance(refused, Unplaceable)
    assert refused.word is Word.UNKNOWN_FIELD
    assert refused.detail.startswith(f"claim c cannot be read: {FIELD}: '1e1001' is not a quantity that we accept")


def test_where_it_is_for_extended_resources_it_is_in_the_way_of_another() -> None:
    subject = replace(pod("x", gpus=1), extended_claim="c")
    owner = OwnerReference(kind="Pod", uid=subject.uid)
    made = replace(read(raw(RESULT)), owners=(owner,), annotations=((ANNOTATION, "true"),))
    belief = believing(replace(made, reserved_for=(consumer(subject),)), subject)
    refused = needs_of(subject, belief)
    assert isinstance(refused, Unplaceable)
    assert refused.word is Word.CLAIM_STALE


def test_nothing_is_asked_for_it() -> None:
    belief, nothing = believing(), read(raw(spec={}))
    classes = belief.cluster.snapshot.classes
    assert belief.questions.asked([nothing], classes)
    assert not belief.questions.is_known([read(raw())], classes)
    with pytest.raises(Refusal, match=r"claim c: spec\.devices\.requests\[0\]\.firstAvailable\[0\]"):
        belief.questions.asked([read(raw())], classes)


def test_it_is_among_the_problems_as_long_as_it_cannot_be_read() -> None:
    belief = believing(read(raw(RESULT)), claim("other"))
    before = belief.cluster.snapshot
    assert told(belief) == [("ResourceClaim", KEY, FIELD)]
    belief.apply(Changed(read(raw(RESULT))))
    assert belief.cluster.snapshot is before
    belief.apply(Listed(ResourceClaim, (read(raw(RESULT)),)))
    assert told(belief) == [("ResourceClaim", KEY, FIELD)]
    belief.apply(Changed(read(raw(spec={}))))
    assert told(belief) == []


@pytest.mark.parametrize("is_listed", [False, True], ids=["shown", "listed"])
def test_who_waits_for_it_is_woken_as_soon_as_it_can_be_read(*, is_listed: bool) -> None:
    belief = believing(read(raw()), POD)
    planner = planner_of(belief)
    waker = Waker(belief, planner)
    assert isinstance(planner.plan(POD, names("n1"), 0.0), Rejection)
    waker.put(POD.uid)
    assert [any(waker.round(now)) for now in (0.0, 1.0)] == [False, False]
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    whole = read(raw(spec={"devices": {"requests": [{"name": "r", "exactly": exactly}]}}))
    belief.apply(Listed(ResourceClaim, (whole,)) if is_listed else Changed(whole))
    assert [wake.node for wake in waker.round(2.0) if wake] == ["n1"]


def test_devices_that_it_was_given_for_pods_that_are_gone_are_a_leak() -> None:
    users = [{"resource": "pods", "name": user.name, "uid": user.uid} for user in [consumer(POD)]]
    belief = believing(read(raw(RESULT, reservedFor=users)), POD)
    belief.apply(Listed(Footprint, ()))
    assert list(findings(belief)) == []
    belief.apply(Gone(Pod, POD.key))
    assert [(found.claim, found.detail) for found in findings(belief)] == [(KEY, LEFT)]


def test_where_the_allocation_makes_no_sense_its_devices_are_taken_as_a_whole() -> None:
    odd = SHARE | {"consumedCapacity": {"memory": "1e1001"}}
    looked = RESULT | {"device": "d1", "adminAccess": True}
    item = read(raw(odd, looked, spec={}))
    belief = believing(gpus("n1", 2), item, POD)
    assert [belief.cluster.snapshot.usage_at(row) for row in range(2)] == [WHOLE, Usage()]
    refused = needs_of(POD, belief)
    assert isinstance(refused, Unplaceable)
    assert "status.allocation.devices.results[0].consumedCapacity[memory]" in refused.detail


@pytest.mark.parametrize("users", [{}, "p", [1], [{"uid": 1}]], ids=repr)
def test_where_nobody_can_say_who_uses_it_it_has_its_devices_and_nobody_frees_it(users: object) -> None:
    owner = OwnerReference(kind="Pod", uid=POD.uid)
    item = replace(read(raw(RESULT, reservedFor=users, spec={})), owners=(owner,))
    belief = believing(item, POD)
    assert belief.cluster.snapshot.usage_at(0) == WHOLE
    refused = needs_of(POD, belief)
    assert isinstance(refused, Unplaceable)
    assert refused.detail.startswith("claim c cannot be read: status.reservedFor")
    unnaming = replace(POD, claims=())
    assert (unusable(unnaming, belief, 0.0), list(findings(belief))) == ((), [])


@pytest.mark.parametrize(
    "status",
    [{"allocation": []}, {"allocation": {"devices": {"results": [RESULT, {"driver": DRIVER}]}}}],
    ids=["allocation", "device"],
)
def test_where_nobody_can_say_what_it_holds_it_is_a_problem(status: Json) -> None:
    assert isinstance(parse_claim(raw(RESULT) | {"status": status}), Problem)


def test_a_claim_that_can_be_read_has_no_problem() -> None:
    exact = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    item = read(raw(spec={"devices": {"requests": [exact]}}))
    assert item.problem is None
    found = needs_of(POD, believing(item, POD))
    assert isinstance(found, Needs)
    assert found.pending[0].spec.requests[0].exactly is not None
    assert found.pending[0].spec.requests[0].exactly.class_name == ClassName("gpu")
