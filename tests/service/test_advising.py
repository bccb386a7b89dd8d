"""An advisor answers filter and prioritize, binds nothing and says why, and writes to nothing."""

from typing import Any

import aiohttp
import pytest

from extender.config.settings import Leading, Ownership, Settings
from extender.service.advising import NOT_BINDING
from tests.kube_objects import CLAIMS, PODS, pod
from tests.service.owned import DRIVER, RULES, Json, Place, place, so

ADVISOR = Settings(ownership=Ownership(mode="advisor"))


async def called(here: Place, verb: str, body: Json) -> Any:
    url = f"http://127.0.0.1:{here.service.server.ports[0]}/{verb}"
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as response:
        assert response.status == 200
        return await response.json(content_type=None)


async def asking(here: Place, name: str, claim: str) -> Json:
    """Create a pod that asks for a claim, and return what the scheduler says of it."""
    entries = [{"name": "c", "resourceClaimName": claim}]
    created = await here.do("POST", PODS, pod(name, schedulerName="dra-scheduler", resourceClaims=entries))
    await so(lambda: here.service.belief.pods.with_uid(created["metadata"]["uid"]))
    return created


async def test_nodes_are_filtered_and_scored_and_nothing_is_written() -> None:
    async with place(ADVISOR) as here:
        for number in range(2):
            await here.claim(f"held-{number}")
            await here.allocate(f"held-{number}", f"gpu-{number}", manager="kube-scheduler")
        await here.claim("c")
        await so(lambda: len([item for item in here.service.belief.cluster.claims if item.allocation]) == 2)
        asked = {"Pod": await asking(here, "p", "c"), "Nodes": None, "NodeNames": ["node-1", "node-2"]}
        before = await here.items(CLAIMS)
        assert (await called(here, "filter", asked))["NodeNames"] == ["node-2"]
        # What is not listed counts as 0.
        assert await called(here, "prioritize", asked) == [{"Host": "node-2", "Score": 10}]
        assert here.service.journal.of(*[item.key for item in here.service.belief.pods]) is not None
        assert await here.items(CLAIMS) == before
        assert await here.items(RULES) == []
        assert list(here.service.belief.ledger) == []
        assert here.service.belief.ownership.foreign == {}


async def test_bind_is_refused_with_what_to_configure() -> None:
    async with place(ADVISOR) as here:
        subject = await asking(here, "p", "c")
        metadata = subject["metadata"]
        order = {"PodName": "p", "PodNamespace": "default", "PodUID": metadata["uid"], "Node": "node-1"}
        assert await called(here, "bind", order) == {"Error": NOT_BINDING}
        assert "bindVerb" in NOT_BINDING
        assert "ownership.mode" in NOT_BINDING
        assert "nodeName" not in (await here.do("GET", f"{PODS}/p"))["spec"]


async def test_preemption_is_left_to_the_scheduler() -> None:
    async with place(ADVISOR) as here:
        victims = {"node-1": {"Pods": [{"UID": "u"}], "NumPDBViolations": 0}}
        asked = {"Pod": await asking(here, "p", "c"), "NodeNameToVictims": None, "NodeNameToMetaVictims": victims}
        assert (await called(here, "preempt", asked))["NodeNameToMetaVictims"] == victims


async def test_the_owner_taint_is_a_taint_like_any_other_to_an_advisor() -> None:
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "owned"},
        "spec": {
            "deviceSelector": {"driver": DRIVER, "pool": "node-1"},
            "taint": {"key": "dra-extender.x-k8s.io/owned", "effect": "NoSchedule"},
        },
    }
    async with place(ADVISOR) as here:
        await here.do("POST", RULES, rule)
        await here.claim("c")
        await so(lambda: here.service.belief.cluster.snapshot.rules and list(here.service.belief.cluster.claims))
        asked = {"Pod": await asking(here, "p", "c"), "Nodes": None, "NodeNames": ["node-1", "node-2"]}
        assert (await called(here, "filter", asked))["NodeNames"] == ["node-2"]


async def test_every_replica_of_an_advisor_answers() -> None:
    settings = Settings(ownership=Ownership(mode="advisor"), leading=Leading(enabled=True))
    async with place(settings) as here:
        assert here.service.leading.leads()


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
async def test_a_pod_without_claims_passes_everywhere_without_scores(verb: str) -> None:
    async with place(ADVISOR) as here:
        asked = {"Pod": await here.do("POST", PODS, pod("plain")), "Nodes": None, "NodeNames": ["node-2", "x"]}
        answered = await called(here, verb, asked)
        assert answered["NodeNames"] == ["node-2", "x"] if verb == "filter" else answered == []
