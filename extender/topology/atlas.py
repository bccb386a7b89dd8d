"""Which machine each node of a cluster is: nodes with the same devices, as far as links and sharing go, are one."""

from collections.abc import Collection, Hashable, Iterable, Sequence
from itertools import compress, count
from operator import is_not
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from extender.allocation.board import Board
from extender.allocation.cells import DRIVER, SHAREABLE
from extender.allocation.columns import Column, are_same
from extender.allocation.distinct import distinct
from extender.allocation.inventory import Inventory
from extender.allocation.passage import Passage, passage
from extender.allocation.snapshot import Snapshot
from extender.model.device import ResourceSlice, Traits
from extender.model.node import Node
from extender.topology.aliases import Member
from extender.topology.configuration import Configuration
from extender.topology.forms import Form, Forms
from extender.topology.machine import Group, groups_of
from extender.topology.memo import CELLS, Latest

Machine = tuple[Group, ...]
# Beyond so many machines, those that no node is any more are forgotten: devices that come and go leave theirs behind.
MACHINES: Final = 1 << 14
BOARDS: Final = 1 << 10


class Atlas:
    """Machines by number, worked out once. Numbers mean the same for ever. One writer.

    *machines* has those of the last snapshot, and some from before; a number that was forgotten is given to none again.
    *attributes* are those that matter to somebody beside links.
    """

    def __init__(self, configuration: Configuration, attributes: Iterable[str] = ()) -> None:
        self.configuration = configuration
        self.machines: dict[int, Machine] = {}
        self._given = count()
        self._relevant = _relevant(configuration) | frozenset(name.rpartition("/")[2] for name in attributes)
        self._identities = _identities(configuration)
        self._labels = _labels(configuration)
        self._annotations = tuple(
            kind.peers.annotation for kind in configuration.kinds if kind.peers and kind.peers.annotation
        )
        self._numbers: dict[Hashable, int] = {}
        self._dictionaries: tuple[object, ...] = ()
        self._names: dict[int, tuple[ResourceSlice, tuple[str, ...]]] = {}
        self._last: tuple[Snapshot, NDArray[np.int32]] | None = None
        self._mixed: tuple[NDArray[np.int32], bool] | None = None
        # Matrices are large, and nodes that are alike have them in common.
        self._forms = Forms()
        # The pairs of devices of machines that were told since some were forgotten last.
        self._cells = 0
        # Of the last board of each node: those before it went with what was published then.
        self._boards: Latest[Board, tuple[()], Machine] = Latest(BOARDS, forms_of)

    def numbers(self, snapshot: Snapshot) -> NDArray[np.int32]:
        """Return the number of each node's machine, int32[nodes]; its groups count the node's local devices."""
        last = self._last
        if last and _is_same(last[0], snapshot):
            return last[1]
        columns = self._columns(snapshot.inventory)
        dictionaries = tuple(column.dictionary for column in columns)
        is_continued = are_same(dictionaries, self._dictionaries)
        if not is_continued:
            self._numbers, self._dictionaries, last = {}, dictionaries, None
        way = _way(last[0], snapshot) if last else None
        changed: Sequence[int] = range(len(snapshot.layout.nodes))
        if last is None or way is None:
            numbers = np.zeros(len(changed), np.int32)
        else:
            numbers, changed = way.carried(last[1]), _changed(last[0], snapshot, way)
        # Their codes are the same in any dictionary: nothing begins anew where the first device that is shared comes.
        columns += [snapshot.inventory.column(SHAREABLE), _drawing(snapshot.inventory.traits)]
        self._number(snapshot, columns, changed, numbers)
        # With more nodes than that, each of its own, there would be something to forget at every change.
        if not is_continued or len(self.machines) > max(MACHINES, 2 * len(numbers)) or self._cells > CELLS:
            self._forget_machines(numbers)
        numbers.setflags(write=False)
        self._last = snapshot, numbers
        return numbers

    def is_mixed(self, snapshot: Snapshot) -> bool:
        """Tell whether any node has devices of several kinds that may go together."""
        numbers = self.numbers(snapshot)
        if self._mixed is None or self._mixed[0] is not numbers:
            used = distinct(numbers).tolist()
            self._mixed = numbers, any(len(self.machines[number]) > 1 for number in used)
        return self._mixed[1]

    def on(self, board: Board) -> Machine:
        """Return the groups of a board's candidates."""
        known = self._boards.get(board.node.name, board, ())
        if known is None:
            members = [Member(candidate.key, candidate.device) for candidate in board.candidates]
            known = groups_of(board.node, members, self.configuration, self._forms)
            self._boards.put(board.node.name, board, (), known)
        return known

    def _number(
        self, snapshot: Snapshot, columns: Sequence[Column[Any]], changed: Sequence[int], numbers: NDArray[np.int32]
    ) -> None:
        layout = snapshot.layout
        self._forget_names(snapshot.inventory)
        codes = np.stack([column.codes for column in columns], axis=1) if len(changed) > 1 else None
        for node in changed:
            rows = layout.local(node)
            told = codes[rows] if codes is not None else np.array([column.codes[rows] for column in columns]).T
            known = snapshot.nodes[layout.nodes[node]]
            indices = layout.local_slices(node).tolist()
            published = [snapshot.inventory.slices[index] for index in indices]
            left = _left_over(snapshot.inventory, indices)
            key = (told.tobytes(), tuple(map(self._named, published)), self._said_of(known, published), left)
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = next(self._given)
                older = {indices[place] for place in left}
                self.machines[number] = self._machine(snapshot, known, rows.tolist(), older)
            numbers[node] = number

    def _forget_machines(self, numbers: NDArray[np.int32]) -> None:
        """Forget the machines that are not among *numbers*."""
        used, self._cells = set(distinct(numbers).tolist()), 0
        self._numbers = {key: number for key, number in self._numbers.items() if number in used}
        self.machines = {number: machine for number, machine in self.machines.items() if number in used}

    def _machine(self, snapshot: Snapshot, node: Node, rows: Sequence[int], older: Collection[int]) -> Machine:
        """Group the devices in *rows*, but for those of the slices that are *older*: each is there once."""
        inventory = snapshot.inventory
        places = [place for place, row in enumerate(rows) if not older or inventory.slice_at(row) not in older]
        members = [Member(inventory.key(rows[place]), inventory.device(rows[place])) for place in places]
        found = groups_of(node, members, self.configuration, self._forms, places)
        self._cells += sum(form.cells for form in forms_of(found))
        return found

    def _named(self, published: ResourceSlice) -> tuple[str, ...]:
        known = self._names.get(id(published))
        if known is None or known[0] is not published:
            known = self._names[id(published)] = published, _names_of(published)
        return known[1]

    def _forget_names(self, inventory: Inventory) -> None:
        """Forget the names in slices that are published no more, once these are some; they keep the slices."""
        if len(self._names) > 5 * len(inventory.slices) // 4:
            published = set(map(id, inventory.slices))
            self._names = {key: known for key, known in self._names.items() if key in published}

    def _said_of(self, node: Node, published: Iterable[ResourceSlice]) -> Hashable:
        """Return what of a node itself decides: labels that rules name, and links in annotations, which are its own.

        Annotations go by the identities of devices, and may tell of those that are published later.
        """
        labels = tuple(item for item in node.labels if item[0] in self._labels)
        notes = tuple(item for item in node.annotations if item[0] in self._annotations)
        return labels, (node.name, notes, self._identities_in(published)) if notes else None

    def _identities_in(self, published: Iterable[ResourceSlice]) -> Hashable:
        devices = (device for item in published for device in item.devices)
        return tuple(
            tuple(item for item in device.attributes if item[0].rpartition("/")[2] in self._identities)
            for device in devices
        )

    def _columns(self, inventory: Inventory) -> list[Column[Any]]:
        paths = (
            path
            for path in inventory.columns
            if path == DRIVER or (path[0] == "attributes" and path[-1] in self._relevant)
        )
        return [inventory.columns[path] for path in sorted(paths)]


def _drawing(traits: Column[Traits]) -> Column[Traits]:
    """Tell by codes of 0 and 1 which devices draw from counters."""
    numbers = traits.table(lambda its: bool(its.consumes_counters))
    return Column(numbers.astype(np.int32)[traits.codes], traits.dictionary)


def _left_over(inventory: Inventory, indices: Iterable[int]) -> tuple[int, ...]:
    """Tell which of these slices are left over of an older generation of their pool, by their place among them."""
    standings = map(inventory.standing.value, indices)
    return tuple(place for place, standing in enumerate(standings) if standing is not None and standing.age)


def forms_of(machine: Machine) -> tuple[Form, ...]:
    """Return what of a machine is large."""
    return tuple(group.form for group in machine)


def _is_same(before: Snapshot, after: Snapshot) -> bool:
    return before.inventory is after.inventory and before.layout is after.layout and before.nodes is after.nodes


def _way(before: Snapshot, after: Snapshot) -> Passage | None:
    """Say what has become of nodes; None where any may be another machine."""
    if before.layout is after.layout and before.inventory is after.inventory:
        return Passage(np.zeros(0, np.int64))
    return passage(before, after)


def _changed(before: Snapshot, after: Snapshot, way: Passage) -> Sequence[int]:
    """Return the nodes that may be other machines than before."""
    moved: Iterable[int] = ()
    if before.nodes is not after.nodes:
        names = after.layout.nodes
        moved = compress(count(), map(is_not, map(before.nodes.get, names), map(after.nodes.get, names)))
    renamed = _renamed(before, after) if way.origin is None and before.inventory is not after.inventory else ()
    return sorted({*moved, *way.changed.tolist(), *renamed})


def _renamed(before: Snapshot, after: Snapshot) -> Iterable[int]:
    """Yield the nodes of slices whose devices have other names, which no column has and links go by."""
    left, right = before.inventory.slices, after.inventory.slices
    for index in compress(range(len(right)), map(is_not, left, right)):
        node = int(after.layout.node_of_slice[index])
        if node >= 0 and _names_of(left[index]) != _names_of(right[index]):
            yield node


def _names_of(published: ResourceSlice) -> tuple[str, ...]:
    return tuple(device.name for device in published.devices)


def _relevant(configuration: Configuration) -> frozenset[str]:
    """Return the names, without their domains, of the attributes that links depend on; identities are not among them.

    A link in an attribute names its peer by the device's name; only one in an annotation goes by identities.
    """
    names = {"type"}
    for kind in configuration.kinds:
        names |= {name for alias, given in kind.aliases if alias != "uuid" for name in given}
        names |= {level.attribute for level in kind.levels or ()}
        names |= {kind.peers.attribute} if kind.peers else set()
    return frozenset(name.rpartition("/")[2] for name in names if name)


def _identities(configuration: Configuration) -> frozenset[str]:
    names = (name for kind in configuration.kinds for alias, given in kind.aliases if alias == "uuid" for name in given)
    return frozenset(name.rpartition("/")[2] for name in names)


def _labels(configuration: Configuration) -> frozenset[str]:
    selectors = [kind.match.nodes for kind in configuration.kinds]
    selectors += [product.nodes for kind in configuration.kinds for product in kind.products]
    return frozenset(key for labels in selectors for key, _ in labels)
