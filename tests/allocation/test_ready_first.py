"""What is passed over is told where devices are made ready, too: whoever searches pays for it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import comb

import pytest

from extender.allocation.attempt import Pick
from extender.allocation.preference import NO_SET, ORDERED, PAID, ReadyFirst, Tightest
from extender.allocation.question import At
from extender.allocation.situation import Situation
from tests.topology.cases import FIRST_AT, situation
from tests.topology.mig import case, claim, request

SEEN = situation(case(("gpu-0", "gpu-1", "gpu-2"), [claim(request(""))]))


class Passing(Tightest):
    """Says of each set that it was passed over."""

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterator[tuple[int, ...]]:
        return (NO_SET for _ in super().sets(situation, at, mask, size, picks))


class Rare(Tightest):
    """Has one set for each that it says was passed over."""

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterator[tuple[int, ...]]:
        for places in super().sets(situation, at, mask, size, picks):
            yield NO_SET
            yield places


def test_where_much_is_passed_over_what_was_found_is_tried_before_all_is_spent_on_that() -> None:
    unready = replace(SEEN, board=replace(SEEN.board, unready=(1 << 11) - 1))
    found = list(ReadyFirst(Rare()).sets(unready, FIRST_AT, (1 << 12) - 1, 6, ()))
    # What is put together with the one that is ready comes first, and has a set for each that is passed over.
    begins = next(index for index, places in enumerate(found) if index and places == found[index - 1] == NO_SET)
    paid = next(index for index, places in enumerate(found[begins:]) if places)
    assert paid <= PAID < ORDERED
    assert len([places for places in found if places]) == comb(11, 5) + comb(12, 6)


def test_what_is_passed_over_beside_all_that_is_ready_is_told() -> None:
    places = range(6)
    unready = replace(SEEN, board=replace(SEEN.board, unready=0b111110))
    found = list(ReadyFirst(Passing()).sets(unready, FIRST_AT, sum(1 << place for place in places), 3, ()))
    # Two of five with the one that is ready, then three of six.
    assert found == [NO_SET] * (10 + 20)


@pytest.mark.parametrize(("unready", "size"), [(0b110100, 2), (0b110100, 4), (0b111110, 3), (0b1, 1)])
def test_of_all_sets_those_come_first_that_have_few_devices_to_be_made_ready(unready: int, size: int) -> None:
    asked = replace(SEEN, board=replace(SEEN.board, unready=unready))
    found = [places for places in ReadyFirst(Tightest()).sets(asked, FIRST_AT, 0b111111, size, ()) if places]
    assert set(found) == set(combinations(range(6), size))
    counts = [sum(unready >> place & 1 for place in places) for places in found]
    assert counts == sorted(counts)
