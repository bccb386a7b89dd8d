"""Who chooses on which board: asks together where they depend on each other, otherwise each by itself."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from extender.allocation.attempt import Pick
from extender.allocation.masks import mask_of, places_of
from extender.allocation.preference import Turn, fitting
from extender.allocation.question import At
from extender.allocation.situation import Situation
from extender.topology.appraisal import Appraisal
from extender.topology.frames import Framed
from extender.topology.scene import Role
from extender.topology.together import Together


class Ensemble:
    """Leaves partitions, shares and boards with one kind of devices to *alone*; the rest is chosen *together*.

    Where it *joins*, single devices that lead are chosen together on any board.
    """

    def __init__(self, together: Together, alone: Framed, *, joins: bool) -> None:
        self._together, self._alone, self._joins = together, alone, joins

    def order(self, situation: Situation) -> Sequence[Turn]:
        return self._together.order(situation) if self.is_joint(situation) else self._alone.order(situation)

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterable[tuple[int, ...]]:
        """Yield sets of *size* places out of *mask*, the best first: whole devices out of what nobody can share."""
        plain = self._alone.spared(situation, at, mask)
        if plain in (0, mask):
            return self._chosen(situation, at, mask, size, picks)
        return self._sparing(situation, at, (plain, mask), size, picks)

    def is_joint(self, situation: Situation) -> bool:
        """Tell whether there is anything to choose together: devices of several drivers, or single ones that lead."""
        scene = self._together.cast(situation).scene
        return scene.ground.is_mixed or (self._joins and scene.is_led_by_singles)

    def split(self, situation: Situation, picks: Sequence[Pick]) -> tuple[list[Pick], list[Pick]]:
        """Part picks into those that were chosen together and those that were not."""
        if not self.is_joint(situation):
            return [], list(picks)
        masks: dict[At, int] = {}
        for pick in picks:
            masks[pick.at] = masks.get(pick.at, 0) | 1 << pick.place
        apart = {at for at, mask in masks.items() if self._is_apart(situation, at, mask, ())}
        return [pick for pick in picks if pick.at not in apart], [pick for pick in picks if pick.at in apart]

    def appraise(self, situation: Situation, picks: Sequence[Pick], beside: Sequence[Pick]) -> Appraisal:
        """Say what picks are worth that were chosen together, *beside* those that were not."""
        return self._together.appraise(situation, picks, beside)

    def _sparing(
        self, situation: Situation, at: At, masks: tuple[int, int], size: int, picks: Sequence[Pick]
    ) -> Iterator[tuple[int, ...]]:
        """Yield sets of one kind first: out of the first mask, or with all of it; then sets out of the second."""
        kinds = [group.mask for group in self._together.cast(situation).scene.ground.groups]
        first, every = masks
        all_of_it = places_of(first) if first.bit_count() < size else []
        given = (*picks, *(Pick(at, place) for place in all_of_it))
        among = every & ~first if all_of_it else first
        others = self._chosen(situation, at, among, size - len(all_of_it), given)
        sets = (tuple(sorted((*all_of_it, *places))) if places else places for places in others)
        yield from fitting(sets, lambda places: any(mask_of(places) & ~kind == 0 for kind in kinds))
        yield from self._chosen(situation, at, every, size, picks)

    def _chosen(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterable[tuple[int, ...]]:
        if self.is_joint(situation) and not self._is_apart(situation, at, mask, picks):
            return self._together.sets(situation, at, mask, size, picks)
        along = self._together.along(situation, at, picks) if size and self.is_joint(situation) else None
        alone = self._alone.beside(along) if along else self._alone
        return alone.sets(situation, at, mask, size, picks)

    def _is_apart(self, situation: Situation, at: At, mask: int, picks: Sequence[Pick]) -> bool:
        role = self._together.cast(situation).scene.roles[at]
        if role is Role.ZONE:
            return False
        return role is Role.OTHER or self._alone.concerns(replace(situation, given=tuple(picks)), at, mask)
