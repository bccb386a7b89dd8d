"""Whatever is asked, a pod's requests chosen together break no rule, and fit where they fit otherwise."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from extender.allocation.attempt import Pick
from extender.allocation.preference import Tightest
from extender.allocation.question import At
from extender.allocation.situation import Situation
from extender.allocation.solve import BEST, Manner
from extender.cli.allocate import answer
from extender.topology.ground import Ground
from extender.topology.machine import Group
from extender.topology.partitioned import Partitioned
from extender.topology.policy import Summands
from extender.topology.together import Together
from loadtests.quality.hopper import grounds
from tests.allocation.checker import violations
from tests.allocation.clusters import question

Json = dict[str, Any]


class Telling(Together):
    """Appraises whatever was picked on the way."""

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterator[tuple[int, ...]]:
        appraisal = self.appraise(situation, picks)
        assert appraisal.value == sum(part.value for part in appraisal.parts)
        # Of links there may be nothing to say, though they count.
        assert all(part.text for part in appraisal.parts if part.name not in Summands._fields)
        return super().sets(situation, at, mask, size, picks)


def known(number: int) -> Manner:
    """Take the devices of one driver for accelerators whose links are known, or of none."""
    ground_of = grounds()
    made: dict[int, Ground] = {}

    def one_known(situation: Situation) -> Ground:
        board = situation.board
        if id(board) not in made:
            ground = ground_of(situation)
            groups = [
                one._replace(group=knowing(one.group, is_known=index == number))
                for index, one in enumerate(ground.groups)
            ]
            made[id(board)] = Ground(board, tuple(groups), ground.sites)
        return made[id(board)]

    return Manner(Telling(one_known, Tightest(), Partitioned()), is_lenient=True)


def knowing(group: Group, *, is_known: bool) -> Group:
    return replace(group, links=replace(group.links, is_known=is_known))


def told(case: Json, manner: Manner) -> dict[str, Json]:
    nodes: dict[str, Json] = answer(json.dumps(case).encode(), manner)["nodes"]
    return nodes


@pytest.mark.parametrize("number", [0, 1, 9])
def test_in_drawn_clusters_no_rule_is_broken_and_as_many_nodes_fit(number: int) -> None:
    broken = []
    for case in map(question, range(150)):
        plain = told(case, BEST)
        for name, mine in told(case, known(number)).items():
            node = next(node for node in case["nodes"] if node["metadata"]["name"] == name)
            problems = violations(case, node, mine["allocations"]) if mine["fits"] else []
            if problems or mine["fits"] != plain[name]["fits"]:
                broken.append((case["name"], name, problems))
    assert broken == []
