"""What was chosen on a node, to be chosen again on every other that is in the same state: nothing is searched twice."""

from collections.abc import Hashable
from typing import Final, Generic, NamedTuple, TypeVar
from weakref import ReferenceType, ref

from extender.allocation.board import Candidate
from extender.allocation.node_state import States
from extender.allocation.question import At
from extender.allocation.result import Given
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import Solution
from extender.model.names import DeviceKey, NodeName
from extender.topology.appraisal import Appraisal
from extender.topology.memo import Memo

V = TypeVar("V")
# Cases that are remembered.
CASES: Final = 1 << 13


class Case(NamedTuple):
    """All that decides what a question is given on a node. *states* are what names in the key mean something within."""

    states: States
    key: Hashable


class Precedent(NamedTuple):
    """Which of a node's local devices each ask got, by their positions, and what these are worth."""

    picks: tuple[tuple[At, int], ...]
    appraisal: Appraisal

    def given(self, snapshot: Snapshot, node: int) -> list[Given]:
        """Return the devices of *node* that stand where those stood."""
        rows, inventory = snapshot.layout.local(node), snapshot.inventory
        found = list[Given]()
        for at, position in self.picks:
            row = int(rows[position])
            index = inventory.slice_at(row)
            published = inventory.slices[index]
            device = published.devices[row - int(inventory.starts[index])]
            place = inventory.keys[index]
            key = DeviceKey(place.driver, place.pool, device.name)
            found.append(Given(at, Candidate(key, device, published, 0, ())))
        return found


class Vain(NamedTuple):
    """What is said of each node in a state in which nothing was found; *is_open*: the search was given up.

    *is_overfull*: devices were found, and with them more configuration than can be written.
    """

    message: str
    is_open: bool = False
    is_overfull: bool = False

    def __str__(self) -> str:
        return self.message

    def on(self, node: NodeName) -> "Vain":
        return self._replace(message=self.message.format(node=node))


SHORT: Final = Vain("the devices of node {node} do not suffice any more")
FORBIDDEN: Final = Vain("the devices of node {node} are forbidden by the claim's policy")
OPEN: Final = Vain(
    "the search for devices of node {node} was given up before it was known whether they suffice", is_open=True
)


class Cases(Generic[V]):
    """What followed from cases. One writer. States that nobody else knows any more are not kept for it."""

    def __init__(self, most: int = CASES) -> None:
        self._known: Memo[tuple[int, Hashable], tuple[ReferenceType[States], V]] = Memo(most)

    def __len__(self) -> int:
        return len(self._known)

    def of(self, case: Case) -> V | None:
        """Return what followed from a case that was like *case* in everything."""
        known = self._known.get((id(case.states), case.key))
        return known[1] if known is not None and known[0]() is case.states else None

    def put(self, case: Case, value: V) -> None:
        self._known[id(case.states), case.key] = ref(case.states), value


def precedent_of(solution: Solution, appraisal: Appraisal, snapshot: Snapshot) -> Precedent | None:
    """Return what others can be given likewise; None where *solution* is of more than whole, free devices."""
    picks = _picked(solution, snapshot)
    return None if picks is None else Precedent(picks, appraisal)


def _picked(solution: Solution, snapshot: Snapshot) -> tuple[tuple[At, int], ...] | None:
    """Return the positions of the devices of *solution*; None where some of the board can be had in parts.

    What parts are worth depends on more than the node.
    """
    situation, found = solution.situation, list[tuple[At, int]]()
    is_plain = not any(ask.is_admin or ask.takes_all for ask in situation.asks.values())
    if not is_plain or any(map(_has_parts, situation.board.candidates)):
        return None
    for pick in solution.picks:
        rows = snapshot.inventory.rows_of(situation.board.candidates[pick.place].key)
        if len(rows) != 1 or snapshot.usage.codes[rows[0]]:
            return None
        found.append((pick.at, int(snapshot.layout.position_of_row[rows[0]])))
    return tuple(found)


def _has_parts(candidate: Candidate) -> bool:
    traits = candidate.device.traits
    return bool(traits.consumes_counters) or traits.allow_multiple_allocations
