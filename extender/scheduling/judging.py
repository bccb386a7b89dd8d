"""What kube-scheduler's first fit would give on each node, and what that is worth."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakKeyDictionary

from extender.allocation.choose import choosing
from extender.allocation.fit import Fitter
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import Answer, Manner, Solution
from extender.allocation.work import finished_with_pauses
from extender.model.node import Pod
from extender.scheduling.findings import Findings
from extender.scheduling.part import Part
from extender.scheduling.precedent import Case
from extender.scheduling.preferring import Preferring
from extender.scheduling.taste import Forbidden, Taste
from extender.state.table import Numbers
from extender.topology.appraisal import Appraisal
from extender.topology.memo import Memo
from extender.topology.ratings import NONE
from extender.topology.shared import Beside

# New searches for one pod: nobody else is answered meanwhile. One that takes long counts as another at each pause. What
# they find is remembered for the next.
SEARCHES: Final = 64
# Policies, and mixes that are expected, of which findings are kept for one question.
BASES: Final = 4


@dataclass(slots=True)
class Judge:
    """Judges nodes. One writer."""

    manner: Manner
    # By question and what is preferred; they go with what their question saw last of the cluster.
    _findings: WeakKeyDictionary[object, Memo[Hashable, Findings]] = field(default_factory=WeakKeyDictionary)

    def judged(self, pod: Pod, taste: Taste, part: Part, snapshot: Snapshot, nodes: Numbers) -> Findings | None:
        """Judge what *pod* would get on those of *nodes* that *part* is about, as far as that is not known."""
        fitter, question = part.fitter, part.question
        if fitter is None or question is None:
            return None
        try:
            preferring = taste.preferring(question, taste.policies([item.claim for item in question.claims]))
        except Forbidden:
            return None
        found, searched = self._known(taste, fitter, preferring.basis, snapshot), 0
        needed, due = taste.meet(pod, question, fitter, snapshot), nodes[part.nodes[nodes] & found.due[nodes]]
        for node, case in _told_apart(found, fitter, needed, due):
            known = taste.advised.of(case)
            if known is None:
                if searched >= SEARCHES:
                    continue
                answer, pauses = finished_with_pauses(choosing(snapshot, node, question, self.manner))
                searched += 1 + pauses
                known = _worth(preferring, answer)
                taste.advised.put(case, known)
            found.put(node, known)
        return found

    def forget(self, part: Part) -> None:
        """Keep nothing of a question that has no answer now: the cluster goes on, and would be kept as it was."""
        if part.fitter is not None:
            self._findings.pop(part.fitter.span, None)

    def _known(self, taste: Taste, fitter: Fitter, basis: Hashable, snapshot: Snapshot) -> Findings:
        """Return what was found before that holds in *snapshot*."""
        by_basis = self._findings.setdefault(fitter.span, Memo(BASES))
        for other, known in list(by_basis.items()):
            # What is large is not to stay for those who are not asked.
            if known.taste is not taste:
                del by_basis[other]
            elif known.snapshot.layout is not snapshot.layout:
                known.update(snapshot)
        found = by_basis.get(basis)
        if found is None:
            found = by_basis[basis] = Findings(taste, basis, snapshot)
        found.update(snapshot)
        sharing = taste.sharing(fitter, snapshot)
        if sharing is not None:
            # What a pod needs beside such devices, and what is free there, is another each time.
            found.drop(sharing)
        return found


def _told_apart(found: Findings, fitter: Fitter, needed: Beside, nodes: Numbers) -> Iterator[tuple[int, Case]]:
    """Name each of *nodes* by all that decides what is found there."""
    taste, snapshot = found.taste, found.snapshot
    states, names = fitter.states_of(snapshot, nodes)
    machines = taste.atlas.numbers(snapshot)[nodes].tolist()
    for node, machine, name in zip(nodes.tolist(), machines, names, strict=True):
        beside = taste.beside(fitter, snapshot, node, needed)
        yield node, Case(states, (found.basis, machine, name, beside, taste.editions.of(snapshot, node)))


def _worth(preferring: Preferring, answer: Answer) -> Appraisal:
    return preferring.appraise(answer) if isinstance(answer, Solution) else Appraisal(NONE)
