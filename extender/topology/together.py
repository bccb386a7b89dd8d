"""All that a pod asks for chosen together: accelerators first, then what is close to them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from extender.allocation.attempt import Pick
from extender.allocation.masks import mask_of
from extender.allocation.preference import Preference, Turn
from extender.allocation.question import At
from extender.allocation.situation import Situation
from extender.topology.appraisal import Appraisal
from extender.topology.cast import Cast, Sets, Wanted
from extender.topology.ground import Grounds
from extender.topology.leads import Leads
from extender.topology.memo import Memo
from extender.topology.partitioned import Partitioned
from extender.topology.scene import Role, Scene

# Situations that are remembered: searches of several nodes may take turns.
SITUATIONS: Final = 16
# Sets that are passed over without a pause; then the search looks at all, at a step for each.
PATIENCE: Final = 1000


class Together:
    """Lets accelerators choose first, with an eye on what is free around them; what is not known goes *otherwise*.

    *partitioned* tells which devices are there for sets of others, and which could be given in parts instead.
    """

    def __init__(self, ground_of: Grounds, otherwise: Preference, partitioned: Partitioned) -> None:
        self._ground_of, self._otherwise, self._partitioned = ground_of, otherwise, partitioned
        self._chosen: Memo[int, Cast] = Memo(SITUATIONS)

    def order(self, situation: Situation) -> Sequence[Turn]:
        return self.cast(situation).scene.order()

    def sets(self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]) -> Sets:
        """Yield sets of *size* places out of *mask*, those first that go best with what was picked."""
        cast = self.cast(situation)
        wanted = Wanted(at, mask, size, _taken(situation, picks))
        seen: set[tuple[int, ...]] = set()
        patience = PATIENCE
        for places in self._sets(cast, wanted) if size else ():
            if not places:
                yield places
                continue
            is_fit = places not in seen and (patience <= 0 or cast.agree(at, places))
            patience -= not is_fit
            if is_fit:
                seen.add(places)
                yield places
        tried = cast.tried(at) if size else ()
        if any(mask & ~one == 0 for one in tried):
            return
        for places in self._otherwise.sets(situation, at, mask, size, picks):
            chosen = mask_of(places)
            if tuple(sorted(places)) not in seen and not any(chosen & ~one == 0 for one in tried):
                yield places

    def along(self, situation: Situation, at: At, picks: Sequence[Pick]) -> Callable[[Sequence[int]], int] | None:
        """Say of places for an ask, which others value, what can go along with them; None where nothing does."""
        cast = self.cast(situation)
        wanted = Wanted(at, 0, 0, _taken(situation, picks))
        match cast.scene.roles[at]:
            case Role.LEAD:
                return Leads(cast, wanted, self._otherwise).along
            case Role.PARTNER:
                return partial(cast.along, wanted)
        return None

    def appraise(self, situation: Situation, picks: Sequence[Pick], beside: Sequence[Pick] = ()) -> Appraisal:
        """Say what the devices of a pod are worth together, *beside* what was not chosen together."""
        return self.cast(situation).merits.appraisal(picks, beside)

    def cast(self, situation: Situation) -> Cast:
        """Return what is worked out of a situation; each is remembered for as long as its search may take."""
        known = self._chosen.get(id(situation))
        if known is None or known.scene.situation is not situation:
            ground = self._ground_of(situation)
            known = self._chosen[id(situation)] = Cast(Scene(situation, ground, self._partitioned))
        return known

    def _sets(self, cast: Cast, wanted: Wanted) -> Sets:
        match cast.scene.roles[wanted.at]:
            case Role.LEAD:
                return Leads(cast, wanted, self._otherwise).sets()
            case Role.PARTNER:
                return cast.partners(wanted)
            case Role.ZONE:
                return cast.zones(wanted)
        return iter(())


def _taken(situation: Situation, picks: Sequence[Pick]) -> tuple[Pick, ...]:
    """Leave what is more than looked at."""
    return tuple(pick for pick in picks if not situation.asks[pick.at].is_admin)
