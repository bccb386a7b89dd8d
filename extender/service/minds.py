"""Who decides, out of the settings: what is believed, what is ours, who chooses, who plans or advises."""

from typing import NamedTuple
from uuid import uuid4

from extender.allocation.result import Release
from extender.allocation.solve import BEST, FIRST, Manner
from extender.config.settings import Settings
from extender.scheduling.advice import Advisor
from extender.scheduling.choosing import Chooser
from extender.scheduling.commons import Commons
from extender.scheduling.planner import Planner
from extender.scheduling.ranking import Answer, AnswerPolicy
from extender.scheduling.roll import Roll
from extender.scheduling.taste import Taste
from extender.state.belief import Belief
from extender.state.domain import Domain, writer_of
from extender.topology.document import Document
from extender.web.name_table import NameTable


class Minds(NamedTuple):
    """What is believed, and who decides by it: chooser and planner, or the advisor."""

    belief: Belief
    chooser: Chooser
    planner: Planner
    advisor: Advisor
    taster: Chooser | Advisor | None
    commons: Commons

    def taste(self) -> Taste | None:
        """Return what is preferred by now, or None before anything is or where nothing ever is."""
        return self.taster.taste if self.taster is not None else None

    def take(self, document: Document) -> None:
        """Prefer from now on what *document* says."""
        if self.taster is not None:
            self.taster.taste = Taste(document, self.belief.learning.mix_for, self.commons)


def minds_of(settings: Settings) -> Minds:
    """Put together who decides, as *settings* have it."""
    manner = manner_of(settings)
    belief = Belief(settings.schedulers, settings.allocation.features, manner, domain_of(settings))
    belief.ready_within_s = settings.allocation.ready_within_seconds
    release = Release(int(settings.allocation.release.partition(".")[2]))
    chooser = Chooser(belief, lambda: str(uuid4()), manner, release)
    policy = AnswerPolicy(Answer(settings.answer.policy), settings.answer.shortlist)
    roll = Roll(lambda names: NameTable(names).rows)
    planner = Planner(belief, chooser, policy, roll)
    planner.possible.ignored = settings.allocation.ignored_resources
    advisor = Advisor(belief, chooser.share_id, manner, None, roll)
    prefers = chooser if settings.allocation.order == "best" else None
    taster = prefers if settings.ownership.mode == "owner" else advisor
    return Minds(belief, chooser, planner, advisor, taster, Commons(belief.loads))


def domain_of(settings: Settings) -> Domain:
    """Return which devices are ours, as *settings* have it."""
    told = settings.ownership
    if told.mode == "advisor":
        # Whatever keeps kube-scheduler from a device is to keep us from it, too.
        return Domain(heeded=told.owner_taint)
    writer = writer_of(settings.schedulers)
    return Domain(
        drivers=frozenset(told.drivers),
        classes=frozenset(told.classes),
        shared=frozenset(told.shared_drivers),
        taint=told.owner_taint,
        writer=writer,
    )


def manner_of(settings: Settings) -> Manner:
    """Return how to search."""
    is_advisor = settings.ownership.mode == "advisor"
    order = FIRST if settings.allocation.order == "first" or is_advisor else BEST
    return Manner(order.preference, not settings.allocation.strict and order.is_lenient, settings.allocation.steps)
