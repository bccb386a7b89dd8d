"""One claim written, reserved or taken back: what each answer means for its hold, before anything else is done."""

from collections.abc import Generator
from dataclasses import replace
from typing import TypeVar

import pytest

from extender.allocation.usage import WHOLE, Hold
from extender.model.change import Changed
from extender.model.claim import ResourceClaim
from extender.model.names import Uid
from extender.scheduling.claiming import ATTEMPTS, SHARED_ATTEMPTS, NotHad, Written, allocate, release, reserve
from extender.scheduling.steps import Done, Later, Outcome, Pause, Refusal, Refused, Step, Unknown
from extender.state.belief import Belief
from extender.state.ledger import ClaimHold, Phase, Promise
from tests.scheduling.cast import belief_of, claim, consumer, device, given, gpus, held, node, pod
from tests.scheduling.server import CONFLICT, NOT_FOUND
from tests.scheduling.stage import N1

R = TypeVar("R")
POD, CLAIM = pod("p", "a"), claim("a", version=5)
OTHERS = Done(replace(CLAIM, uid=Uid("another"), resource_version="6"))
GOING = replace(CLAIM, is_deleting=True, resource_version="6")


def reserving(item: ResourceClaim = CLAIM) -> Belief:
    """Return what is believed when *item* is about to be written."""
    belief = belief_of(node("n1"), gpus("n1", 1), POD, item)
    hold = ClaimHold(item.uid, (Hold(device("n1", 0), WHOLE),), version=int(item.resource_version))
    assert belief.ledger.reserve(Promise(POD.uid, N1, (hold,)))
    return belief


def phases(belief: Belief) -> list[Phase]:
    return [hold.phase for promise in belief.ledger for hold in promise.claims]


def ended(work: Generator[Step, Outcome, R], *answers: Outcome) -> R:
    """Answer each step of *work* in turn; pauses are granted."""
    left = list(answers)
    try:
        step = next(work)
        while True:
            step = work.send(Done() if isinstance(step, Pause) else left.pop(0))
    except StopIteration as end:
        assert left == []
        result: R = end.value
        return result


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param((Refused(Refusal.FORBIDDEN),), id="forbidden"),
        pytest.param((Refused(Refusal.INVALID),), id="invalid"),
        pytest.param((NOT_FOUND,), id="not found"),
        pytest.param((Refused(Refusal.UNSENT),), id="unsent"),
        pytest.param((CONFLICT, Done(CLAIM)) * ATTEMPTS, id="it kept changing"),
        pytest.param((Later(1.0),) * ATTEMPTS, id="busy for too long"),
        pytest.param((CONFLICT, NOT_FOUND), id="gone"),
        pytest.param((CONFLICT, OTHERS), id="another of its name"),
        pytest.param((CONFLICT, Done(GOING)), id="going"),
        pytest.param((CONFLICT, Unknown()), id="not to be read"),
        pytest.param((Unknown(), NOT_FOUND), id="unheard, and gone"),
        pytest.param((Unknown(), OTHERS), id="unheard, and another of its name"),
        pytest.param((Unknown(), Done(GOING)), id="unheard, and going"),
    ],
)
def test_what_cannot_be_written_any_more_is_held_no_longer_whatever_is_taken_back_then(
    answers: tuple[Outcome, ...],
) -> None:
    belief = reserving()
    assert isinstance(ended(allocate(CLAIM, given(device("n1", 0)), POD, belief), *answers), NotHad)
    assert phases(belief) == []


def test_a_write_is_based_on_the_claim_as_it_was_read_last() -> None:
    bare = replace(CLAIM, finalizers=())
    belief, kept = reserving(bare), replace(CLAIM, resource_version="6")
    answers = Done(kept), Unknown(), Unknown()
    assert isinstance(ended(allocate(bare, given(device("n1", 0)), POD, belief), *answers), NotHad)
    belief.apply(Changed(kept))
    assert phases(belief) == [Phase.UNKNOWN]
    belief.apply(Changed(replace(kept, resource_version="7")))
    assert phases(belief) == []


HAD = replace(held(CLAIM, device("n1", 0)), reserved_for=(consumer(POD),))


@pytest.mark.parametrize("change", [{"is_deleting": True}, {"reserved_for": ()}, {"allocation": None}])
@pytest.mark.parametrize("sent", [None, Refused(Refusal.IN_VAIN), CONFLICT, Unknown()])
def test_what_is_taken_from_a_pod_that_had_it_is_not_had(sent: Outcome | None, change: dict[str, object]) -> None:
    changed = Done(replace(HAD, **change))  # type: ignore[arg-type]  # of a claim
    is_free = change == {"reserved_for": ()} and sent is not None
    answers = () if sent is None else (sent,)
    # One that is only no longer reserved for it is had again, unless somebody takes that away, too.
    found = ended(reserve(HAD, POD), *answers, changed, *((Refused(Refusal.INVALID),) if is_free else ()))
    assert isinstance(found, NotHad)


def test_what_cannot_be_touched_is_had_as_it_is() -> None:
    assert ended(reserve(HAD, POD), Refused(Refusal.IN_VAIN), Done(HAD)) == Written(HAD, is_ours=False, is_had=True)


@pytest.mark.parametrize("item", [HAD, held(CLAIM, device("n1", 0), by=pod("q"))], ids=["touched", "reserved"])
def test_who_hears_nothing_tries_less_often_than_who_comes_after_others(item: ResourceClaim) -> None:
    # An answer is waited for as long each time, and a touch is sent after the deadline of its bind, too.
    unheard: tuple[Outcome, ...] = (Unknown("no answer"), Done(item)) * ATTEMPTS
    assert ended(reserve(item, POD), *unheard) == NotHad("claim a: no answer")
    changed: tuple[Outcome, ...] = (CONFLICT, Done(item)) * (SHARED_ATTEMPTS - ATTEMPTS)
    assert ended(reserve(item, POD), *changed, *unheard) == NotHad("claim a: no answer")


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param((NOT_FOUND,), id="gone"),
        pytest.param((CONFLICT, NOT_FOUND), id="gone meanwhile"),
        pytest.param((CONFLICT, OTHERS), id="another of its name"),
        pytest.param((Unknown(), Done(replace(CLAIM, resource_version="6"))), id="taken back unheard"),
        pytest.param(
            (CONFLICT, Done(replace(held(CLAIM, device("n1", 1)), resource_version="6"))), id="somebody else's by now"
        ),
    ],
)
def test_what_a_pod_has_no_more_is_not_taken_back(answers: tuple[Outcome, ...]) -> None:
    assert ended(release(HAD, POD, is_ours=True), *answers)
