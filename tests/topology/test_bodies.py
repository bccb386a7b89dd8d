from dataclasses import replace

import pytest

from extender.model.device import Traits
from extender.topology.aliases import Member
from extender.topology.bodies import bodies_of
from extender.topology.machine import groups_of
from extender.topology.tables import shipped
from tests.topology import mig
from tests.topology.cases import board_of_case
from tests.topology.machines import bare, gpus


def members(*names: str) -> list[Member]:
    """Return the devices of A100s that can be cut."""
    return [Member(one.key, one.device) for one in board_of_case(mig.case(names, [])).candidates]


@pytest.mark.parametrize(
    ("taken", "cut"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param(["gpu-1-mig-1g5gb-19-6"], ["gpu-1"], id="a part of one"),
        pytest.param(["gpu-0-mig-1g5gb-19-0", "gpu-1-mig-3g20gb-9-4"], ["gpu-0", "gpu-1"], id="parts of both"),
        pytest.param(["gpu-0"], [], id="one that is taken whole"),
    ],
)
def test_a_gpu_is_cut_where_somebody_has_a_part_of_it(taken: list[str], cut: list[str]) -> None:
    known = members("gpu-0", "gpu-1")
    names = [one.device.name for one in known]
    bodies = bodies_of(groups_of(bare(), known, shipped()))
    free = sum(1 << place for place, name in enumerate(names) if name not in taken)
    assert [name for place, name in enumerate(names) if bodies.cut(free) >> place & 1] == cut
    assert [name for place, name in enumerate(names) if not bodies.parts >> place & 1] == ["gpu-0", "gpu-1"]


def test_what_is_shared_is_told_and_what_nobody_else_draws_beside_is_no_body() -> None:
    shared, plain = gpus(2)
    shared = Member(shared.key, replace(shared.device, traits=Traits(allow_multiple_allocations=True)))
    alone = next(one for one in members("gpu-0") if one.device.name == "gpu-0")
    bodies = bodies_of(groups_of(bare(), [shared, plain, alone], shipped()))
    assert bodies == ((), 0, 1)
