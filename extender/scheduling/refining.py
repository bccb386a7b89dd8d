"""What the best nodes are worth exactly, where requests depend on each other: worked out by the search itself."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

import numpy as np

from extender.allocation.choose import choosing
from extender.allocation.fit import Fitter
from extender.allocation.question import Question
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import Answer, Solution, Undecided
from extender.scheduling.begun import Left
from extender.scheduling.choosing import Chooser
from extender.scheduling.part import Part
from extender.scheduling.precedent import Case
from extender.scheduling.preferring import Preferring
from extender.scheduling.ranking import FULL, Ranking
from extender.scheduling.survey import Survey, Unfinished
from extender.scheduling.taste import Taste
from extender.state.table import Numbers
from extender.topology import appraisal
from extender.topology.appraisal import Appraisal
from extender.topology.ratings import NONE

# Nodes that are looked at closely: those of which most can be expected, and where that was too much and some of them
# are alike, as many behind them that are not. Where a strict policy has few of them, FAR are looked at before these few
# are enough; no shortlist is longer than ENOUGH.
CLOSELY: Final = 24
FAR: Final = 72
# So many that are unlike those looked at are told apart.
BEHIND: Final = 720
ENOUGH: Final = FULL + 1
# New searches for one pod: nobody else is answered meanwhile. One that takes long counts as so many at each pause.
SEARCHES: Final = 96
PAUSE: Final = 3
# Searches that were given up, after which no new ones are begun: the next look goes on behind them.
GIVEN_UP: Final = 8
NOWHERE: Final = np.arange(0)
# An odd number of which no two states are likely to make the same.
FACTOR: Final = 0x5851F42D4C957F2D
# What nobody knows: the search was given up.
OPEN: Final = Appraisal(NONE, (appraisal.Part("open", 0, "the search was given up"),))
# What is remembered of thousands of states is told in a few ways only.
_shared: Final = lru_cache(maxsize=1024)(Appraisal)


def refined(chooser: Chooser, surveyed: Survey, ranking: Ranking) -> Ranking:
    """Rank the first nodes of *ranking* by what their devices are worth when chosen; leave out those without any.

    Nodes behind them stay behind them. Which ones are looked at does not depend on what is remembered.
    Raise Unfinished.
    """
    taste = chooser.taste
    if taste is None or is_settled(taste, surveyed):
        return ranking
    taste.looked_at = {}
    closely = _Closely(chooser, taste, surveyed, ranking, ranking.values.copy())
    closely.look_in_front()
    closely.look_behind()
    return closely.ranked()


@dataclass(slots=True)
class _Closely:
    """The places of a ranking, with what is expected of them or, where they were looked at, was found.

    Looked at were so many in *front*, and those *behind*.
    """

    chooser: Chooser
    taste: Taste
    surveyed: Survey
    ranking: Ranking
    values: Numbers
    front: int = 0
    behind: Numbers = field(default_factory=lambda: NOWHERE)
    searches: int = 0
    given_up: int = 0

    def look_in_front(self) -> None:
        """Look at the first; where a strict policy has little on these, it may have more on the next."""
        count, fresh = len(self.values), self.ranking.fresh
        while self.front < count and self.given_up < GIVEN_UP and not _is_enough(self.values[: self.front], fresh):
            first, self.front = self.front, min(self.front + CLOSELY, fresh if self.front < fresh else count)
            self._look(np.arange(first, self.front))

    def look_behind(self) -> None:
        """Look for what those that are alike hide: at the first of each other state, as far as it may be better."""
        end = self._promising()
        known = np.unique(self._states(0, self.front)) if self.front < end else NOWHERE
        if self.front < end and len(known) < CLOSELY:
            states = self._states(self.front, end)
            unlike = np.flatnonzero(~np.isin(states, known))[:BEHIND]
            _, firsts = np.unique(states[unlike], return_index=True)
            self.behind = self.front + unlike[np.sort(firsts)[: CLOSELY - len(known)]]
            self._look(self.behind)

    def _promising(self) -> int:
        """Return the end of those behind the first of which more is expected than was found on these."""
        fresh = self.ranking.fresh
        if self.front >= fresh or self.taste.atlas.is_mixed(self.surveyed.snapshot):
            # What is near what no estimate tells.
            return fresh
        expected, found = self.ranking.values[self.front : fresh], self.values[: self.front].max(initial=NONE)
        return self.front + int(np.searchsorted(-expected, -found)) if expected[0] > found else self.front

    def ranked(self) -> Ranking:
        values, fresh, seen = self.values, self.ranking.fresh, np.arange(self.front)
        rest = np.arange(self.front, len(values))
        if len(self.behind):
            seen, rest = np.concatenate((seen, self.behind)), rest[~np.isin(rest, self.behind)]
        # Behind a few that a strict policy has, nobody knows of any.
        if np.count_nonzero(values[seen] != NONE) < min(ENOUGH, len(seen)):
            rest = rest[:0]
        nodes, free = self.ranking.nodes, self.ranking.free
        # What was expected of those that are worth the same says nothing any more.
        first = seen[np.lexsort((nodes[seen], free[seen], -values[seen], seen >= fresh))]
        order = np.concatenate((first, rest))
        order = order[values[order] != NONE]
        return Ranking(nodes[order], free[order], _descending(values[order]), int(np.count_nonzero(order < fresh)))

    def _look(self, places: Numbers) -> None:
        nodes = self.ranking.nodes
        for part in self.surveyed.parts:
            here = places[part.nodes[nodes[places]]]
            if len(here) and part.fitter is not None and part.question is not None:
                self.values[here] = self._worth(part, part.fitter, part.question, nodes[here])

    def _worth(self, part: Part, fitter: Fitter, question: Question, nodes: Numbers) -> list[int]:
        """Work out what each of *nodes* is worth, once for each state of each machine."""
        taste, snapshot = self.taste, self.surveyed.snapshot
        numbers = taste.atlas.numbers(snapshot)[nodes].tolist()
        states, names = fitter.states_of(snapshot, nodes)
        basis, sharing = taste.number(question, part.policies), taste.sharing(fitter, snapshot)
        values, preferring = [NONE] * len(numbers), None
        for index, (node, number, name) in enumerate(zip(nodes.tolist(), numbers, names, strict=True)):
            beside = taste.beside(fitter, snapshot, node, part.needed) if sharing is not None else None
            case = Case(states, (basis, number, name, beside, taste.editions.of(snapshot, node)))
            known = taste.found.of(case)
            if known is None:
                if self.given_up >= GIVEN_UP:
                    continue
                preferring = preferring or taste.preferring(question, part.policies)
                answer, seen = self._searched(case, preferring, question, node)
                known = self._appraised(part, preferring, answer, node, seen)
                taste.found.put(case, known)
                self.given_up += known is OPEN
            taste.looked_at[node] = known
            values[index] = known.value
        return values

    def _searched(
        self, key: Hashable, preferring: Preferring, question: Question, node: int
    ) -> tuple[Answer, Snapshot]:
        """Search on a node, or go on where that was left off; say in which cluster. Raise Unfinished."""
        left = self.taste.begun.take(key)
        if left is None:
            manner, snapshot = replace(preferring.manner(self.chooser.manner), is_sure=True), self.surveyed.snapshot
            left = Left(choosing(snapshot, node, question, manner), snapshot)
        # What was given up in earlier turns of this look counts, too.
        self.given_up += left.given_up
        self.searches += 1
        try:
            while self.searches <= SEARCHES:
                next(left.work)
                self.searches += PAUSE
        except StopIteration as end:
            return end.value, left.snapshot
        self.taste.begun.leave(key, left._replace(given_up=self.given_up))
        raise Unfinished(is_search=True)

    def _appraised(self, part: Part, preferring: Preferring, answer: Answer, node: int, seen: Snapshot) -> Appraisal:
        """Say what a search has found, which is remembered: whoever gets it need not search again."""
        if isinstance(answer, Undecided):
            return OPEN
        if not isinstance(answer, Solution) or not preferring.accepts(answer):
            return _shared(NONE)
        taste, found = self.taste, preferring.appraise(answer)
        if part.fitter is not None and part.question is not None:
            case = taste.case(part.fitter, part.policies, self.surveyed.snapshot, node)
            told = found._replace(basis=taste.basis(part.question, part.policies))
            taste.remember(case, answer, _shared(*told), seen)
        return _shared(*found)

    def _states(self, first: int, end: int) -> Numbers:
        """Return numbers for what machine each of the places is and what is free there, int64[end - first]."""
        snapshot, nodes = self.surveyed.snapshot, self.ranking.nodes[first:end]
        told = self.taste.atlas.numbers(snapshot)[nodes].astype(np.int64)
        for word in snapshot.free[nodes].view(np.int64).T:
            told = told * FACTOR + word
        return told


def is_settled(taste: Taste | None, surveyed: Survey) -> bool:
    """Tell whether nodes need not be looked at closely: what they are worth is known."""
    snapshot = surveyed.snapshot
    return taste is None or all(
        part.fitter is None or taste.is_exact(part.fitter, snapshot, part.policies) for part in surveyed.parts
    )


def is_open(taste: Taste | None, surveyed: Survey) -> bool:
    """Tell whether, as this was ranked just now, a search was given up: a strict policy may have a set there."""
    return taste is not None and not is_settled(taste, surveyed) and OPEN in taste.looked_at.values()


def _is_enough(values: Numbers, fresh: int) -> bool:
    found = int(np.count_nonzero(values != NONE))
    return bool(found) and (found >= ENOUGH or len(values) >= min(FAR, fresh))


def _descending(values: Numbers) -> Numbers:
    """Lower what is only an estimate to what was worked out before it."""
    return np.minimum.accumulate(values) if len(values) else values
