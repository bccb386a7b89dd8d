from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from extender.allocation.board import Board, board_of
from extender.allocation.features import ALL
from extender.allocation.tainting import Tainting
from extender.model.device import Counter, CounterConsumption, CounterSet, Device
from extender.model.quantity import parse_quantity
from extender.topology.chips import chips_of
from tests.allocation.small import device, node, published
from tests.topology.cases import board_of_case
from tests.topology.mig import case


def draws(name: str, **amounts: int) -> CounterConsumption:
    counters = tuple(Counter(key.replace("_", "-"), parse_quantity(str(value))) for key, value in amounts.items())
    return CounterConsumption(name, counters)


def board(*devices: Device, **sets: dict[str, int]) -> Board:
    """Publish devices with the counters that they draw from."""
    declared = tuple(CounterSet(name, draws(name, **amounts).counters) for name, amounts in sets.items())
    counters = replace(published("n", name="counters", count=2), shared_counters=declared)
    return board_of(node("n"), (published("n", *devices, count=2), counters), Tainting((), {}), ALL)


def test_gpus_of_one_kind_are_chips_of_one_pattern() -> None:
    chips = chips_of(board_of_case(case(("gpu-0", "gpu-9", "gpu-x"), [])))
    assert [chip.name for chip in chips] == ["gpu-0", "gpu-9", "gpu-x"]
    assert len({chip.pattern for chip in chips}) == 1
    assert [len(chip.cuts) for chip in chips] == [15, 15, 15]
    assert [chip.wholes.bit_count() for chip in chips] == [1, 1, 1]


def test_a_device_that_draws_from_two_sets_makes_them_one_chip() -> None:
    both = device("both", consumes_counters=(draws("a", slots=1), draws("b", slots=1)))
    alone = device("alone", consumes_counters=(draws("c", slots=1),))
    one = device("one", consumes_counters=(draws("b", slots=2),))
    sets = {name: {"slots": 2} for name in "abc"}
    chips = chips_of(board(one, alone, both, device("plain"), **sets))
    assert [chip.sets for chip in chips] == [("a", "b"), ("c",)]
    assert chips[0].name == "a, b"


def test_sets_that_are_joined_one_after_the_other_are_one_chip() -> None:
    joining = [device(name, consumes_counters=tuple(draws(one, slots=1) for one in name)) for name in ("ab", "cd", "e")]
    last = device("z", consumes_counters=(draws("b", slots=1), draws("d", slots=1)))
    chips = chips_of(board(*joining, last, **{name: {"slots": 9} for name in "abcde"}))
    assert [(chip.sets, tuple(chip.cuts)) for chip in chips] == [(("a", "b", "c", "d"), (0, 1, 3)), (("e",), (2,))]


def test_to_find_chips_takes_no_look_at_each_for_each_device() -> None:
    """Hundreds of slices of one pool have thousands of chips: by their square that took seconds."""
    names = [f"set-{number}" for number in range(300)]
    parts = [device(f"{name}-{half}", consumes_counters=(draws(name, slots=1),)) for name in names for half in "ab"]
    laid, looked = board(*parts, **{name: {"slots": 2} for name in names}), list[int]()

    class Counted(tuple[Any, ...]):
        __slots__ = ()

        def __iter__(self) -> Iterator[Any]:
            looked.append(len(self))
            return super().__iter__()

    (pool,) = laid.pools
    chips = chips_of(replace(laid, pools=(replace(pool, counters=Counted(pool.counters)),)))
    assert [len(chip.cuts) for chip in chips] == [2] * len(names)
    assert looked == [len(names)]


def test_without_profiles_devices_that_differ_in_the_number_of_a_slice_are_alike() -> None:
    sets = {"a": {"cores": 4, "slice_0": 1, "slice_1": 1}}
    halves = [
        device(f"half-{number}", consumes_counters=(draws("a", cores=2, **{f"slice_{number}": 1}),))
        for number in (0, 1)
    ]
    whole = device("all", consumes_counters=(draws("a", cores=4, slice_0=1, slice_1=1),))
    large = device("large", consumes_counters=(draws("a", cores=3, slice_0=1),))
    (chip,) = chips_of(board(*halves, whole, large, **sets))
    assert chip.pattern.profiles == ("2 cores + 1 slice", "3 cores + 1 slice", "whole devices")
    assert chip.name == "all"


def test_devices_that_draw_alike_are_copies_of_one_cut() -> None:
    copies = [device(f"part-{number}", consumes_counters=(draws("a", cores=1),)) for number in range(5)]
    (chip,) = chips_of(board(*copies, a={"cores": 3}))
    assert [cut.copies for cut in chip.pattern.cuts] == [5]
