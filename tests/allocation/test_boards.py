"""Boards have in common what several nodes see, and are forgotten where they take too much."""

import gc
from dataclasses import replace

import pytest

from extender.allocation.board import Candidate, board_of
from extender.allocation.boards import CANDIDATE_SIZE, PLACE_SIZE, Boards
from extender.allocation.features import ALL
from extender.allocation.site import site_of
from extender.allocation.snapshot import Snapshot
from extender.allocation.tainting import Tainting
from extender.model.change import Changed
from extender.model.device import PLAIN
from extender.model.names import DeviceKey, DeviceName, PoolName
from extender.model.taint import DeviceTaintRule, Taint, TaintSelector, selects
from tests.allocation.small import cluster, device, node, published, selector

NODES = tuple(f"n{number}" for number in range(6))


def shared() -> Snapshot:
    """Publish for all nodes, for those of a zone and for each alone."""
    every = published("every", *(device(f"e{number}") for number in range(20)), all_nodes=True)
    some = published("some", *(device(f"s{number}") for number in range(10)), selector=selector("a"))
    own = [published(name, device("d0"), device("d1")) for name in NODES]
    return cluster(*(node(name, "ab"[place % 2]) for place, name in enumerate(NODES)), every, some, *own).snapshot


def test_nodes_have_the_candidates_in_common_that_all_of_them_see() -> None:
    snapshot = shared()
    boards = [site_of(snapshot, index, ALL).board for index in range(len(NODES))]
    made = {id(candidate) for board in boards for candidate in board.candidates}
    indices = {candidate.pool for board in boards for candidate in board.candidates if candidate.key.pool == "every"}
    assert len(made) <= len(indices) * 20 + 2 * 10 + len(NODES) * 2
    assert len(made) < sum(len(board.candidates) for board in boards) / 2


def test_a_board_is_the_same_whatever_it_has_in_common_with_others() -> None:
    snapshot = shared()
    for index, name in enumerate(snapshot.layout.nodes):
        board = site_of(snapshot, index, ALL).board
        slices = tuple(item for pool in board.pools for item in pool.here)
        assert board == board_of(snapshot.nodes[name], slices, Tainting((), {}), ALL)


def test_a_mask_has_a_bit_for_each_candidate_by_its_place() -> None:
    devices = [
        device("d0", binding_conditions=("ready",)),
        *(replace(device(name), traits=PLAIN) for name in ("d1", "d2")),
    ]
    board = board_of(node("n1"), (published("n1", *devices),), Tainting((), {}), ALL)
    assert (board.unready, board.plain, board.whole, board.several, board.shareable) == (0b001, 0b110, 0b111, 0, 0)
    nothing = board_of(node("n1"), (), Tainting((), {}), ALL)
    assert (nothing.unready, nothing.plain, nothing.whole) == (0, 0, 0)


def test_rules_about_other_pools_are_passed_over_for_all_devices_of_a_slice_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taint, asked = Taint(key="sick", effect="NoSchedule"), list[DeviceKey]()
    rules = [
        DeviceTaintRule(name=f"r{number}", selector=TaintSelector(pool=PoolName(f"n{number}")), taint=taint)
        for number in range(50)
    ]
    devices = [device(f"d{number}") for number in range(10)]
    snapshot = cluster(node("n7"), published("n7", *devices), *rules).snapshot

    def counted(rule: TaintSelector, key: DeviceKey) -> bool:
        asked.append(key)
        return selects(rule, key)

    monkeypatch.setattr("extender.allocation.tainting.selects", counted)
    board = site_of(snapshot, 0, ALL).board
    assert [candidate.taints for candidate in board.candidates] == [(taint,)] * len(devices)
    assert len(asked) == len(devices)


def test_what_a_rule_taints_is_laid_out_anew() -> None:
    built = cluster(*map(node, NODES), published("every", device("e0"), all_nodes=True))
    before = site_of(built.snapshot, 0, ALL).board
    taint = Taint(key="sick", effect="NoSchedule")
    built.apply(Changed(DeviceTaintRule(name="r", selector=TaintSelector(device=DeviceName("e0")), taint=taint)))
    after = [site_of(built.snapshot, index, ALL).board for index in range(2)]
    assert not before.candidates[0].taints
    assert all(board.candidates[0].taints == (taint,) for board in after)
    off = site_of(built.snapshot, 0, replace(ALL, device_taint_rules=False)).board
    assert not off.candidates[0].taints


def test_boards_are_forgotten_before_they_take_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = shared()
    one = PLACE_SIZE * 32 + CANDIDATE_SIZE * 2
    small = replace(snapshot, boards=Boards(room=2 * one))
    kept = []
    for index in range(len(NODES)):
        site_of(small, index, ALL)
        kept.append(len(small.boards))
    assert 1 in kept[1:]
    assert max(kept) == 2
    monkeypatch.setattr("extender.allocation.boards.BOARDS", 3)
    for index in range(len(NODES)):
        site_of(snapshot, index, ALL)
        assert len(snapshot.boards) <= 3


def test_a_board_larger_than_the_room_is_kept_alone() -> None:
    snapshot = replace(shared(), boards=Boards(room=1))
    for index in range(len(NODES)):
        site_of(snapshot, index, ALL)
        assert list(snapshot.boards) == [(index, ALL)]


def test_what_is_left_of_boards_counts_and_they_stay_as_they_are() -> None:
    snapshot = shared()
    for index in range(len(NODES)):
        site_of(snapshot, index, ALL)
    boards = snapshot.boards
    left = boards.without({0, 1})
    assert [len(boards), len(left)] == [6, 4]
    assert left._taken < boards._taken
    left = left.without(range(6))
    assert left._taken == 0


def test_candidates_go_with_the_last_board() -> None:
    snapshot = replace(shared(), boards=Boards(room=1))
    for index in range(len(NODES)):
        site_of(snapshot, index, ALL)
    gc.collect()
    mine = {id(device) for item in snapshot.inventory.slices for device in item.devices}
    alive = [item for item in gc.get_objects() if isinstance(item, Candidate) and id(item.device) in mine]
    assert len(alive) <= 32
