"""Who ranks the sets of a machine: one for all nodes of one make and policy, so that nothing is worked out twice."""

from dataclasses import replace
from typing import Final
from weakref import WeakKeyDictionary

from extender.topology.choice import Ranker
from extender.topology.machine import Group
from extender.topology.make import Make, make_of
from extender.topology.memo import Memo
from extender.topology.policy import Policy, Wish
from extender.topology.quality import Quality
from extender.topology.residual import Mix, Packing

MAKES: Final = 512


class Rankers:
    """Rankers by make, policy and what will be asked for."""

    def __init__(self) -> None:
        # Groups go with the boards and machines that they are of.
        self._makes: WeakKeyDictionary[Group, dict[Policy, Make]] = WeakKeyDictionary()
        self._packings: Memo[object, Packing] = Memo(MAKES)
        self._known: Memo[tuple[Make, Policy, Mix], Ranker] = Memo(MAKES)

    def of(self, group: Group, policy: Policy, mix: Mix) -> Ranker:
        if group.is_beside and policy.links is Wish.STRICT:
            # NICs have no links among them: who wants linked GPUs wants some beside them all the same.
            policy = replace(policy, links=Wish.PREFERRED)
        key = self._make(group, policy), policy, mix
        ranker = self._known.get(key)
        if ranker is None:
            shape = key[0].shape
            packing = self._packings.get(shape)
            if packing is None:
                packing = self._packings[shape] = Packing(Quality(shape))
            ranker = self._known[key] = Ranker(key[0], mix, policy, packing)
        return ranker

    def _make(self, group: Group, policy: Policy) -> Make:
        known = self._makes.get(group)
        if known is None:
            known = self._makes[group] = {}
        make = known.get(policy)
        if make is None:
            make = known[policy] = make_of(group, policy)
        return make
