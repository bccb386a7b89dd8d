"""Cases for the allocator, of one node, answered with a preference or looked at from within."""

import json
from typing import Any

from extender.allocation.board import Board, board_of
from extender.allocation.eligibility import judge_of
from extender.allocation.preference import Preference
from extender.allocation.question import At, ask
from extender.allocation.situation import Situation, examining
from extender.allocation.solve import Manner
from extender.allocation.work import finished
from extender.cli.allocate import answer
from extender.cli.case import case_of
from extender.topology.configuration import Configuration
from extender.topology.portions import Catalogue
from extender.topology.shared import Criteria, Shared, expecting_whole
from tests.allocation.checker import violations
from tests.allocation.clusters import question

Json = dict[str, Any]
# The first request of the first claim.
FIRST_AT = At(0, 0, 0)


def answered(asked: Json, preference: Preference | None) -> Json:
    manner = Manner(preference=preference, is_lenient=True)
    told: Json = answer(json.dumps(asked).encode(), manner)["nodes"][asked["node"]["metadata"]["name"]]
    return told


def given(asked: Json, preference: Preference | None) -> list[str]:
    """Return the devices of all claims, by their requests."""
    allocations = answered(asked, preference)["allocations"]
    return [result["device"] for allocation in allocations for result in allocation["devices"]["results"]]


def sharing(catalogue: Catalogue | None = None) -> Shared:
    """Expect pods that need whole devices of whatever stands on a node."""
    known = catalogue or Catalogue(Configuration())
    return Shared(known, lambda situation, _: Criteria(expecting_whole(known.on(situation.board))))


def board_of_case(asked: Json) -> Board:
    told = case_of(asked)
    return board_of(told.nodes[0], told.slices, told.tainting, told.features)


def situation(asked: Json) -> Situation:
    told, board = case_of(asked), board_of_case(asked)
    wanted = ask(told.claims, told.classes, told.features)
    usages = tuple(told.usage_of(candidate.key) for candidate in board.candidates)
    return finished(examining(wanted, board, usages, told.usage_of, judge_of(board)))


def broken_rules(preference: Preference, start: int, count: int) -> list[tuple[str, str, list[str]]]:
    """Return the drawn clusters where *preference* gives what must not be given, or changes whether a node fits."""
    broken = []
    for drawn in map(question, range(start, start + count)):
        preferred = answer(json.dumps(drawn).encode(), Manner(preference=preference, is_lenient=True))["nodes"]
        first = answer(json.dumps(drawn).encode(), Manner(is_lenient=True))["nodes"]
        for node in drawn["nodes"]:
            name = node["metadata"]["name"]
            told = preferred[name]
            problems = violations(drawn, node, told["allocations"]) if told["fits"] else []
            if problems or told["fits"] != first[name]["fits"]:
                broken.append((drawn["name"], name, problems))
    return broken
