"""Who prefers some devices may also say which asks choose first, over claims, and sees what was picked."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, repeat

import pytest

from extender.allocation.attempt import Pick
from extender.allocation.choose import choose, choosing
from extender.allocation.features import ALL
from extender.allocation.preference import REST, Turn, most_constrained_first
from extender.allocation.question import At, ask
from extender.allocation.situation import Situation
from extender.allocation.solve import BEST, IMPROVEMENTS, Manner, Solution
from extender.allocation.work import finished_with_pauses
from extender.model.claim import Constraint, DeviceRequest, RequestSlot
from tests.allocation.small import CLASSES, claim, cluster, device, node, published, request

DEVICES = published("n", *(device(f"d{index}", {"side": index % 2}) for index in range(4)))


class Backwards:
    """Lets the last claim choose first, and always prefers the devices after those that were picked."""

    def __init__(self) -> None:
        self.seen: list[tuple[At, tuple[Pick, ...]]] = []

    def order(self, situation: Situation) -> Sequence[Turn]:
        return most_constrained_first(situation)[::-1]

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterator[tuple[int, ...]]:
        del situation
        self.seen.append((at, tuple(picks)))
        last = max((pick.place for pick in picks), default=-1)
        places = [place for place in range(mask.bit_length()) if mask >> place & 1]
        yield from combinations(sorted(places, key=lambda place: (place < last, place)), size)


class Picky:
    """Has the last request choose first, and nothing that is not accepted."""

    def __init__(self, accepts: Callable[[Situation, Sequence[Pick]], bool]) -> None:
        self._accepts = accepts

    def order(self, situation: Situation) -> Sequence[Turn]:
        return sorted(most_constrained_first(situation), reverse=True)

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterator[tuple[int, ...]]:
        del picks
        places = [place for place in range(mask.bit_length()) if mask >> place & 1]
        for found in combinations(places, size):
            if self._accepts(situation, [Pick(at, place) for place in found]):
                yield found


class Slow(Backwards):
    """Works for long before it has anything to offer."""

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterator[tuple[int, ...]]:
        yield from repeat(REST, 2 * IMPROVEMENTS)
        yield from super().sets(situation, at, mask, size, picks)


def test_others_have_their_turn_while_a_preference_works_and_no_set_is_lost_for_it() -> None:
    snapshot = cluster(node("n"), DEVICES).snapshot
    asked = ask([claim(request(2), name="a")], CLASSES, ALL)
    found, pauses = finished_with_pauses(choosing(snapshot, 0, asked, Manner(Slow())))
    assert isinstance(found, Solution)
    assert [pick.place for pick in found.picks] == [0, 1]
    assert pauses == 2 * IMPROVEMENTS


def picked(preference: Backwards, *wanted: DeviceRequest, rules: Sequence[Constraint] = ()) -> list[tuple[int, int]]:
    """Return claims and the devices that they get, a claim for each request."""
    claims = [claim(one, *rules, name=f"c{index}") for index, one in enumerate(wanted)]
    snapshot = cluster(node("n"), DEVICES).snapshot
    answer = choose(snapshot, 0, ask(claims, CLASSES, ALL), Manner(preference=preference, is_lenient=True))
    assert isinstance(answer, Solution)
    return [(pick.at.claim, pick.place) for pick in answer.picks]


def test_claims_choose_in_the_preferred_order_and_are_answered_in_their_own() -> None:
    assert picked(Backwards(), request(1), request(2)) == [(0, 2), (1, 0), (1, 1)]


def test_who_chooses_later_is_told_what_was_picked() -> None:
    preference = Backwards()
    picked(preference, request(1), request(2))
    first, second = At(0, 0, 0), At(1, 0, 0)
    assert preference.seen == [(second, ()), (first, (Pick(second, 0), Pick(second, 1)))]


@pytest.mark.parametrize(("count", "given"), [(1, {"l0"}), (3, {"l0", "l1", "l2"}), (4, {"f0", "l0", "l1", "l2"})])
def test_what_is_ready_is_given_before_what_a_driver_has_to_make_ready(count: int, given: set[str]) -> None:
    """The pool of those that have to be attached is fuller, and would come first."""
    local = published("n", *(device(f"l{index}") for index in range(3)))
    attached = device("f0", binding_conditions=("example.com/attached",), binds_to_node=True)
    fabric = published("fabric", attached, all_nodes=True)
    snapshot = cluster(node("n"), local, fabric).snapshot
    answer = choose(snapshot, 0, ask([claim(request(count))], CLASSES, ALL))
    assert isinstance(answer, Solution)
    candidates = answer.situation.board.candidates
    assert {candidates[pick.place].key.device for pick in answer.picks} == given


def on_sides(name: str, *sides: int) -> DeviceRequest:
    text = f"device.attributes['gpu.example.com'].side in {list(sides)}"
    return replace(request(1, selectors=[text]), name=name)


@pytest.mark.parametrize("is_sure", [False, True])
@pytest.mark.parametrize(
    ("refused", "given"),
    [({""}, [("a/best", "d0"), ("b", "d1")]), ({"a/best"}, [("a/any", "d1"), ("b", "d0")])],
)
def test_an_alternative_is_given_up_for_what_is_accepted_and_not_for_what_is_preferred(
    refused: set[str], given: list[tuple[str, str]], *, is_sure: bool
) -> None:
    """The second request chooses first, and would take what the first one wants."""
    either = RequestSlot(name="a", first_available=(on_sides("best", 0), on_sides("any", 0, 1, 2)))
    asked = claim(request())
    spec = replace(asked.spec, requests=(either, RequestSlot(name="b", exactly=on_sides("b", 0, 1))))
    question = ask([replace(asked, spec=spec)], CLASSES, ALL)

    def accepts(situation: Situation, picks: Sequence[Pick]) -> bool:
        return not refused & {situation.asks[pick.at].name for pick in picks}

    local = published("n", *(device(f"d{index}", {"side": index}) for index in range(3)))
    manner = replace(BEST, preference=Picky(accepts), accepts=accepts, is_sure=is_sure)
    answer = choose(cluster(node("n"), local).snapshot, 0, question, manner)
    assert isinstance(answer, Solution)
    candidates = answer.situation.board.candidates
    assert [(answer.situation.asks[pick.at].name, candidates[pick.place].key.device) for pick in answer.picks] == given


def test_constraints_hold_whichever_claim_chooses_first() -> None:
    rule = Constraint(match_attribute="gpu.example.com/side")
    assert picked(Backwards(), request(2), request(2), rules=[rule]) == [(0, 3), (0, 1), (1, 0), (1, 2)]


def test_where_an_administrator_only_looks_claims_choose_as_they_are_asked() -> None:
    preference = Backwards()
    picked(preference, request(1, admin_access=True), request(2))
    assert [at.claim for at, _ in preference.seen] == [0, 1]
