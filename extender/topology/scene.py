"""A pod's question on the ground of a board: who chooses first, and who follows whom."""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import cached_property, reduce
from itertools import chain
from operator import or_
from typing import NamedTuple

from extender.allocation.attempt import Pick
from extender.allocation.masks import mask_of, places_of
from extender.allocation.preference import Turn, slack
from extender.allocation.question import At
from extender.allocation.situation import Situation
from extender.model.frozen import dataclass
from extender.topology.ground import Ground, Kind
from extender.topology.partitioned import Partitioned
from extender.topology.portions import WHOLE, taken_of


class Role(IntEnum):
    """In the order of choosing. LEAD: the others follow it. PARTNER: one for each lead. ZONE: of a NUMA node."""

    LEAD = 0
    PARTNER = 1
    ZONE = 2
    OTHER = 3


class Want(NamedTuple):
    """How many partners are wanted, *among* which; *shares*: their places where all are shared, as often as needed."""

    among: int
    number: int
    shares: tuple[int, ...]


def offered(situation: Situation, at: At) -> int:
    """Return the mask of what an ask could be given."""
    found = situation.eligible[at]
    return mask_of(found.every) if found.every else found.free


@dataclass(frozen=True, eq=False)
class Scene:
    """A situation and the ground under it. *partitioned* tells which devices are there for sets of others."""

    situation: Situation
    ground: Ground
    partitioned: Partitioned

    @cached_property
    def asks(self) -> dict[Turn, At]:
        """Of each slot the ask that counts: the first one that could be had."""
        found: dict[Turn, At] = {}
        for at, ask in self.situation.asks.items():
            turn = Turn(at.claim, at.slot)
            # Who takes all there is has nothing where there is none.
            if turn not in found and not ask.is_admin and self.mask(at).bit_count() >= max(ask.takes_all, ask.count):
                found[turn] = at
        return found

    @cached_property
    def roles(self) -> dict[At, Role]:
        roles = {at: self._role(at) for at in self.situation.asks}
        if self.ground.anchors or Role.LEAD in roles.values():
            return roles
        # Nothing is known of links. The others follow whatever looks most like accelerators, or else comes first.
        firm = [at for at in self.asks.values() if roles[at] in (Role.PARTNER, Role.OTHER)]
        if len(self.asks) > 1 and firm:
            first = max(firm, key=lambda at: (self._products(at), [-index for index in at]))
            roles[first] = Role.LEAD
        return roles

    @cached_property
    def is_led_by_singles(self) -> bool:
        """Whether several asks choose what leads, each one device: by itself it has no links to be chosen by."""
        if len(self.situation.asks) == 1:
            return False
        leading = [at for at in self.asks.values() if self.mask(at) & self.ground.anchors]
        return len(leading) > 1 and all(self.size(at) == 1 for at in leading)

    @cached_property
    def unheld(self) -> int:
        return self.situation.unheld

    @cached_property
    def whole(self) -> int:
        """The mask of that of which nobody has any part."""
        return self.partitioned.wholes(self.situation)

    @cached_property
    def divided(self) -> int:
        """The mask of that which others could have parts of."""
        return self.partitioned.divisible(self.ground.board)

    @property
    def cut(self) -> int:
        """The mask of anchors that nobody holds and that are yet there for no set: parts, and what has lost some."""
        return self.ground.anchors & self.unheld & ~self.whole

    def order(self) -> list[Turn]:
        """Return the slots in turn: what takes all first, for it has no choice; in each role the most constrained."""
        return sorted((Turn(at.claim, at.slot) for at in self.situation.asks if at.ask == 0), key=self._precedence)

    def mask(self, at: At) -> int:
        """Return what an ask could be given."""
        return offered(self.situation, at)

    def size(self, at: At) -> int:
        """Return how many devices an ask takes."""
        return self.situation.size(at)

    def later(self, at: At, role: Role, picks: Sequence[Pick]) -> list[At]:
        """Return the asks of a role that are still to choose when *at* does."""
        done = {Turn(pick.at.claim, pick.at.slot) for pick in picks} | {Turn(at.claim, at.slot)}
        return [other for turn, other in self.asks.items() if turn not in done and self.roles[other] is role]

    def given(self, picks: Iterable[Pick], role: Role) -> int:
        """Return the mask of what asks of a role were given."""
        return mask_of({pick.place for pick in picks if self.roles[pick.at] is role})

    def led(self, claim: int, picks: Iterable[Pick]) -> int:
        """Return the mask of what leads for a claim: its own where it has any, or else that of all of the pod."""
        leads = [pick for pick in picks if self.roles[pick.at] is Role.LEAD]
        return mask_of({pick.place for pick in leads if pick.at.claim == claim} or {pick.place for pick in leads})

    def wanted(self, kind: Kind, asks: Iterable[At]) -> Want:
        """Say what *asks* want of a kind of partners."""
        mine = [at for at in asks if self.kind(at) is kind]
        among, number = reduce(or_, map(self._likely, mine), 0), sum(map(self.size, mine))
        return Want(among, number, () if among & ~self.ground.board.shareable else self._shares(mine, among, number))

    def _likely(self, at: At) -> int:
        """Return what an ask is given as far as that goes: who takes all of a device leaves what others could share."""
        likely, candidates, draws = self.mask(at), self.ground.board.candidates, self.situation.eligible[at].draws
        shared = [place for place in places_of(likely & self.ground.board.shareable) if place in draws]
        is_named = bool(self.situation.asks[at].capacity)
        parts = mask_of(one for one in shared if is_named or taken_of(candidates[one].device, draws[one]) < WHOLE)
        for fewer in (likely & ~mask_of(shared) | parts, parts):
            likely = fewer if fewer.bit_count() >= self.size(at) else likely
        return likely

    def _shares(self, asks: Sequence[At], among: int, most: int) -> tuple[int, ...]:
        """List the shared devices that *asks* could have, as often as they serve one of them; of those alike *most*."""
        found: dict[object, list[int]] = {}
        for place in places_of(among):
            alike = found.setdefault(self.ground.sites[place], [])
            alike += [place] * min(most - len(alike), self._servable(asks, place))
        return tuple(chain.from_iterable(found.values()))

    def _servable(self, asks: Sequence[At], place: int) -> int:
        """Count the asks that a device serves one after the other."""
        consumed, count = dict(self.situation.usages[place].consumed), 0
        have = {name: whole.value.nanos for name, whole in self.ground.board.candidates[place].device.capacity}
        for at in asks:
            drawn = self.situation.eligible[at].draws.get(place)
            amounts = {name: consumed.get(name, 0) + amount.nanos for name, amount in drawn.amounts} if drawn else {}
            if self.mask(at) >> place & 1 and all(amount <= have[name] for name, amount in amounts.items()):
                consumed, count = consumed | amounts, count + 1
        return count

    def united(self, asks: Iterable[At]) -> int:
        """Return what any of *asks* could be given."""
        return reduce(or_, map(self.mask, asks), 0)

    def kind(self, at: At) -> Kind:
        """Return the kind of partners that an ask is for; the role of the ask must be PARTNER."""
        mask = self.mask(at)
        return next(kind for kind in self.ground.kinds if mask & mask_of(kind.places))

    def left(self, taken: int) -> int:
        """Return the mask of what others can still have when *taken* is; of what is shared, there is always more."""
        return self.unheld & ~taken | self.ground.board.shareable

    def free_anchors(self, taken: int) -> int:
        """Return the mask of the anchors that others can still have as a whole when *taken* is."""
        return self.ground.anchors & self.whole & ~taken & ~self.ground.cut_by(taken)

    def _role(self, at: At) -> Role:
        # What is asked for with adminAccess is only looked at: it leads nobody, follows nobody, and takes nothing.
        mask = 0 if self.situation.asks[at].is_admin else self.mask(at)
        if mask & self.ground.leading:
            return Role.LEAD
        if mask & self.ground.partners:
            return Role.PARTNER
        return Role.ZONE if mask & self.ground.zoned else Role.OTHER

    def _products(self, at: At) -> int:
        sites = self.ground.at(places_of(self.mask(at)))
        return sum(site.bus is not None and bool(site.product) for site in sites)

    def _precedence(self, turn: Turn) -> tuple[bool, Role, int, Turn]:
        at = self.asks.get(turn, At(*turn, 0))
        return not self.situation.asks[at].takes_all, self.roles[at], slack(self.situation, turn), turn
