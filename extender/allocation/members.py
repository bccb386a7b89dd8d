"""Which published devices a class selects."""

import numpy as np

from extender.allocation.cel import Budget, CompileError, Verdict, compile_selector
from extender.allocation.grid import Flags
from extender.allocation.inventory import Inventory
from extender.allocation.selectors import Selector
from extender.model.claim import DeviceClass


def members_of(item: DeviceClass, inventory: Inventory) -> Flags:
    """Return bool[rows]: the devices of which all selectors of the class hold; none where one cannot be evaluated."""
    chosen = np.ones(inventory.rows, np.bool_)
    for selector in item.selectors:
        try:
            program = compile_selector(selector.expression or "")
        except CompileError:
            return np.zeros(inventory.rows, np.bool_)
        chosen &= Selector(program).sweep(inventory, Budget()).verdicts == Verdict.MATCH
    return chosen
