"""Whom it helps that others go, by counting: devices that are all alike, of which everybody who is left keeps his."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.usage import WHOLE, Hold
from extender.model.change import Changed
from extender.model.names import NodeName, Uid
from extender.scheduling.veto import helped
from extender.state.belief import Belief
from extender.state.ledger import ClaimHold, Event, Promise
from tests.scheduling.cast import belief_of, chooser_of, claim, consumer, device, gpus, held, node, pod

NODES = ("n1", "n2")
# They are of every importance: less, as much and more than who asks.
PODS = tuple(pod(f"v{number}", f"of-v{number}", priority=number % 3) for number in range(6))
PRIORITY = 1
# How far it has come with what a pod was promised, from what nobody was told of to what nobody knows to be written.
WOKEN, TOLD, RESERVED, WRITTEN, UNKNOWN = "woken", "told", "reserved", "written", "unknown"
AFTER = {WRITTEN: Event.ACCEPTED, UNKNOWN: Event.UNANSWERED}


@dataclass(frozen=True)
class Taking:
    """So many devices of a node, and by whose claim: one that is allocated, or merely promised to its only user."""

    node: str
    devices: int
    users: frozenset[int]
    promised: str = ""

    def is_kept(self, gone: frozenset[int]) -> bool:
        """Tell whether somebody has it still, nobody being asked to free what is reserved for nobody."""
        leaves = {user for user in self.users if self.promised == WOKEN and PODS[user].priority < PRIORITY}
        return not self.users or bool(self.users - gone - leaves)


users = st.frozensets(st.integers(0, len(PODS) - 1), max_size=3)
takings = st.builds(Taking, st.sampled_from(NODES), st.integers(1, 2), users)
promised = st.builds(
    Taking,
    st.sampled_from(NODES),
    st.integers(1, 2),
    st.integers(0, len(PODS) - 1).map(lambda user: frozenset((user,))),
    st.sampled_from((WOKEN, TOLD, RESERVED, WRITTEN, UNKNOWN)),
)


def believed(taken: tuple[Taking, ...], devices: Mapping[str, int]) -> Belief:
    """Return a cluster in which that is taken of so many *devices*, one after the other."""
    belief = belief_of(*(item for name in NODES for item in (node(name), gpus(name, devices[name]))), *PODS)
    places = {name: count() for name in NODES}
    for number, each in enumerate(taken):
        keys = [device(each.node, next(places[each.node])) for _ in range(each.devices)]
        item = claim(f"c{number}", each.devices)
        if not each.promised:
            reserved = tuple(consumer(PODS[user]) for user in sorted(each.users))
            belief.apply(Changed(replace(held(item, *keys), reserved_for=reserved)))
            continue
        belief.apply(Changed(item))
        (user,) = (PODS[user].uid for user in each.users)
        holds = (ClaimHold(item.uid, tuple(Hold(key, WHOLE) for key in keys)),)
        promise = Promise(user, NodeName(each.node), holds, is_answer=each.promised != WOKEN)
        assert belief.ledger.offer(promise)
        if each.promised in (RESERVED, WRITTEN, UNKNOWN):
            assert belief.ledger.reserve(promise)
        if each.promised in AFTER:
            belief.ledger.tell(user, AFTER[each.promised])
    return belief


@given(
    allocated=st.lists(takings, max_size=4),
    under_way=st.lists(promised, max_size=3, unique_by=lambda each: each.users),
    spare=st.fixed_dictionaries(dict.fromkeys(NODES, st.integers(0, 1))),
    victims=st.fixed_dictionaries(dict.fromkeys(NODES, users)),
    asked=st.integers(1, 3),
)
def test_others_may_go_exactly_where_those_who_are_left_leave_enough(
    allocated: list[Taking],
    under_way: list[Taking],
    spare: dict[str, int],
    victims: dict[str, frozenset[int]],
    asked: int,
) -> None:
    # Who goes from one node is on no other, nor is he promised anything there.
    elsewhere = {name: {user for each in under_way if each.node != name for user in each.users} for name in NODES}
    victims = {"n1": victims["n1"] - elsewhere["n1"], "n2": victims["n2"] - victims["n1"] - elsewhere["n2"]}
    taken = *allocated, *under_way
    devices = {name: spare[name] + sum(each.devices for each in taken if each.node == name) for name in NODES}
    belief = believed(taken, devices)
    belief.apply(Changed(claim("asked", asked)))
    left = {
        name: devices[name] - sum(each.devices for each in taken if each.node == name and each.is_kept(victims[name]))
        for name in NODES
    }
    uids: dict[NodeName, tuple[Uid, ...]] = {
        NodeName(name): tuple(PODS[user].uid for user in sorted(victims[name])) for name in NODES
    }
    found = helped(pod("p", "asked", priority=PRIORITY), uids, chooser_of(belief), 0.0)
    assert set(found) == {name for name in NODES if left[name] >= asked}
