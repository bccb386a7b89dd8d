"""What is remembered has a bound, and what was of things that others have replaced is not kept for them."""

from dataclasses import dataclass

import pytest

from extender.topology import memo as memory
from extender.topology.memo import Heavy, Latest, Memo


class Thing:
    """Told apart by identity."""


def nothing(answer: object) -> tuple[Heavy, ...]:
    """Say that nothing of an answer is large."""
    del answer
    return ()


def test_a_memo_forgets_the_oldest_for_a_new_one() -> None:
    memo: Memo[int, str] = Memo(2)
    for number in range(3):
        memo[number] = str(number)
    assert memo == {1: "1", 2: "2"}


def test_a_memo_forgets_nothing_for_what_it_knows_already() -> None:
    memo: Memo[int, str] = Memo(2)
    for number in (0, 1, 1):
        memo[number] = f"again {number}"
    assert memo == {0: "again 0", 1: "again 1"}


def test_the_answers_of_a_thing_are_told_by_its_name_and_key() -> None:
    latest: Latest[Thing, int, str] = Latest(9, nothing)
    here, there = Thing(), Thing()
    latest.put("here", here, 1, "one")
    latest.put("here", here, 2, "two")
    latest.put("there", there, 1, "other")
    assert [latest.get("here", here, 1), latest.get("here", here, 2), latest.get("there", there, 1)] == [
        "one",
        "two",
        "other",
    ]
    assert latest.get("there", there, 2) is None
    assert latest.get("nowhere", there, 1) is None


def test_a_thing_that_takes_the_place_of_another_takes_all_of_its_answers() -> None:
    latest: Latest[Thing, int, str] = Latest(9, nothing)
    before, after = Thing(), Thing()
    latest.put("here", before, 1, "one")
    latest.put("here", before, 2, "two")
    assert latest.get("here", after, 1) is None
    latest.put("here", after, 1, "new")
    assert latest.get("here", after, 1) == "new"
    assert latest.get("here", before, 2) is None
    assert len(latest) == 1


def test_the_oldest_name_goes_with_all_its_answers_where_there_are_too_many() -> None:
    latest: Latest[str, int, int] = Latest(3, nothing)
    for key in range(2):
        latest.put("a", "A", key, key)
    for key in range(2):
        latest.put("b", "B", key, key)
    assert [latest.get("a", "A", 0), latest.get("b", "B", 0), latest.get("b", "B", 1)] == [None, 0, 1]
    assert len(latest) == 2


def test_a_name_may_be_the_oldest_itself() -> None:
    latest: Latest[str, int, int] = Latest(2, nothing)
    for key in range(3):
        latest.put("a", "A", key, key)
    assert (len(latest), latest.get("a", "A", 2)) == (1, 2)


@dataclass(frozen=True, eq=False)
class Heap:
    """Something large."""

    cells: int


def test_what_is_heavy_is_kept_up_to_a_bound_and_counts_once_for_all_who_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "CELLS", 10)
    latest: Latest[str, int, Heap] = Latest(99, lambda heap: (heap,))
    common, own = Heap(6), Heap(4)
    for name in ("a", "b", "c", "d"):
        latest.put(name, name, 1, common)
    latest.put("e", "e", 1, own)
    assert len(latest) == 5
    latest.put("e", "e", 2, Heap(1))
    # What is common goes with the last who has it.
    assert [name for name in ("a", "b", "c", "d", "e") if latest.get(name, name, 1)] == ["e"]
    latest.put("e", "new", 1, Heap(10))
    latest.put("f", "f", 1, common)
    assert [latest.get("e", "new", 1), latest.get("f", "f", 1)] == [None, common]


def test_the_last_answer_stays_however_heavy_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "CELLS", 10)
    latest: Latest[str, int, Heap] = Latest(99, lambda heap: (heap,))
    heaps = [Heap(11), Heap(12)]
    for name, heap in zip(("a", "b"), heaps, strict=True):
        latest.put(name, name, 1, heap)
    assert [latest.get("a", "a", 1), latest.get("b", "b", 1)] == [None, heaps[1]]
