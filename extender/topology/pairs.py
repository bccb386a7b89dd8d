"""What it costs others that devices are taken: anchors and partners that stay free make fewer pairs, or less close."""

from collections.abc import Sequence
from typing import Final

from extender.allocation.masks import mask_of, places_of
from extender.topology.ground import Kind
from extender.topology.memo import Memo
from extender.topology.quality import ONE
from extender.topology.scene import Scene

# States of which it is remembered what pairs are worth.
WORTHS: Final = 1 << 12


class Pairs:
    """Of one question on one board; a pair on one root is worth *loss*. Masks are of candidates.

    What is remembered is by kind, what leads and what else is taken: a search asks for the same again and again.
    """

    def __init__(self, scene: Scene, loss: int) -> None:
        self.scene, self.loss = scene, loss
        self._worths: Memo[tuple[str, int, int], int] = Memo(WORTHS)
        self._losses: Memo[tuple[str, int, int], dict[int, int]] = Memo(WORTHS)

    def lost(self, kind: Kind, leads: int, taken: int) -> int:
        """Return what it costs others that *leads* and *taken* are away: pairs that could have been made."""
        return self.loss * self.gone(kind, leads, taken) // ONE

    def cheapest(self, kind: Kind, leads: int, among: int, count: int) -> int:
        """Return what *count* partners out of *among*, if there are, cost at least, beyond what *leads* cost."""
        losses = self.losses(kind, leads, 0)
        least = sorted(losses.get(place, 0) for place in places_of(among & mask_of(kind.places)))[:count]
        return self.loss * sum(least) // ONE if len(least) == count else 0

    def gone(self, kind: Kind, leads: int, taken: int) -> int:
        """Return what all pairs are worth less, of ONE."""
        return self._worth(kind, 0, 0) - self._worth(kind, leads, taken)

    def losses(self, kind: Kind, leads: int, taken: int) -> dict[int, int]:
        """Return what pairs are worth less without each free partner; of what is shared there is always more."""
        key = kind.driver, leads, taken
        known = self._losses.get(key)
        if known is None:
            lost = kind.losses(self.scene.free_anchors(leads), self.scene.left(taken))
            shared = self.scene.ground.board.shareable
            known = self._losses[key] = {place: one for place, one in lost.items() if not shared >> place & 1}
        return known

    def adds_up(self, kind: Kind, leads: int, taken: int, places: Sequence[int]) -> bool:
        """Tell whether partners cost together what they cost one by one, which is never more: none are worth more."""
        more = self.gone(kind, leads, taken | mask_of(places)) - self.gone(kind, leads, taken)
        losses = self.losses(kind, leads, taken)
        return more == sum(losses.get(place, 0) for place in places)

    def _worth(self, kind: Kind, leads: int, taken: int) -> int:
        key = kind.driver, leads, taken
        known = self._worths.get(key)
        if known is None:
            known = self._worths[key] = kind.worth(self.scene.free_anchors(leads), self.scene.left(taken))
        return known
