"""Pods whose claims are gone are touched, ever more rarely, until there are others; claims left unnamed are named."""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import replace
from math import inf

import pytest

from extender.kube.freshness import Freshness
from extender.kube.outcome import RequestOutcome, Succeeded, Unknown
from extender.kube.resource import CLAIMS
from extender.kube.told import Seen
from extender.model.change import Changed, Gone
from extender.model.claim import OwnerReference, ResourceClaim
from extender.model.names import ObjectKey, Uid
from extender.model.node import Pod, PodClaim, PodClaimStatus
from extender.scheduling.remedy import ENTRY
from extender.service.remaking import LOOK_S, PATIENCE_S, REMADE_WITHIN_S, TOUCHED_AT_ONCE, TOUCHED_WITHIN_S, Remaking
from extender.state.belief import Belief
from extender.telemetry.metrics import Metrics
from tests.scheduling.cast import belief_of, claim, pod


class Touches:
    """Stands in for writes, and for a clock: remembers who was touched when."""

    def __init__(self, belief: Belief) -> None:
        self.now = 0.0
        self.outcome: RequestOutcome = Succeeded({})
        self.told: list[tuple[float, str]] = []
        self.named: list[tuple[float, str, dict[str, str | None]]] = []
        self.freshness = Freshness((CLAIMS,))
        self.freshness.note(Seen(CLAIMS, "1", inf))
        self.work = Remaking(belief, self, Metrics(), lambda: self.now, self.freshness)  # type: ignore[arg-type]  # these two alone are asked for

    async def annotate_pod(self, pod: Pod, annotation: str, value: str) -> RequestOutcome:
        del annotation, value
        self.told.append((self.now, pod.key.name))
        return self.outcome

    async def name_claims(self, pod: Pod, statuses: Sequence[PodClaimStatus]) -> RequestOutcome:
        self.named.append((self.now, pod.key.name, {status.name: status.claim_name for status in statuses}))
        return self.outcome

    async def until(self, seconds: float) -> list[tuple[float, str]]:
        while self.now < seconds:
            self.now += LOOK_S
            await self.work.round()
        return self.told


def made(name: str, claim_name: str) -> Pod:
    entry = PodClaim(name="gpu", template_name="t")
    return replace(pod(name), claims=(entry,), claim_statuses=(PodClaimStatus(name="gpu", claim_name=claim_name),))


async def test_pods_are_touched_however_long_it_takes_to_find_them() -> None:
    here = Touches(belief_of(made("p", "gone")))

    async def busy() -> None:
        here.now += REMADE_WITHIN_S + 2 * LOOK_S

    for _ in range(2):
        await asyncio.gather(here.work.round(), busy())
    assert [name for _, name in here.told] == ["p"]


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


@pytest.mark.parametrize("seen", [Seen(CLAIMS, "6", 300.0), Seen(CLAIMS, "7", 0.0)], ids=["in time", "in version"])
async def test_nobody_is_touched_as_long_as_it_may_be_the_watch_of_claims_that_is_behind(seen: Seen) -> None:
    here = Touches(belief_of(replace(made("p", "c"), resource_version="7")))
    here.freshness.note(Seen(CLAIMS, "6", 0.0))
    assert await here.until(300.0) == []
    here.freshness.note(seen)
    assert [name for _, name in await here.until(300.0 + 2 * LOOK_S)] == ["p"]


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


async def test_a_pod_whose_claim_comes_while_another_is_touched_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    belief = belief_of(made("p0", "c0"), made("p1", "c1"))
    here = Touches(belief)
    touch = here.annotate_pod

    async def touched(pod: Pod, annotation: str, value: str) -> RequestOutcome:
        belief.apply(Changed(claim("c1" if pod.key.name == "p0" else "c0")))
        return await touch(pod, annotation, value)

    monkeypatch.setattr(here, "annotate_pod", touched)
    await here.until(LOOK_S + REMADE_WITHIN_S)
    assert len(here.told) == 1


async def test_an_api_server_that_does_not_answer_is_asked_once_in_a_round() -> None:
    here = Touches(belief_of(*(made(f"p{number}", "c") for number in range(3))))
    here.outcome = Unknown("no answer")
    assert len(await here.until(LOOK_S + REMADE_WITHIN_S)) == 1
    here.outcome = Succeeded({})
    await here.until(LOOK_S + 2 * REMADE_WITHIN_S)
    assert {name for _, name in here.told} == {"p0", "p1", "p2"}


async def test_a_namespace_where_touching_takes_long_does_not_hold_up_another(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = [replace(made(f"s{number}", "c"), key=ObjectKey("slow", f"s{number}")) for number in range(3)]
    here = Touches(belief_of(*slow, *(made(f"z{number}", "c") for number in range(3))))
    touch = here.annotate_pod

    async def touched(pod: Pod, annotation: str, value: str) -> RequestOutcome:
        here.now += 2 * TOUCHED_WITHIN_S if pod.key.namespace == "slow" else 0.0
        return await touch(pod, annotation, value)

    monkeypatch.setattr(here, "annotate_pod", touched)
    await here.until(LOOK_S + REMADE_WITHIN_S)
    await here.work.round()
    assert [name for _, name in here.told] == ["s0", "z0", "z1", "z2", "s1"]


async def test_no_more_is_touched_in_a_round_than_time_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Touches(belief_of(*(made(f"p{number}", "c") for number in range(TOUCHED_AT_ONCE))))
    touch = here.annotate_pod

    async def touched(pod: Pod, annotation: str, value: str) -> RequestOutcome:
        here.now += 0.3 * LOOK_S
        return await touch(pod, annotation, value)

    monkeypatch.setattr(here, "annotate_pod", touched)
    assert len(await here.until(LOOK_S + REMADE_WITHIN_S)) == 4


def two(*named: str) -> Pod:
    """Return a pod with claims from two templates, of which its status names some."""
    statuses = tuple(PodClaimStatus(name=name, claim_name=f"p-{name}") for name in named)
    entries = tuple(PodClaim(name=name, template_name="t") for name in ("gpu", "nic"))
    return replace(pod("p"), claims=entries, claim_statuses=statuses)


def for_entry(name: str, of: str = "p") -> ResourceClaim:
    owner = OwnerReference(kind="Pod", uid=pod(of).uid)
    return replace(claim(f"{of}-{name}"), owners=(owner,), annotations=((ENTRY, name),))


async def test_a_pod_that_never_names_all_its_claims_is_given_all_their_names() -> None:
    belief = belief_of(two("gpu", "nic"), for_entry("gpu"), for_entry("nic"))
    here = Touches(belief)
    await here.until(100.0)
    # As the controller of 1.36 does it, for ever: now the one, now the other.
    for turn in range(int(REMADE_WITHIN_S / LOOK_S) + 1):
        assert here.named == []
        belief.apply(Changed(two("gpu" if turn % 2 else "nic")))
        await here.until(100.0 + (turn + 1) * LOOK_S)
    assert [(name, statuses) for _, name, statuses in here.named] == [("p", {"gpu": "p-gpu", "nic": "p-nic"})]
    belief.apply(Changed(two("gpu", "nic")))
    await here.until(900.0)
    assert (len(here.named), here.told) == (1, [])


async def test_a_single_claim_is_left_to_its_controller_to_name() -> None:
    alone = replace(pod("p"), claims=(PodClaim(name="gpu", template_name="t"),), claim_statuses=())
    here = Touches(belief_of(alone, for_entry("gpu")))
    await here.until(10 * PATIENCE_S)
    assert (here.named, here.told) == ([], [])


async def test_what_is_not_named_because_it_is_not_made_is_the_controllers_business() -> None:
    here = Touches(belief_of(two("gpu"), for_entry("gpu"), for_entry("nic", of="another")))
    await here.until(10 * PATIENCE_S)
    assert (here.named, here.told) == ([], [])


async def test_a_pod_with_a_claim_that_is_gone_is_touched_before_anything_is_named() -> None:
    here = Touches(belief_of(two("gpu"), for_entry("nic")))
    await here.until(LOOK_S + REMADE_WITHIN_S)
    assert (here.named, len(here.told)) == ([], 1)


async def test_what_others_made_in_another_namespace_is_not_named() -> None:
    claims = (replace(item, key=ObjectKey("another", item.key.name)) for item in (for_entry("gpu"), for_entry("nic")))
    here = Touches(belief_of(two(), *claims))
    await here.until(10 * PATIENCE_S)
    assert (here.named, here.told) == ([], [])


async def test_of_two_claims_for_one_entry_the_same_is_named_whichever_was_heard_of_first() -> None:
    claims = [
        for_entry("gpu"),
        for_entry("nic"),
        replace(for_entry("nic"), key=ObjectKey("ns", "p-nic-2"), uid=Uid("2")),
    ]
    for order in itertools.permutations(claims):
        here = Touches(belief_of(two(), *order))
        await here.until(LOOK_S + REMADE_WITHIN_S)
        assert [statuses for *_, statuses in here.named] == [{"gpu": "p-gpu", "nic": "p-nic"}]
