"""Where all nodes are offered, thousands of names are answered as a few are that were read one by one."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.model.change import Changed
from extender.scheduling.ranking import Answer, AnswerPolicy
from extender.scheduling.roll import Roll
from extender.service.afterwards import Afterwards
from extender.service.answers import Answers
from extender.state.belief import Belief
from extender.web import name_table
from extender.web.name_table import NameTable
from extender.web.reply import filter_reply, prioritize_reply
from extender.web.request import Candidates, candidates_of
from extender.web.verbs import Scores, Written
from tests.scheduling.cast import belief_of, claim, device, gpus, held, node, planner_of, pod
from tests.service.test_answers import answers
from tests.web.record import POD

FLEET = ("a", "bb", "c.c", "d-d", "e")
SUBJECT = pod("p", "c")


@pytest.fixture(autouse=True)
def _always_worthwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_table, "WORTHWHILE", 0)


def world(free: Sequence[int]) -> Belief:
    """Return nodes with three devices each, of which so many are *free*."""
    taken = [
        held(claim(f"{name}-{index}"), device(name, index))
        for name, left in zip(FLEET, free, strict=True)
        for index in range(left, 3)
    ]
    return belief_of(*map(node, FLEET), *(gpus(name, 3) for name in FLEET), *taken, claim("c"), SUBJECT)


def offering(belief: Belief, roll: Roll) -> Answers:
    planner = planner_of(belief, AnswerPolicy(Answer.ALL))
    planner.roll = roll
    nobody: Any = SimpleNamespace(offered=lambda _pod: None, rejected=lambda _pod, _plan: None)
    found = answers(belief, nobody)
    found.planner, found.journal = planner, SimpleNamespace(planned=lambda _pod, _plan: None)  # type: ignore[assignment]  # nobody reads it
    found.__post_init__()
    return found


def called(answering: Answers, asked: Candidates, before: Changed | None = None) -> tuple[Any, Any]:
    """Ask as kube-scheduler does: of the nodes that pass it wants the scores, and *before* that something changes."""
    passed = answering.filter(SUBJECT, asked.names)
    told = orjson.loads(filter_reply(asked, passed))
    if before:
        answering.belief.apply(before)
    again = candidates_of(body(told["NodeNames"]), 0)
    scores = answering.prioritize(SUBJECT, again.names)
    return told["NodeNames"], {item["Host"]: item["Score"] for item in orjson.loads(prioritize_reply(again, scores))}


def read(answering: Answers, asked: list[str]) -> tuple[list[str], dict[str, int]]:
    """Ask for the same with lists of names: of these nothing is remembered, and each is looked up."""
    passed = list(answering.filter(SUBJECT, asked).names)
    scores = answering.prioritize(SUBJECT, passed)
    assert not isinstance(scores, Written)
    return passed, {name: score for name, score in zip(passed, scores or (), strict=bool(passed)) if score}


def body(names: Sequence[str]) -> bytes:
    return orjson.dumps({"Pod": POD, "Nodes": None, "NodeNames": names})


def by_table() -> Roll:
    return Roll(lambda names: NameTable(names).rows)


FREE = st.lists(st.integers(0, 3), min_size=len(FLEET), max_size=len(FLEET))
ASKED = st.lists(st.sampled_from((*FLEET, "unknown")), min_size=1, unique=True)


@given(free=FREE, asked=ASKED, comes=st.booleans())
def test_names_that_are_not_read_are_answered_as_others(*, free: list[int], asked: list[str], comes: bool) -> None:
    """Also where a node *comes* in between, and names are looked up among others."""
    new = Changed(node("0")) if comes else None
    passed, scores = called(offering(world(free), by_table()), candidates_of(body(asked), 0), new)
    assert (passed, scores) == read(offering(world(free), Roll()), asked)
    assert set(passed) == {name for name, left in zip(FLEET, free, strict=True) if left} & set(asked)


def test_the_node_with_the_devices_is_ahead_of_its_equals() -> None:
    _, scores = called(offering(world([3, 1, 2, 1, 3]), by_table()), candidates_of(body(FLEET), 0))
    assert scores == {"bb": 10, "d-d": 9, "c.c": 8, "a": 7, "e": 7}


class Late:
    """Asks for all nodes of a world; what can wait until the scheduler has its answer does so until that *left*."""

    def __init__(self) -> None:
        self.belief, self._turns = world([3, 1, 2, 1, 3]), list[tuple[Callable[[int], None], int]]()
        self.answering = offering(self.belief, by_table())
        self.answering.afterwards = Afterwards(lambda turn, left: self._turns.append((turn, left)))
        self.answering.__post_init__()

    def passed(self) -> Sequence[str]:
        return self.answering.filter(SUBJECT, candidates_of(body(FLEET), 0).names).names

    def left(self) -> None:
        while self._turns:
            turn, left = self._turns.pop(0)
            turn(left)

    def scores(self, names: Sequence[str]) -> Scores:
        return self.answering.prioritize(SUBJECT, names)


def test_many_scores_are_written_while_the_scheduler_reads_which_nodes_pass() -> None:
    asking = Late()
    passed = asking.passed()
    told = asking.scores(passed)
    assert told == [7, 10, 8, 9, 7]
    asking.left()
    again = candidates_of(body(list(passed)), 0)
    assert asking.scores(again.names) == Written(prioritize_reply(again, told))


def test_scores_are_written_for_the_nodes_that_have_passed_and_for_no_others() -> None:
    asking = Late()
    asking.passed()
    asking.left()
    assert asking.scores(candidates_of(body(["e", "bb"]), 0).names) == [7, 10]
    assert asking.answering.prioritize(pod("q", "c"), candidates_of(body(FLEET), 0).names) is None


def test_scores_that_were_written_end_with_the_next_plan() -> None:
    asking = Late()
    passed = asking.passed()
    asking.left()
    for name in ("bb", "d-d"):
        asking.belief.apply(Changed(held(claim(f"{name}-0"), device(name, 0))))
    assert list(asking.passed()) == ["a", "c.c", "e"]
    assert asking.scores(passed) == [9, 0, 10, 0, 9]
