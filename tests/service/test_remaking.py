"""A pod whose claim is gone is touched, soon and then ever more rarely, until there is another."""

import itertools
from dataclasses import replace

from extender.kube.outcome import Done, Outcome, Unknown
from extender.model.change import Changed, Gone
from extender.model.claim import ResourceClaim
from extender.model.names import ObjectKey
from extender.model.node import Pod, PodClaim, PodClaimStatus
from extender.service.remaking import LOOK_S, PATIENCE_S, REMADE_WITHIN_S, TOUCHED_AT_ONCE, Remaking
from extender.state.belief import Belief
from extender.telemetry.metrics import Metrics
from tests.scheduling.cast import belief_of, claim, pod


class Touches:
    """Stands in for writes, and for a clock: remembers who was touched when."""

    def __init__(self, belief: Belief) -> None:
        self.now = 0.0
        self.outcome: Outcome = Done({})
        self.told: list[tuple[float, str]] = []
        self.work = Remaking(belief, self, Metrics())  # type: ignore[arg-type]  # only annotations are asked for

    async def annotate_pod(self, pod: Pod, annotation: str, value: str) -> Outcome:
        del annotation, value
        self.told.append((self.now, pod.key.name))
        return self.outcome

    async def until(self, seconds: float) -> list[tuple[float, str]]:
        while self.now < seconds:
            self.now += LOOK_S
            await self.work.round(lambda: self.now)
        return self.told


def made(name: str, claim_name: str) -> Pod:
    entry = PodClaim(name="gpu", template_name="t")
    return replace(pod(name), claims=(entry,), claim_statuses=(PodClaimStatus(name="gpu", claim_name=claim_name),))


async def test_a_pod_whose_made_claim_is_gone_is_touched_until_there_is_another() -> None:
    belief = belief_of(made("p", "c"), claim("c"), pod("q", "named"))
    here = Touches(belief)
    assert await here.until(200.0) == []
    belief.apply(Gone(ResourceClaim, ObjectKey("ns", "c")))
    # It is seen at the next look.
    assert await here.until(200.0 + REMADE_WITHIN_S) == []
    assert [name for _, name in await here.until(200.0 + REMADE_WITHIN_S + LOOK_S)] == ["p"]
    belief.apply(Changed(claim("c")))
    assert len(await here.until(900.0)) == 1


async def test_who_is_touched_in_vain_is_touched_ever_more_rarely_up_to_a_limit() -> None:
    here = Touches(belief_of(made("p", "c")))
    times = [at for at, _ in await here.until(20 * PATIENCE_S)]
    spans = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert spans == sorted(spans)
    assert (spans[0], spans[-1]) == (2 * REMADE_WITHIN_S, PATIENCE_S)


async def test_of_very_many_only_some_are_touched_at_once_and_all_in_the_end() -> None:
    names = [f"p{number}" for number in range(2 * TOUCHED_AT_ONCE + 1)]
    here = Touches(belief_of(*(made(name, f"of-{name}") for name in names)))
    told = await here.until(REMADE_WITHIN_S + LOOK_S)
    assert len(told) == TOUCHED_AT_ONCE
    assert {name for _, name in await here.until(REMADE_WITHIN_S + 3 * LOOK_S)} == set(names)


async def test_an_api_server_that_does_not_answer_is_asked_once_in_a_round() -> None:
    here = Touches(belief_of(*(made(f"p{number}", "c") for number in range(3))))
    here.outcome = Unknown("no answer")
    assert len(await here.until(LOOK_S + REMADE_WITHIN_S)) == 1
    here.outcome = Done({})
    await here.until(LOOK_S + 2 * REMADE_WITHIN_S)
    assert {name for _, name in here.told} == {"p0", "p1", "p2"}
