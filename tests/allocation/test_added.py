"""What rules add to all devices at once is what they add to each."""

from dataclasses import replace
from random import Random

import pytest

from extender.allocation.added import Taints, added_taints
from extender.allocation.columns import Dictionary
from extender.allocation.inventory import Inventory, inventory_of
from extender.allocation.selectors import PIECE
from extender.allocation.tainting import Tainting
from extender.allocation.work import finished
from extender.model.claim import DeviceClass, Selector
from extender.model.names import ClassName, DeviceName, DriverName, PoolName
from extender.model.taint import DeviceTaintRule, Taint, TaintSelector
from tests.allocation.small import DRIVER, device, published

OLD = "device.attributes['gpu.example.com'].model == 'old'"
TEXTS = (OLD, "device.attributes['gpu.example.com'].missing == 1", "nonsense", "device.driver == 'other'", None)
CLASS = ClassName("old")
CLASSES = {CLASS: DeviceClass(name=CLASS, selectors=(Selector(OLD),))}


def drawn_rule(random: Random, index: int) -> DeviceTaintRule:
    selector = TaintSelector(
        driver=random.choice((None, DRIVER, DriverName("other"))),
        pool=random.choice((None, PoolName("n1"), PoolName("n2"))),
        device=random.choice((None, None, DeviceName("d1"))),
        class_name=random.choice((None, None, CLASS, ClassName("gone"))),
        expressions=tuple(random.sample(TEXTS, random.choice((0, 0, 1, 2)))),
    )
    taint = Taint(key=random.choice("ab"), effect="NoSchedule")
    return DeviceTaintRule(name=f"r{index}", selector=selector if random.random() < 0.9 else None, taint=taint)


def drawn_inventory(random: Random) -> Inventory:
    return inventory_of(
        replace(
            published(
                pool,
                *(
                    device(f"d{index}", {"model": random.choice(("old", "new"))})
                    for index in range(random.randint(0, 4))
                ),
            ),
            driver=driver,
        )
        for pool in ("n1", "n2", "n3")
        for driver in (DRIVER, DriverName("other"), DriverName("z.example.com"))
    )


def test_the_column_says_of_each_device_what_the_rules_say_of_it() -> None:
    dictionary: Dictionary[Taints] = Dictionary()
    for seed in range(300):
        random = Random(seed)  # noqa: S311 - no secret depends on it
        inventory = drawn_inventory(random)
        rules = {rule.name: rule for rule in (drawn_rule(random, index) for index in range(random.randint(0, 4)))}
        column = finished(added_taints(inventory, rules, CLASSES, dictionary))
        alone = Tainting(tuple(rules[name] for name in sorted(rules)), CLASSES)
        expected = [alone.taints(inventory.key(row), inventory.device(row)) for row in range(inventory.rows)]
        assert [column.value(row) or () for row in range(inventory.rows)] == expected, seed


@pytest.mark.parametrize(
    "selector",
    [
        TaintSelector(device=DeviceName("d1")),
        TaintSelector(expressions=("device.attributes['gpu.example.com'].serial == 'x'",)),
    ],
    ids=["names", "expressions"],
)
def test_a_rule_for_many_devices_is_applied_in_pieces(selector: TaintSelector) -> None:
    inventory = inventory_of(published(f"n{index}", device("d", {"serial": index})) for index in range(3 * PIECE))
    rules = {"r": DeviceTaintRule(name="r", selector=selector, taint=Taint(key="a", effect="NoSchedule"))}
    assert sum(1 for _ in added_taints(inventory, rules, {}, Dictionary())) > 2


def test_an_expression_is_evaluated_once_for_each_kind_of_device(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def counted(*what: object) -> bool:
        asked.append(what)
        return True

    monkeypatch.setattr("extender.allocation.added.may_match", counted)
    inventory = inventory_of(
        published(f"n{index}", *(device(f"d{place}", {"model": "old", "serial": place}) for place in range(8)))
        for index in range(20)
    )
    rules = {
        "r": DeviceTaintRule(
            name="r", selector=TaintSelector(expressions=(OLD,)), taint=Taint(key="a", effect="NoSchedule")
        )
    }
    assert finished(added_taints(inventory, rules, {}, Dictionary())).codes.all()
    assert len(asked) == 1
