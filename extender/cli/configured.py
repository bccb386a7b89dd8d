"""What a service with some settings says of a recorded cluster: its own code decides, on what was recorded."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from extender.allocation.solve import Failure, Undecided
from extender.cli.answer import NodeAnswer
from extender.cli.case import Case
from extender.cli.replay import Recording
from extender.config.settings import Settings
from extender.model.change import Changed, Kind, Listed
from extender.model.claim import Allocation, DeviceClass, ResourceClaim
from extender.model.device import ResourceSlice
from extender.model.frozen import dataclass
from extender.model.names import NodeName
from extender.model.node import Node, Pod
from extender.model.taint import DeviceTaintRule
from extender.scheduling.endings import Ending
from extender.scheduling.needs import Needs, Unplaceable, needs_of
from extender.scheduling.placement import Placement
from extender.scheduling.precedent import Vain
from extender.scheduling.servable import unserved
from extender.scheduling.survey import Survey, Unfinished, survey
from extender.scheduling.tally import Unwanted, text_of, word_of
from extender.service.minds import Minds, minds_of
from extender.topology.document import Document

# What a service follows, but for what bound pods take of CPU and memory.
FOLLOWED: Final[tuple[Kind, ...]] = (Node, DeviceClass, ResourceSlice, DeviceTaintRule, ResourceClaim, Pod)


def answers(settings: Settings, document: Document, found: Recording, case: Case, pod: Pod) -> Iterator[NodeAnswer]:
    """Answer for each node what *pod* gets for the claims of *case*: by a service that has seen all that was *found*.

    It was started a moment ago: nothing is promised to others, closed, or learnt from before.
    """
    minds = minds_of(settings)
    minds.take(document)
    for kind in FOLLOWED:
        minds.belief.apply(Listed(kind, found.all(kind)))
    for claim in case.claims:
        minds.belief.apply(Changed(claim))
    needs = needs_of(pod, minds.belief)
    if isinstance(needs, Unplaceable):
        return _refused(case, needs)
    surveyed = _surveyed(needs, minds)
    if isinstance(surveyed, Unplaceable):
        return _refused(case, surveyed)
    judged = _Judged(settings, minds, case, needs, surveyed)
    return map(judged.answer, range(len(surveyed.snapshot.layout.nodes)))


def _refused(case: Case, refused: Unplaceable) -> Iterator[NodeAnswer]:
    return (NodeAnswer(node=node.name, reason=f"{refused.word}: {refused.detail}") for node in case.nodes)


def _surveyed(needs: Needs, minds: Minds) -> Survey | Unplaceable:
    """Judge every node, however long that takes."""
    snapshot, questions = minds.belief.cluster.snapshot, minds.belief.questions
    while True:
        try:
            return survey(needs, snapshot, questions, minds.taste())
        except Unfinished:
            for fitter in questions.late():
                fitter.fit(snapshot)


@dataclass(frozen=True, slots=True)
class _Judged:
    """A pod of which is known where it fits."""

    settings: Settings
    minds: Minds
    case: Case
    needs: Needs
    surveyed: Survey

    def answer(self, number: int) -> NodeAnswer:
        """Say what the pod gets on a node, or why it gets nothing there."""
        name, part = self.surveyed.snapshot.layout.nodes[number], self.surveyed.part_at(number)
        if not self.surveyed.usable[number]:
            tie = next(self.surveyed.ties(np.array([number])))
            return NodeAnswer(node=name, reason=f"{tie.word}: {tie.message}")
        match part.reason(number):
            case None:
                return self._placed(name, part.unwanted())
            case Failure(message, is_local):
                local, fatal = (message, "") if is_local else ("", message)
                return NodeAnswer(node=name, node_error=local, fatal_error=fatal)
            case Undecided() as why:
                return NodeAnswer(node=name, fits=None, node_error=text_of(why))
            case why:
                return NodeAnswer(node=name, reason=f"{word_of(why)}: {text_of(why)}")

    def _placed(self, name: NodeName, unwanted: Unwanted) -> NodeAnswer:
        """Choose devices; where none are found after all, it is because of strict policies, if there are any."""
        missing = unserved(self.needs, name, self.minds.belief, self.settings.allocation.ignored_resources)
        if missing:
            return NodeAnswer(node=name, reason=f"{Ending.FAILED}: {missing}")
        placement = self.minds.chooser.place(self.needs, name)
        match placement:
            case Placement():
                return NodeAnswer(node=name, fits=True, allocations=self._allocations(placement))
            case Vain(is_overfull=True):
                return NodeAnswer(node=name, fatal_error=str(placement))
            case Vain(is_open=True):
                return NodeAnswer(node=name, fits=None, node_error=str(placement))
            case Vain() if unwanted.policies:
                return NodeAnswer(node=name, reason=f"{word_of(unwanted)}: {text_of(unwanted)}")
        return NodeAnswer(node=name, reason=f"{Ending.FAILED}: {placement}")

    def _allocations(self, placement: Placement) -> tuple[Allocation, ...]:
        """Return what each claim has there, in the order of the pod; the claim that is yet to be made comes last."""
        given = {claim.key: allocation for claim, allocation in placement.claims}
        given |= {claim.key: claim.allocation for claim in self.needs.allocated if claim.allocation}
        order = {claim.key: place for place, claim in enumerate(self.case.claims)}
        return tuple(given[key] for key in sorted(given, key=lambda key: order.get(key, len(order))))
