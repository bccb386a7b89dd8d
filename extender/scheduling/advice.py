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

from extender.allocation.choose import choose, choosing
from extender.allocation.grid import Flags
from extender.allocation.result import allocations
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import FIRST, Manner, Solution
from extender.allocation.solve import Answer as Found
from extender.allocation.verdict import Verdict
from extender.allocation.work import counted
from extender.model.frozen import dataclass
from extender.model.names import NodeName
from extender.model.node import Pod
from extender.scheduling.decision import Ranked
from extender.scheduling.needs import Needs, Unplaceable, needs_of
from extender.scheduling.placement import Placement
from extender.scheduling.planner import Lookup, Plain, by_dictionary
from extender.scheduling.preferring import Preferring
from extender.scheduling.ranking import Answer, Policy, rank
from extender.scheduling.survey import Numbers, Part, Survey, Unfinished, survey
from extender.scheduling.tally import Tally
from extender.scheduling.taste import NONE, Forbidden, Taste
from extender.state.belief import Belief
from extender.topology.appraisal import Appraisal

# New searches for one pod: nobody else is answered meanwhile. One that takes long counts as another at each pause. What
# they find is remembered for the next.
SEARCHES: Final = 64
EVERY: Final = Policy(Answer.ALL)


@dataclass(frozen=True, slots=True)
class Advice:
    """The nodes that pass, with the scores of those that could be judged.

    *placement* is what kube-scheduler would give on the best of them.
    """

    nodes: tuple[str, ...]
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
    numbering: Callable[[Sequence[NodeName]], Lookup] = by_dictionary
    _lookup: tuple[Sequence[NodeName], Lookup] = ((), by_dictionary(()))

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
        numbers = self._numbers(names, snapshot)
        # A name that is not known has the number -1, the last place: it passes.
        passes = np.append(surveyed.fits | _open(surveyed), np.True_)[numbers]
        kept = tuple(name for name, passed in zip(names, passes.tolist(), strict=True) if passed)
        if not kept:
            return Plain()
        known = numbers[passes & (numbers >= 0)]
        judged = known[surveyed.fits[known]]
        return self._scored(needs, surveyed, kept, judged) if self.taste is not None else Advice(kept)

    def _numbers(self, names: Sequence[str], snapshot: Snapshot) -> Numbers:
        everything = snapshot.layout.nodes
        if self._lookup[0] is not everything:
            self._lookup = everything, self.numbering(everything)
        return self._lookup[1](names).astype(np.int64)

    def _scored(self, needs: Needs, surveyed: Survey, kept: tuple[str, ...], nodes: Numbers) -> Advice:
        """Rank *nodes* by what the first fit there is worth; those that nobody has looked at have no score."""
        taste, snapshot = self.taste, surveyed.snapshot
        rejected = tuple(surveyed.tallies())
        if taste is None:
            return Advice(kept, rejected=rejected)
        found: dict[int, Appraisal] = {}
        for part in surveyed.parts:
            found |= self._appraised(needs, taste, part, snapshot, nodes[part.nodes[nodes]])
        if not found:
            return Advice(kept, rejected=rejected)
        values = np.full(len(snapshot.layout.nodes), NONE)
        values[list(found)] = [appraisal.value for appraisal in found.values()]
        ranking = rank(snapshot, np.array(sorted(found), np.int64), (), values)
        order, names = ranking.nodes.tolist(), snapshot.layout.nodes
        scores = {names[node]: score for node, score in zip(order, ranking.scores(EVERY).tolist(), strict=True)}
        best = tuple(
            Ranked(names[node], scores[names[node]], free, found[node].value, found[node].parts)
            for node, free in zip(order[:2], ranking.free[:2].tolist(), strict=True)
        )
        return Advice(kept, scores, self._placed(surveyed, order[0], found[order[0]]), best, rejected)

    def _appraised(
        self, needs: Needs, taste: Taste, part: Part, snapshot: Snapshot, nodes: Numbers
    ) -> dict[int, Appraisal]:
        """Judge what each of *nodes* would give, once for each state of each machine."""
        if part.fitter is None or part.question is None or not len(nodes):
            return {}
        try:
            policies = taste.policies([item.claim for item in part.question.claims])
        except Forbidden:
            return {}
        needed = taste.meet(needs.pod, part.question, part.fitter, snapshot)
        preferring = taste.preferring(part.question, policies)
        states, names = part.fitter.states_of(snapshot, nodes)
        machines = taste.atlas.numbers(snapshot)[nodes].tolist()
        found, searched = dict[int, Appraisal](), 0
        for node, machine, name in zip(nodes.tolist(), machines, names, strict=True):
            beside = taste.beside(part.fitter, snapshot, node, needed)
            key = id(states), preferring.basis, machine, name, beside, taste.editions.of(snapshot, node)
            known = taste.advised.get(key)
            if known is None or known[0] is not states:
                if searched >= SEARCHES:
                    continue
                answer, pauses = counted(choosing(snapshot, node, part.question, self.manner))
                searched += 1 + pauses
                known = taste.advised[key] = states, _worth(preferring, answer)
            if known[1].value != NONE:
                found[node] = known[1]
        return found

    def _placed(self, surveyed: Survey, node: int, appraisal: Appraisal) -> Placement | None:
        part = next(part for part in surveyed.parts if part.nodes[node])
        answer = choose(surveyed.snapshot, node, part.question, self.manner) if part.question else None
        if not isinstance(answer, Solution) or part.question is None:
            return None
        claims = [item.claim for item in part.question.claims]
        given = allocations(answer, self.share_id)
        name = surveyed.snapshot.layout.nodes[node]
        return Placement(name, tuple(zip(claims, given, strict=True)), None, appraisal)


def _worth(preferring: Preferring, answer: Found) -> Appraisal:
    return preferring.appraise(answer) if isinstance(answer, Solution) else Appraisal(NONE)


def _open(surveyed: Survey) -> Flags:
    """bool[nodes]: where nobody knows, because the search was given up."""
    found = np.zeros(len(surveyed.usable), np.bool_)
    for part in surveyed.parts:
        if part.fit is not None:
            found |= part.nodes & surveyed.usable & (part.fit.verdicts == Verdict.UNDECIDED)
    return found
