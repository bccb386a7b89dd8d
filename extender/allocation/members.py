"""Which published devices a class selects."""

from collections.abc import Sequence

import numpy as np

from extender.allocation.cel import CompileError, Verdict, compile_selector
from extender.allocation.grid import Flags
from extender.allocation.inventory import Inventory
from extender.allocation.selectors import Selector
from extender.allocation.work import Work
from extender.model import claim


class Members:
    """The devices of which all of some selectors hold; remembers what each said of the values it has seen."""

    def __init__(self, selectors: Sequence[claim.Selector]) -> None:
        self.selectors = selectors
        self._compiled: tuple[Selector, ...] | None = None

    @property
    def size(self) -> int:
        """About how many bytes are remembered."""
        return sum(selector.size for selector in self._compiled or ())

    def forget(self) -> None:
        """Remember nothing: all is evaluated anew next time."""
        self._compiled = None

    def among(self, inventory: Inventory) -> Work[Flags]:
        """Tell piece by piece which devices they are: bool[rows]; none where a selector cannot be compiled."""
        if self._compiled is None:
            try:
                self._compiled = tuple(Selector(compile_selector(each.expression or "")) for each in self.selectors)
            except CompileError:
                return np.zeros(inventory.rows, np.bool_)
        chosen = np.ones(inventory.rows, np.bool_)
        for selector in self._compiled:
            sweep = yield from selector.sweeping(inventory)
            chosen &= sweep.verdicts == Verdict.MATCH
        return chosen
