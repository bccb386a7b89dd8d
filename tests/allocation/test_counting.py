"""The law of counting: where it is exact, it finds what a search finds first, and always comes to an end."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from extender.allocation.board import board_of
from extender.allocation.counting import courses_of, first_solution, is_countable
from extender.allocation.eligibility import judge_of
from extender.allocation.foresight import can_foresee
from extender.allocation.question import ask
from extender.allocation.search import Exhausted, Search
from extender.allocation.situation import Situation, examining
from extender.allocation.solve import FIRST, Nothing, Solution, solving
from extender.allocation.work import finished
from extender.cli.case import case_of
from tests.allocation.hostile import DRIVER, Json

PATIENCE = 100_000


def drawn(seed: int, most: int) -> Json:
    """Draw devices whose values cross each other, and requests that just about fit."""
    random = Random(seed)  # noqa: S311 - no secret depends on it
    count, spread = random.randint(4, most), [random.choice((2, 3, 5)) for _ in range(2)]
    devices = [
        {
            "name": f"d{place:02}",
            "attributes": {f"k{index}": {"int": random.randrange(size)} for index, size in enumerate(spread)},
        }
        for place in range(count)
    ]
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": devices}
    return {
        "name": f"counted {seed}",
        "node": {"metadata": {"name": "n1"}},
        "classes": [{"metadata": {"name": "gpu"}}],
        "slices": [{"metadata": {"name": "s"}, "spec": spec}],
        "claims": [claim(random, index, count) for index in range(random.choice((1, 1, 2)))],
    }


def claim(random: Random, index: int, count: int) -> Json:
    names = [f"r{number}" for number in range(random.randint(1, 3))]
    rules = [
        {
            "matchAttribute": f"{DRIVER}/k{random.randrange(2)}",
            "requests": random.sample(names, random.randint(0, len(names))),
        }
        for _ in range(random.choice((0, 1, 1, 2)))
    ]
    requests = [request(random, name, count) for name in names]
    spec = {"devices": {"requests": requests, "constraints": rules}}
    return {"metadata": {"namespace": "ns", "name": f"c{index}"}, "spec": spec}


def request(random: Random, name: str, count: int) -> Json:
    if random.random() < 0.4:
        asks = [{"name": f"s{index}"} | body(random, count) for index in range(random.randint(1, 3))]
        return {"name": name, "firstAvailable": asks}
    return {"name": name, "exactly": body(random, count)}


def body(random: Random, count: int) -> Json:
    drawn: Json = {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": random.randint(0, min(10, max(1, count // 3))),
    }
    if random.random() < 0.3:
        text = f"device.attributes['{DRIVER}'].k0 {random.choice(('==', '!='))} {random.randrange(3)}"
        drawn["selectors"] = [{"cel": {"expression": text}}]
    return drawn


def situation(raw: Json) -> Situation:
    case = case_of(raw)
    board = board_of(case.nodes[0], case.slices, case.tainting, case.features)
    usages = tuple(case.usage_of(candidate.key) for candidate in board.candidates)
    return finished(
        examining(ask(case.claims, case.classes, case.features), board, usages, case.usage_of, judge_of(board))
    )


@given(st.integers(0, 1 << 30))
@settings(max_examples=400)
def test_counting_finds_what_a_search_finds_first(seed: int) -> None:
    found = situation(drawn(seed, 9))
    if not (can_foresee(found) and is_countable(found)):
        return
    courses = courses_of(found)
    if courses is None:
        return
    try:
        expected = Search(found, PATIENCE).run()
    except Exhausted:
        return
    assert finished(first_solution(courses)) == expected


@given(st.integers(0, 1 << 30))
@settings(max_examples=100)
def test_where_counting_decides_nothing_is_left_undecided(seed: int) -> None:
    found = situation(drawn(seed, 64))
    if can_foresee(found) and is_countable(found) and courses_of(found) is not None:
        answer = finished(solving(found.question, found.board, lambda _: found.usages[0], FIRST))
        assert isinstance(answer, Solution | Nothing)
