"""Who chooses on which machine: one for all nodes of one make and one policy, so that nothing is worked out twice."""

from collections.abc import Mapping
from typing import Final

from extender.topology.choice import Aim, Chooser
from extender.topology.machine import Group
from extender.topology.make import Make, make_of
from extender.topology.memo import Memo
from extender.topology.policy import Policy
from extender.topology.residual import Mix

# What is asked for where nothing is known of what is asked for.
USUAL: Final = Mix.of({2: 30, 4: 25, 8: 15})
MAKES: Final = 512


class Choosers:
    """Choosers by make, policy and what will be asked for of a driver's devices."""

    def __init__(self, mixes: Mapping[str, Mix] | None = None, otherwise: Mix = USUAL) -> None:
        self.mixes = dict(mixes or {})
        self.otherwise = otherwise
        self._makes: Memo[tuple[int, Policy], tuple[Group, Make]] = Memo(MAKES)
        self._known: Memo[tuple[Make, Policy, Mix], Chooser] = Memo(MAKES)

    def of(self, group: Group, policy: Policy) -> Chooser:
        make = self._make(group, policy)
        key = make, policy, self.mix_of(group)
        chooser = self._known.get(key)
        if chooser is None:
            chooser = self._known[key] = Chooser(make, Aim(key[2]), policy)
        return chooser

    def mix_of(self, group: Group) -> Mix:
        return self.mixes.get(group.members[0].key.driver, self.otherwise)

    def _make(self, group: Group, policy: Policy) -> Make:
        known = self._makes.get((id(group), policy))
        if known is None or known[0] is not group:
            known = self._makes[id(group), policy] = group, make_of(group, policy)
        return known[1]
