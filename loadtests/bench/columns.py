"""One change applied at 5,000 nodes, and selectors over 40,000 devices."""

from collections.abc import Iterator
from itertools import count

from extender.allocation.cel import Budget, Program, compile_selector
from extender.allocation.inventory import Inventory, inventory_of
from extender.allocation.selectors import Selector
from extender.allocation.sight import sight_of
from extender.model.change import Changed, Listed, Noun
from extender.model.device import ResourceSlice
from extender.model.node import Node
from extender.model.parse import parse_claim, parse_node, parse_slice
from extender.model.problem import Problem
from extender.state.cluster import Cluster
from loadtests.bench.report import Report, median_ms, times_ms
from tests import fleet

NODES = 5000
UUID = "device.attributes['gpu.example.com'].uuid == 'GPU-00000000-0000-0000-0000-000000010001'"
KIND = "device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].model == 'H100'"


def read(noun: Noun | Problem) -> Noun:
    if isinstance(noun, Problem):
        raise TypeError(str(noun))
    return noun


def cluster() -> Cluster:
    built = Cluster()
    built.apply(Listed(Node, tuple(read(parse_node(raw)) for raw in fleet.nodes(NODES))))
    built.apply(Listed(ResourceSlice, tuple(read(parse_slice(raw)) for raw in fleet.slices(NODES))))
    return built


def changes(report: Report, built: Cluster) -> None:
    """Apply a claim, a slice with other values, and slices with a device more and a device less."""
    slices = tuple(built.snapshot.inventory.slices)
    rebuild = median_ms(lambda: inventory_of(slices), 3)
    numbers = count()
    claims = [Changed(read(parse_claim(fleet.holder(number, [number % 8, 3])))) for number in range(1000)]
    spent = median_ms(lambda: built.apply(claims[next(numbers) % 1000]), 1000)
    report.add("a changed claim, us", f"{1000 * spent:.0f}", "100", f"a rebuild of the columns takes {rebuild:.0f} ms")
    for start, (what, devices) in enumerate((("values", 8), ("one device more", 9), ("one device less", 7))):
        nodes = range(200 * start, 200 * start + 200)
        fresh = iter([Changed(read(parse_slice(fleet.node_slice(node, devices, node % 7)))) for node in nodes])
        spent = median_ms(lambda: built.apply(next(fresh)), 200)  # noqa: B023 - used within this round
        report.add(f"a changed slice ({what}), ms", f"{spent:.2f}", "2", f"1/{rebuild / spent:.0f} of a rebuild")


def sweeps(report: Report, built: Cluster) -> None:
    """Evaluate selectors on every device: of a few kinds, and one that tells every device apart."""
    inventory = built.snapshot.inventory
    later = tuple(inventories(built))
    for what, text, cold_target, warm_target in (("12 kinds", KIND, "3", "1"), ("40,000 kinds", UUID, "", "")):
        program = compile_selector(text)
        compiling = median_ms(lambda: compile_selector(text), 20)  # noqa: B023 - used within this round
        plain = times_ms(lambda: each(program, inventory), 1)[0]  # noqa: B023 - used within this round
        cold = median_ms(lambda: Selector(program).sweep(inventory), 5)  # noqa: B023 - used within this round
        selector = Selector(program)
        selector.sweep(inventory)
        warm = median_ms(lambda: selector.sweep(inventory), 20)  # noqa: B023 - used within this round
        changed = iter(later)
        after = median_ms(lambda: selector.sweep(next(changed)), len(later))  # noqa: B023 - within this round
        beside = f"1/{plain / cold:.0f} of a loop over devices ({plain:.0f} ms); compiling {compiling:.2f}"
        report.add(f"a selector over 40,000 devices of {what}, cold, ms", f"{cold:.2f}", cold_target, beside)
        report.add("the same again, warm, ms", f"{warm:.4f}", warm_target, "nothing changed: the answer is looked up")
        report.add(
            "the same after one changed slice, ms",
            f"{after:.2f}",
            warm_target,
            "looked up too where it reads none of what changed",
        )


def inventories(built: Cluster) -> Iterator[Inventory]:
    """Change one slice after the other, each to the next kind, and yield what the cluster then has."""
    for number in range(20):
        built.apply(Changed(read(parse_slice(fleet.node_slice(NODES - 1 - number, 8, number % 12)))))
        yield built.snapshot.inventory


def each(program: Program, inventory: Inventory) -> None:
    for published in inventory.slices:
        for device in published.devices:
            program.evaluate(sight_of(device, published.driver), Budget())


def main() -> None:
    report = Report("columns")
    built = cluster()
    sweeps(report, built)
    changes(report, built)
    report.keep()


if __name__ == "__main__":
    main()
