"""What an advisor says: where the pod's devices can be had, and how good those are that kube-scheduler would give it.

kube-scheduler's own plugin allocates, by first fit, and keeps in mind what it has promised. Nothing is promised or
written here. Where our view and the plugin's differ, the plugin is right: it has filtered before us, nobody but it can
see what it has promised, and a pod that is rejected for an old view would not be woken. So nodes that our model refuses
are left out only as long as others remain.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Final

import numpy as np

from extender.allocation.choose import choose
from extender.allocation.grid import Flags
from extender.allocation.result import allocations
from extender.allocation.solve import FIRST, Manner, Solution
from extender.allocation.verdict import Verdict
from extender.model.frozen import dataclass
from extender.model.names import NodeName
from extender.model.node import Pod
from extender.scheduling.decision import Ranked
from extender.scheduling.judging import Judge
from extender.scheduling.needs import Unplaceable, needs_of
from extender.scheduling.placement import Placement
from extender.scheduling.planner import Plain
from extender.scheduling.ranking import Answer, AnswerPolicy, rank
from extender.scheduling.roll import Roll
from extender.scheduling.scored import Scored
from extender.scheduling.survey import Survey, Unfinished, survey
from extender.scheduling.tally import Tally
from extender.scheduling.taste import Taste
from extender.state.belief import Belief
from extender.state.table import Numbers
from extender.topology.appraisal import Appraisal
from extender.topology.ratings import NONE

EVERY: Final = AnswerPolicy(Answer.ALL)


@dataclass(frozen=True, slots=True)
class Advice:
    """Which of the names that were asked about pass, bool[names], with the scores of those that could be judged.

    *placement* is what kube-scheduler would give on the best of them.
    """

    passes: Flags
    scores: Mapping[NodeName, int] = field(default_factory=dict)
    placement: Placement | None = None
    best: tuple[Ranked, ...] = ()
    rejected: tuple[Tally, ...] = ()


@dataclass(slots=True)
class Advisor:
    """Advises. *taste* may be replaced at any time; without one nodes are filtered only."""

    belief: Belief
    share_id: Callable[[], str]
    manner: Manner = FIRST
    taste: Taste | None = None
    roll: Roll = field(default_factory=Roll)
    judge: Judge = field(init=False)

    def __post_init__(self) -> None:
        self.judge = Judge(self.manner)

    def advise(self, pod: Pod, names: Sequence[str]) -> Plain | Advice:
        """Say which of *names* are good for *pod*. What we do not understand or know yet is not our concern."""
        needs = needs_of(pod, self.belief)
        if isinstance(needs, Unplaceable) or needs.is_plain:
            return Plain()
        snapshot = self.belief.cluster.snapshot
        try:
            surveyed = survey(needs, snapshot, self.belief.questions)
        except Unfinished:
            return Plain()
        if isinstance(surveyed, Unplaceable) or surveyed.failure() is not None:
            return Plain()
        numbers = self.roll.numbers(names, snapshot.layout.nodes).astype(np.int64)
        # The spare place at the end is that of names that are not known: they pass.
        passes = np.append(surveyed.fits | _open(surveyed), np.True_)[numbers]
        if not passes.any():
            for part in surveyed.parts:
                self.judge.forget(part)
            return Plain()
        known = numbers[passes & (numbers >= 0)]
        judged = known[surveyed.fits[known]]
        return self._scored(self.taste, surveyed, passes, judged) if self.taste is not None else Advice(passes)

    def _scored(self, taste: Taste, surveyed: Survey, passes: Flags, nodes: Numbers) -> Advice:
        """Rank *nodes* by what the first fit there is worth; those that nobody has looked at have no score."""
        snapshot, pod, rejected = surveyed.snapshot, surveyed.needs.pod, surveyed.rejected()
        found = [(part.nodes, self.judge.judged(pod, taste, part, snapshot, nodes)) for part in surveyed.parts]
        values = np.full(len(snapshot.layout.nodes), NONE)
        for here, findings in found:
            if findings is not None:
                values = np.where(here, findings.values(), values)
        is_judged = np.zeros(len(values), np.bool_)
        is_judged[nodes] = values[nodes] != NONE
        if not is_judged.any():
            return Advice(passes, rejected=rejected)
        ranking = rank(snapshot, np.flatnonzero(is_judged), (), values)
        names, scores, best = snapshot.layout.nodes, ranking.scores(EVERY), list[Ranked]()
        first = ranking.nodes[:2].tolist()
        told = [next(findings.of(node) for here, findings in found if here[node] and findings) for node in first]
        for node, worth, score in zip(first, told, scores[:2].tolist(), strict=True):
            best.append(Ranked(names[node], score, snapshot.count_free(node, ()), worth.value, worth.parts))
        placed = self._placed(surveyed, first[0], told[0])
        return Advice(passes, Scored(names, ranking.nodes, scores), placed, tuple(best), rejected)

    def _placed(self, surveyed: Survey, node: int, appraisal: Appraisal) -> Placement | None:
        part = surveyed.part_at(node)
        answer = choose(surveyed.snapshot, node, part.question, self.manner) if part.question else None
        if not isinstance(answer, Solution) or part.question is None:
            return None
        claims = [item.claim for item in part.question.claims]
        given = allocations(answer, self.share_id)
        name = surveyed.snapshot.layout.nodes[node]
        return Placement(name, tuple(zip(claims, given, strict=True)), None, appraisal)


def _open(surveyed: Survey) -> Flags:
    """bool[nodes]: where nobody knows, because the search was given up."""
    found = np.zeros(len(surveyed.usable), np.bool_)
    for part in surveyed.parts:
        if part.fit is not None:
            found |= part.nodes & surveyed.usable & (part.fit.verdicts == Verdict.UNDECIDED)
    return found
