"""Claims that were made to be slow: their own pods wait until they are worked out, and nobody else does."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import orjson
import pytest

from extender.allocation.cel import Program, patterns
from extender.demo.apiserver.kinds import DRA, POD
from extender.model.change import Changed
from extender.model.claim import ClaimSpec, Selector
from extender.model.device import Attribute
from extender.model.node import Pod
from extender.scheduling.planner import Offer, Plan, Trouble
from extender.service import warming as module
from tests import kube_objects
from tests.allocation.hostile import FILE
from tests.scheduling.cast import belief_of, claim, gpus, names, node, planner_of, pod
from tests.service.door import SCHEDULER, Door, Json, opened
from tests.service.hostile import asked
from tests.service.test_counted import until

NODES = [f"n{number}" for number in range(8)]
# Each evaluation costs nearly all that one may, and each device, which has a number of its own, is another one.
SLOW = (
    "lists.range(200).map(x, lists.range(200).filter(y, y > x + device.attributes['gpu.example.com'].index).size())"
    ".size() == 200"
)


@pytest.fixture
async def door(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Door]:
    monkeypatch.setattr(module, "TICK_S", 0.01)
    async with opened(NODES) as found:
        slices = found.server.store.all(found.kind("resourceslices"))
        for place, item in enumerate(slices):
            devices = [{"name": f"gpu-{n}", "attributes": {"index": {"int": place * 4 + n}}} for n in range(4)]
            whole = {**item, "spec": {**item["spec"], "devices": devices}}
            found.server.store.put(found.kind("resourceslices"), ("", item["metadata"]["name"]), whole)
        yield found


def slow(door: Door, name: str, expression: str) -> None:
    item = kube_objects.claim(name)
    (request,) = item["spec"]["devices"]["requests"]
    request["exactly"]["selectors"] = [{"cel": {"expression": expression}}]
    door.server.registry.create(door.kind("resourceclaims"), "default", item)


async def waiting(door: Door, name: str) -> Json:
    """Create a pod for a claim that is there already."""
    spec = {"schedulerName": SCHEDULER, "resourceClaims": [{"name": "c", "resourceClaimName": name}]}
    made: Json = door.server.registry.create(POD, "default", kube_objects.pod(name, **spec))
    await door.seen(made)
    return made


async def test_a_slow_claim_is_worked_out_beside_while_others_are_answered(door: Door) -> None:
    quick = await door.pod("quick")
    slow(door, "slow", SLOW)
    made = await waiting(door, "slow")
    answers: list[Json] = []
    while not answers or answers[-1].get("Error"):
        answers.append(orjson.loads((await door.post("filter", asked("filter", made, NODES))).body))
        assert (await door.post("preempt", asked("preempt", made, NODES))).status in (200, 500)
        assert (await door.filter(quick))["NodeNames"]
        assert await door.scrape("/livez") == "ok"
    assert answers[-1]["NodeNames"]
    assert all(answer["Error"].endswith("still being looked for") for answer in answers[:-1])
    assert await door.bind(made, answers[-1]["NodeNames"][0]) == ""


async def test_a_claim_with_more_digits_than_python_reads_ends_nothing(door: Door) -> None:
    quick = await door.pod("quick")
    slow(door, "zeros", f"duration('{'0' * 4400}1s') == duration('1s')")
    made = await waiting(door, "zeros")
    answer = orjson.loads((await door.post("filter", asked("filter", made, NODES))).body)
    assert answer["NodeNames"]
    assert (await door.filter(quick))["NodeNames"]
    assert await door.scrape("/livez") == "ok"


async def test_a_plan_does_a_bounded_part_of_what_a_slow_claim_costs(monkeypatch: pytest.MonkeyPatch) -> None:

    evaluated = [0]
    real = Program.evaluate

    def counted(program: Program, *given: Any) -> Any:
        evaluated[0] += 1
        return real(program, *given)

    monkeypatch.setattr(Program, "evaluate", counted)
    fleet: list[Any] = []
    for number in range(20):
        published = gpus(f"n{number}", 4)
        devices = (replace(each, attributes=(("index", Attribute("int", number * 4 + place)),))
                   for place, each in enumerate(published.devices))  # fmt: skip
        fleet += [node(f"n{number}"), replace(published, devices=tuple(devices))]
    belief = belief_of(*fleet)

    def another(name: str, expression: str) -> Pod:
        item, made = claim(name), pod(name, name)
        (slot,) = item.spec.requests
        assert slot.exactly
        question = replace(slot.exactly, selectors=(Selector(expression),))
        belief.apply(Changed(replace(item, spec=ClaimSpec(requests=(replace(slot, exactly=question),)))))
        belief.apply(Changed(made))
        return made

    subject = another("p", SLOW)
    planner, everywhere = planner_of(belief), names(*(f"n{number}" for number in range(20)))
    plans: list[Plan] = []
    for most in (20, 1, 1):
        evaluated[0] = 0
        plans.append(planner.plan(subject, everywhere, 0.0))
        assert isinstance(plans[-1], Trouble)
        assert evaluated[0] <= most
    (late,) = belief.questions.late()
    # Whoever asks something else meanwhile is answered, and who asks something slow waits at once.
    assert isinstance(planner.plan(another("q", "device.driver != ''"), everywhere, 0.0), Offer)
    evaluated[0] = 0
    assert isinstance(planner.plan(another("r", f"{SLOW} && true"), everywhere, 0.0), Trouble)
    assert evaluated[0] <= 6
    await module.Warming(belief)._catch_up(late)
    evaluated[0] = 0
    assert isinstance(planner.plan(subject, everywhere, 0.0), Offer)
    assert evaluated[0] == 0


@pytest.mark.parametrize("number", range(0, 20, 4))
async def test_the_hardest_questions_that_were_found_keep_nobody_waiting(number: int) -> None:
    raw = json.loads(FILE.read_bytes().splitlines()[number])
    async with opened() as door:
        create = door.server.registry.create
        for item in raw["slices"]:
            name = f"hostile-{item['metadata']['name']}"
            spec = {**item["spec"], "nodeName": "n1", "pool": {**item["spec"]["pool"], "name": "hostile"}}
            create(door.server.kinds[DRA, "v1", "resourceslices"], "", {"metadata": {"name": name}, "spec": spec})
        create(door.server.kinds[DRA, "v1", "deviceclasses"], "", {"metadata": {"name": "gpu"}, "spec": {}})
        named = [item["metadata"]["name"] for item in raw["claims"]]
        for name, item in zip(named, raw["claims"], strict=True):
            create(door.kind("resourceclaims"), "default", {**kube_objects.claim(name), "spec": item["spec"]})
        claims = [{"name": name, "resourceClaimName": name} for name in named]
        hard = await door.pod("hard", devices=0, resourceClaims=claims)
        quick = await door.pod("quick")
        calls = [door.post("filter", asked("filter", hard, door.names)) for _ in range(5)]
        beside = [door.filter(quick) for _ in range(5)]
        for answer in await asyncio.gather(*calls):
            assert answer.status == 200
        assert all(answer["NodeNames"] for answer in await asyncio.gather(*beside))


# Letters of all alphabets, so many that each takes a tenth of a second to build.
VAST = {
    "literals": "||".join(f"''.matches('\\\\pL{{100}}{number:x}')" for number in range(30)),
    "made-in-turns": "['0', '1', '2'].all(a, ['0', '1', '2'].all(b, 'x'.matches('\\\\pL{100}' + a + b) || true))",
}


@pytest.mark.parametrize("expression", VAST.values(), ids=VAST)
async def test_regular_expressions_are_built_between_the_turns_of_others(
    door: Door, monkeypatch: pytest.MonkeyPatch, expression: str
) -> None:
    turn, build = 0, patterns._regexp
    rooms = Counter[int]()

    def counted(pattern: str, memory: int) -> Any:
        rooms[turn] += memory
        return build(pattern, memory)

    async def others() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(patterns, "_regexp", counted)
    beside = asyncio.create_task(others())
    slow(door, "vast", expression)
    await until(lambda: sum(rooms.values()) > patterns.TIERS[-1].memory)
    assert (await door.filter(await door.pod("quick")))["NodeNames"]
    beside.cancel()
    # No turn takes more than one evaluation does, which cannot pay for more than two of the largest.
    assert max(rooms.values()) <= 3 * patterns.TIERS[-1].memory
