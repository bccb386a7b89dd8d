"""Which sets are as fully linked as their kind of machine can have them."""

import pytest

from extender.topology.choice import Aim, Chooser
from extender.topology.demand import EXPECTED
from extender.topology.machine import Group, groups_of
from extender.topology.make import make_of
from extender.topology.policies import SHIPPED
from extender.topology.policy import Policy
from extender.topology.quality import Quality
from extender.topology.tables import shipped
from tests.topology.machines import bare, gpus

(LINKED,) = (policy for policy in SHIPPED if policy.name == "linked")


def group_of(count: int, product: str) -> Group:
    (group,) = groups_of(bare(), gpus(count, type="gpu", productName=product), shipped())
    return group


def chooser(group: Group, policy: Policy = LINKED) -> Chooser:
    return Chooser(make_of(group, policy), Aim(EXPECTED), policy)


@pytest.mark.parametrize(
    ("product", "is_linked"),
    [
        pytest.param("of no table", False, id="no links are known"),
        pytest.param("NVIDIA B200", True, id="all are linked"),
    ],
)
def test_what_a_machine_can_have_is_looked_up_once_for_each_size(
    product: str, *, is_linked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = chooser(group_of(8, product))
    lists, listed = 0, Quality.sets

    def counted(quality: Quality, free: int, size: int) -> list[int]:
        nonlocal lists
        lists += 1
        return listed(quality, free, size)

    for free in (0xFF, 0x7F):
        assert (made.best(free, 4) is not None) == is_linked
    monkeypatch.setattr(Quality, "sets", counted)
    assert (made.best(0xFE, 4) is not None) == is_linked
    # Those out of what is free, and no others.
    assert lists == 1
