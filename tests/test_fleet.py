"""The synthetic fleet is what benchmarks take it for."""

from collections import Counter
from typing import Any

import pytest

from extender.model.claim import ResourceClaim
from extender.model.device import Device, NodeSelection, ResourceSlice
from extender.model.parse import parse_list
from extender.model.problem import Problem
from tests import fleet


def read(raws: list[dict[str, Any]]) -> list[Any]:
    found = [item for raw in raws for item in parse_list(raw)]
    assert [item for item in found if isinstance(item, Problem) or "unknown_fields=('" in repr(item)] == []
    return found


def read_slices(**options: Any) -> list[ResourceSlice]:
    return read(fleet.slices(24, **options))


def kind_of(device: Device) -> tuple[object, ...]:
    """Return what does not tell devices of one kind apart: neither identities nor places within the node."""
    kept = ("model", "architecture", "driverVersion")
    return *(value for name, value in device.attributes if name in kept), device.capacity


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_the_same_fleet_is_made_every_time(seed: int | None) -> None:
    assert fleet.slices(24, seed=seed) == fleet.slices(24, seed=seed)


def test_a_seed_deals_the_kinds_out_in_another_way() -> None:
    assert len({str(fleet.slices(24, seed=seed)) for seed in (None, 0, 1)}) == 3


def test_kinds_take_turns_and_every_device_has_an_identity() -> None:
    devices = [device for item in read_slices() for device in item.devices]
    assert set(Counter(map(kind_of, devices)).values()) == {16}
    assert len({kind_of(device) for device in devices}) == 12
    assert len({dict(device.attributes)["uuid"] for device in devices}) == len(devices) == 24 * 8


def test_claims_hold_every_device_of_their_nodes_once() -> None:
    claims = [item for item in read(fleet.claims(3)) if isinstance(item, ResourceClaim)]
    held = [result.device for claim in claims if claim.allocation for result in claim.allocation.devices]
    published = [(*item.pool_key, device.name) for item in read(fleet.slices(3)) for device in item.devices]
    assert sorted(held) == sorted(published)
    assert len({claim.key for claim in claims}) == len({claim.uid for claim in claims}) == 12


def test_claims_ask_for_a_class_that_is_there() -> None:
    asked = {slot.exactly.class_name for claim in read(fleet.claims(1)) for slot in claim.spec.requests}
    assert asked <= {item.name for item in read(fleet.classes())}


def test_nodes_are_those_of_the_slices() -> None:
    places = [NodeSelection(node_name=node.name) for node in read(fleet.nodes(24))]
    assert [item.selection for item in read_slices()] == places
