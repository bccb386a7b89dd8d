"""What the search of a question prefers on each board, and what it finds there is worth."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from extender.allocation.attempt import Pick
from extender.allocation.board import Board
from extender.allocation.masks import mask_of, within
from extender.allocation.preference import Preference, Tightest
from extender.allocation.question import At, Question
from extender.allocation.situation import Situation
from extender.allocation.solve import Manner, Solution
from extender.model.frozen import dataclass
from extender.scheduling.limits import Limited, Limits
from extender.topology.aliases import Place
from extender.topology.appraisal import Appraisal, Part
from extender.topology.atlas import Atlas
from extender.topology.choice import Ranker
from extender.topology.ensemble import Ensemble
from extender.topology.frames import Framed
from extender.topology.graded import Graded
from extender.topology.grades import Grades
from extender.topology.ground import Anchored, Ground, forms_of
from extender.topology.linked import Linked, Wired, taken
from extender.topology.machine import Group
from extender.topology.memo import Latest
from extender.topology.partitioned import Partitioned
from extender.topology.policy import STEP, UNREADY, Placing, Policy, spoiling
from extender.topology.portions import is_spoilt
from extender.topology.rankers import Rankers
from extender.topology.ratings import APART
from extender.topology.residual import Mix
from extender.topology.scene import offered
from extender.topology.shared import Shared
from extender.topology.together import Together
from extender.topology.words import graded_parts, parts_of

GROUNDS: Final = 1 << 10


@dataclass(frozen=True, slots=True)
class Memory:
    """What all questions share: machines, who ranks sets of them, and what stands on which board."""

    atlas: Atlas
    rankers: Rankers = field(default_factory=Rankers)
    partitioned: Partitioned = field(default_factory=Partitioned)
    grounds: Latest[Board, tuple[Policy, Mix], Ground] = field(default_factory=lambda: Latest(GROUNDS, forms_of))


def basis_of(policies: Sequence[Policy], mixes: Mapping[str, Mix]) -> Hashable:
    """Return all that decides what is preferred, beside the question itself."""
    return tuple(policies), tuple(sorted(mixes.items()))


class Panel:
    """Who chooses for each ask of a question, and on what ground: *policies* by claim, *mixes* by class of devices.

    It does not know who asks it. A question holds a snapshot, and is to go with the last who needs it: a circle would
    keep it until the collector comes, which is seldom.
    """

    def __init__(
        self, memory: Memory, question: Question, policies: Sequence[Policy], mixes: Mapping[str, Mix]
    ) -> None:
        self._memory, self.policies, self.mixes = memory, policies, mixes
        self._asks = question.asks

    def ranker(self, group: Group, at: At) -> Ranker:
        """Return who chooses of *group* for an ask."""
        return self._memory.rankers.of(group, self.policies[at.claim], self.mixes[self._asks[at].class_name])

    def placing(self, at: At) -> Placing:
        return self.policies[at.claim].placing

    def grades(self, board: Board, at: At) -> Grades:
        """Tell what an ask thinks of each candidate of *board*."""
        generations, avoided, policy = [0] * len(board.candidates), 0, self.policies[at.claim]
        for group in self._memory.atlas.on(board) if policy.is_graded else ():
            thought = self.ranker(group, at).make.grades
            for index, place in enumerate(group.indices):
                generations[place] = thought.worst(1 << index)
                avoided |= (thought.avoided >> index & 1) << place
        return Grades(tuple(generations) if policy.prefer else (), avoided)

    def wiring(self, board: Board, at: At) -> Sequence[Wired]:
        """Tell how the devices of *board* are linked, and who chooses of them."""
        return [Wired(self.ranker(group, at), group.indices) for group in self._memory.atlas.on(board)]

    def ground(self, situation: Situation) -> Ground:
        """Say what stands on a board, as the ask for most of what leads there sees it: the others go along."""
        board = situation.board
        if not self._asks:
            return Ground(board, (), (Place(),) * len(board.candidates))
        ground = self._seen_by(self._largest(self._asks), board)
        if len(set(self.policies)) == len(set(self.mixes.values())) == 1:
            return ground
        devices = {at: offered(situation, at) for at in self._asks}
        leading = [
            at for at, mask in devices.items() if mask & ground.anchors and mask.bit_count() >= self._asks[at].count
        ]
        return self._seen_by(self._largest(leading), board) if leading else ground

    def _largest(self, ats: Iterable[At]) -> At:
        return max(ats, key=lambda at: (self._asks[at].count, [-index for index in at]))

    def _seen_by(self, at: At, board: Board) -> Ground:
        name, key = board.node.name, (self.policies[at.claim], self.mixes[self._asks[at].class_name])
        known = self._memory.grounds.get(name, board, key)
        if known is None:
            known = self._laid_out(board, at)
            self._memory.grounds.put(name, board, key, known)
        return known

    def _laid_out(self, board: Board, at: At) -> Ground:
        machine = self._memory.atlas.on(board)
        sites = [Place()] * len(board.candidates)
        for group in machine:
            for index, place in zip(group.indices, group.links.places, strict=True):
                sites[index] = place
        # What leads is chosen for all asks together, and each ask is judged by its own policy afterwards.
        policy, mix = self.policies[at.claim].relaxed, self.mixes[self._asks[at].class_name]
        groups = tuple(Anchored(self._memory.rankers.of(group, policy, mix), group) for group in machine)
        return Ground(board, groups, tuple(sites))


class Preferring:
    """One question's preferences: *policies* by claim, *mixes* by class of devices; *shared* knows of shares."""

    def __init__(
        self, memory: Memory, shared: Shared, question: Question, policies: Sequence[Policy], mixes: Mapping[str, Mix]
    ) -> None:
        self._memory, self._policies, self._mixes = memory, policies, mixes
        self._panel = panel = Panel(memory, question, policies, mixes)
        linked = Linked(panel.wiring, Tightest(), self._firm, memory.partitioned)
        self._alone = Framed(memory.partitioned.placed(panel.placing), shared, linked)
        self._limits = Limits(policies, memory.atlas.on, panel.ranker)
        # Whose policies differ, or are strict, is judged claim by claim and request by request.
        joins = len(set(policies)) == 1 and not self._firm
        together = Together(panel.ground, self._alone, memory.partitioned)
        self._ensemble = Ensemble(together, self._alone, joins=joins)

    def manner(self, manner: Manner) -> Manner:
        """Search like *manner*, but prefer what is wanted here, and leave out what is not to be had."""
        is_limited = any(policy.is_strict for policy in self._policies)
        preference = self._bounded(self._ensemble)
        if any(policy.is_graded for policy in self._policies):
            # Sets that are put together here are to be had, too.
            preference = self._bounded(Graded(preference, self._panel.grades))
        return replace(
            manner,
            preference=preference,
            narrowed=self._limits.narrowed if is_limited else None,
            accepts=self._limits.accepts if self._firm else None,
            bound=self._limits.bound if self._limits.binds else None,
        )

    @property
    def basis(self) -> Hashable:
        """All that decides, beside the node and what is free there, what the search finds."""
        return basis_of(self._policies, self._mixes)

    def accepts(self, solution: Solution) -> bool:
        """Tell whether the policies have what was found."""
        return self._limits.accepts(solution.situation, solution.picks)

    def appraise(self, solution: Solution) -> Appraisal:
        """Say how good the devices of *solution* are, and why."""
        situation, given = solution.situation, tuple[Pick, ...]()
        together, apart = self._ensemble.split(situation, solution.picks)
        is_joint = self._ensemble.is_joint(situation)
        total, parts = self._ensemble.appraise(situation, together, apart)[:2] if is_joint else (0, ())
        found, asked = list(parts), _by_ask(apart)
        for at, picks in _by_ask(together):
            one = self._graded(situation, at, [pick.place for pick in picks])
            total += one.value
            found += _labelled(situation.asks[at].name, one.parts)
        for at, picks in asked:
            one = self._appraised(replace(situation, given=given), at, [pick.place for pick in picks])
            total += one.value
            found += _labelled(situation.asks[at].name if len(asked) > 1 else "", one.parts)
            given += tuple(picks)
        later = sum(at.ask for at in {pick.at for pick in solution.picks})
        besides = self._besides(solution)
        return Appraisal(total - later * STEP + sum(part.value for part in besides), (*found, *besides))

    def _besides(self, solution: Solution) -> list[Part]:
        """Say what counts of each device that is given, whichever others are."""
        situation, found = solution.situation, list[Part]()
        unready = sum(situation.board.unready >> pick.place & 1 for pick in solution.picks)
        if unready:
            found.append(Part("unready", -UNREADY * unready, f"{unready} to be made ready first"))
        fatal = sum(bool(situation.evicting(pick.at, 1 << pick.place)) for pick in solution.picks)
        if fatal:
            found.append(Part("evicting", -UNREADY * fatal, f"{fatal} for whose taints the pod is evicted in time"))
        divisible = self._memory.partitioned.divisible(situation.board)
        if whole := (taken(situation, solution.picks) & divisible).bit_count():
            every = (self._memory.partitioned.wholes(situation) & divisible).bit_count()
            found.append(Part("parts", -whole, f"{whole} of {every} whole ones that could be given in parts"))
        lost = sum(_is_spoilt(situation, pick) for pick in solution.picks)
        if lost:
            found.append(Part("spoilt", spoiling(lost), f"{lost} that nobody can share, though a part would do"))
        return found

    def _appraised(self, situation: Situation, at: At, places: Sequence[int]) -> Appraisal:
        """Appraise what one ask is given."""
        ask = situation.asks[at]
        if ask.takes_all or ask.is_admin:
            return Appraisal(0)
        framed = self._alone.value(situation, at, places)
        if framed is not None:
            return _summed(framed, self._graded(situation, at, places))
        machine = self._memory.atlas.on(situation.board)
        group = next((group for group in machine if set(places) <= set(group.indices)), None)
        if group is None:
            return _summed(Appraisal(APART), self._graded(situation, at, places))
        ranker, chosen = self._panel.ranker(group, at), within(group.indices, mask_of(places))
        whole = self._memory.partitioned.wholes(situation) & ~taken(situation, situation.given)
        free = chosen | within(group.indices, whole)
        return Appraisal(sum(ranker.summands(free, chosen)), parts_of(group, ranker, free, chosen))

    def _graded(self, situation: Situation, at: At, places: Sequence[int]) -> Appraisal:
        """Say what the policy of an ask thinks of the devices that it is given."""
        ask, policy = situation.asks[at], self._policies[at.claim]
        if ask.takes_all or ask.is_admin or not policy.is_graded:
            return Appraisal(0)
        parts = graded_parts(policy, self._panel.grades(situation.board, at), mask_of(places))
        return Appraisal(sum(part.value for part in parts), parts)

    def _bounded(self, preference: Preference) -> Preference:
        return Limited(preference, self._limits) if self._firm else preference

    @property
    def _firm(self) -> list[int]:
        return [claim for claim, policy in enumerate(self._policies) if policy.is_firm]


def _summed(one: Appraisal, other: Appraisal) -> Appraisal:
    return Appraisal(one.value + other.value, (*one.parts, *other.parts))


def _is_spoilt(situation: Situation, pick: Pick) -> bool:
    ask, place = situation.asks[pick.at], pick.place
    if not ask.capacity or ask.takes_all or ask.is_admin or situation.is_shareable(place):
        return False
    return is_spoilt(situation.board.candidates[place].device, ask.capacity)


def _by_ask(picks: Iterable[Pick]) -> list[tuple[At, list[Pick]]]:
    found: dict[At, list[Pick]] = {}
    for pick in picks:
        found.setdefault(pick.at, []).append(pick)
    return sorted(found.items())


def _labelled(request: str, parts: Iterable[Part]) -> Iterable[Part]:
    """Put the name of a request before what is said of its devices, where there are several."""
    return (part._replace(text=f"{request}: {part.text}") if request and part.text else part for part in parts)
