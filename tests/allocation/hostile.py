"""Finds questions that are hard to search: ``python -m tests.allocation.hostile --examples 3000`` keeps the worst.

Everything stays within the limits of the API: what is found here, anybody may ask.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings, target
from hypothesis import strategies as st

from extender.allocation.board import board_of
from extender.allocation.eligibility import Met, judge_of
from extender.allocation.foresight import Foresight, can_foresee
from extender.allocation.question import ask
from extender.allocation.search import Exhausted, Search
from extender.allocation.situation import Situation, examining
from extender.allocation.solve import BLIND_STEPS, STEPS
from extender.allocation.work import finished
from extender.cli.case import case_of

Json = dict[str, Any]
FILE = Path(__file__).parent / "hostile.jsonl"
KEPT = 20
DRIVER = "gpu.example.com"
ATTRIBUTES = ("a", "b", "c")


@st.composite
def devices(draw: st.DrawFn) -> list[Json]:
    """Up to 64 devices whose attributes cross each other; some are shared, some draw from counters."""
    count = draw(st.integers(8, 64))
    spread = [draw(st.integers(1, 12)) for _ in ATTRIBUTES]
    lists, counters, shares = draw(st.booleans()), draw(st.integers(0, 4)), draw(st.booleans())
    return [
        _device(index, spread, lists=lists and index % 3 == 0, counters=counters, shared=shares and index % 5 == 0)
        for index in range(count)
    ]


def _device(index: int, spread: list[int], *, lists: bool, counters: int, shared: bool) -> Json:
    values = [(index * (place + 1) + index // (place + 2)) % size for place, size in enumerate(spread)]
    attributes: Json = {
        name: {"ints": [value, (value + 1) % (size + 1)]} if lists else {"int": value}
        for name, value, size in zip(ATTRIBUTES, values, spread, strict=True)
    }
    device: Json = {"name": f"d{index}", "attributes": attributes}
    if counters:
        device["consumesCounters"] = [
            {"counterSet": "set", "counters": {f"k{index % counters}": {"value": str(1 + index % 3)}}}
        ]
    if shared:
        device |= {"allowMultipleAllocations": True, "capacity": {"m": {"value": "4"}}}
    return device


@st.composite
def requests(draw: st.DrawFn, names: list[str]) -> list[Json]:
    return [draw(request(name)) for name in names]


@st.composite
def request(draw: st.DrawFn, name: str) -> Json:
    if draw(st.integers(0, 3)) == 0:
        alternatives = [{"name": f"s{index}"} | draw(body()) for index in range(draw(st.integers(1, 4)))]
        return {"name": name, "firstAvailable": alternatives}
    return {"name": name, "exactly": draw(body())}


@st.composite
def body(draw: st.DrawFn) -> Json:
    drawn: Json = {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": draw(st.integers(1, 8)),
    }
    attribute = draw(st.sampled_from((*ATTRIBUTES, None, None)))
    if attribute:
        text = f"device.attributes['{DRIVER}'].{attribute}.includes({draw(st.integers(0, 6))})"
        drawn["selectors"] = [{"cel": {"expression": text if draw(st.booleans()) else f"!{text}"}}]
    return drawn


@st.composite
def questions(draw: st.DrawFn) -> Json:
    """Draw a question on one node."""
    published = draw(devices())
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 2}
    spec = {"driver": DRIVER, "nodeName": "n1", "pool": pool}
    declared = {f"k{index}": {"value": str(draw(st.integers(2, 24)))} for index in range(4)}
    slices = [
        {"metadata": {"name": "a"}, "spec": {**spec, "devices": published}},
        {"metadata": {"name": "b"}, "spec": {**spec, "sharedCounters": [{"name": "set", "counters": declared}]}},
    ]
    used = draw(st.sets(st.integers(0, len(published) - 1), max_size=len(published) // 2))
    return {
        "name": "hostile",
        "node": {"metadata": {"name": "n1"}},
        "classes": [{"metadata": {"name": "gpu"}}],
        "slices": slices,
        "claims": [draw(claim(index)) for index in range(draw(st.integers(1, 3)))],
        "usedDevices": [{"driver": DRIVER, "pool": "n1", "device": f"d{index}"} for index in sorted(used)],
    }


@st.composite
def claim(draw: st.DrawFn, index: int) -> Json:
    names = [f"r{number}" for number in range(draw(st.integers(1, 5)))]
    constraints = [
        {
            draw(
                st.sampled_from(("matchAttribute", "distinctAttribute"))
            ): f"{DRIVER}/{draw(st.sampled_from(ATTRIBUTES))}",
            "requests": sorted(draw(st.sets(st.sampled_from(names)))),
        }
        for _ in range(draw(st.integers(0, 4)))
    ]
    spec = {"devices": {"requests": draw(requests(names)), "constraints": constraints}}
    return {"metadata": {"namespace": "ns", "name": f"c{index}"}, "spec": spec}


def situation(raw: Json) -> Situation:
    case = case_of(raw)
    question = ask(case.claims, case.classes, case.features)
    board = board_of(case.nodes[0], case.slices, case.tainting, case.features)
    usages = tuple(case.usage_of(candidate.key) for candidate in board.candidates)
    return finished(examining(question, board, usages, case.usage_of, judge_of(board)))


def steps(raw: Json) -> int:
    """Count the candidates that the search tries, blindly first and then with foresight."""
    try:
        found = situation(raw)
        blind = Search(found, BLIND_STEPS)
        if not _exhausts(blind):
            return BLIND_STEPS - blind.steps
        foreseeing = Search(found, STEPS, Foresight(found) if can_foresee(found) else None)
        _exhausts(foreseeing)
        return BLIND_STEPS + STEPS - max(0, foreseeing.steps)
    except Met:
        return 0


def _exhausts(search: Search) -> bool:
    try:
        search.run()
    except Exhausted:
        return True
    return False


def worst(examples: int) -> list[Json]:
    """Let Hypothesis climb towards more steps, and return the worst that it came across."""
    seen: dict[str, int] = {}

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.target),
        suppress_health_check=list(HealthCheck),
    )
    @given(questions())
    def climb(raw: Json) -> None:
        count = steps(raw)
        seen[json.dumps(raw, sort_keys=True)] = count
        target(float(count))

    climb()
    ranked = sorted(seen, key=lambda text: (-seen[text], text))[:KEPT]
    return [json.loads(text) | {"name": f"hostile {index}"} for index, text in enumerate(ranked)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=3000)
    found = worst(parser.parse_args().examples)
    FILE.write_text("".join(json.dumps(raw, sort_keys=True) + "\n" for raw in found))
    print([steps(raw) for raw in found])  # noqa: T201 - a command line prints


if __name__ == "__main__":
    main()
