from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.usage import UNUSED, Usage
from extender.model.claim import AllocatedDevice, Allocation, ClaimSpec, ResourceClaim
from extender.model.names import DeviceKey, DeviceName, DriverName, ObjectKey, PoolName, Uid
from extender.model.quantity import parse_quantity
from extender.state.occupancy import Occupancy


def key(name: str) -> DeviceKey:
    return DeviceKey(DriverName("gpu.example.com"), PoolName("n1"), DeviceName(name))


def claim(uid: str, *devices: AllocatedDevice) -> ResourceClaim:
    allocation = Allocation(devices=devices) if devices else None
    return ResourceClaim(key=ObjectKey("default", uid), uid=Uid(uid), spec=ClaimSpec(), allocation=allocation)


def whole(name: str, *, admin: bool = False) -> AllocatedDevice:
    return AllocatedDevice(request="r", device=key(name), admin_access=admin)


def share(name: str, share_id: str, memory: str) -> AllocatedDevice:
    consumed = (("memory", parse_quantity(memory)),)
    return AllocatedDevice(request="r", device=key(name), share_id=share_id, consumed_capacity=consumed)


def test_a_device_in_two_claims_stays_taken_until_both_let_go() -> None:
    occupancy = Occupancy()
    occupancy.put(claim("a", whole("gpu-0")))
    occupancy.put(claim("b", whole("gpu-0")))
    occupancy.drop(ObjectKey("default", "a"))
    assert occupancy.usage(key("gpu-0")) == Usage(dedicated=1)
    occupancy.drop(ObjectKey("default", "b"))
    assert occupancy.usage(key("gpu-0")) == UNUSED


def test_admin_access_takes_nothing() -> None:
    occupancy = Occupancy()
    occupancy.put(claim("a", whole("gpu-0", admin=True)))
    assert occupancy.usage(key("gpu-0")) == UNUSED


def test_shares_add_up_what_they_consume_and_give_it_back() -> None:
    occupancy = Occupancy()
    occupancy.put(claim("a", share("gpu-0", "1", "10Gi")))
    occupancy.put(claim("b", share("gpu-0", "2", "5Gi")))
    assert occupancy.usage(key("gpu-0")) == Usage(shares=2, consumed=(("memory", parse_quantity("15Gi").nanos),))
    occupancy.drop(ObjectKey("default", "a"))
    assert occupancy.usage(key("gpu-0")) == Usage(shares=1, consumed=(("memory", parse_quantity("5Gi").nanos),))


def test_without_sharing_a_share_takes_all_of_its_device_and_gives_it_back() -> None:
    occupancy = Occupancy(sharing=False)
    occupancy.put(claim("a", share("gpu-0", "1", "10Gi")))
    assert occupancy.usage(key("gpu-0")) == Usage(dedicated=1)
    assert [hold.device for hold in occupancy.holds_of(ObjectKey("default", "a"))] == [key("gpu-0")]
    occupancy.drop(ObjectKey("default", "a"))
    assert occupancy.usage(key("gpu-0")) == UNUSED
    assert occupancy.holds_of(ObjectKey("default", "a")) == ()


def test_a_share_without_capacity_holds_the_device() -> None:
    occupancy = Occupancy()
    occupancy.put(claim("a", AllocatedDevice(request="r", device=key("gpu-0"), share_id="1")))
    assert occupancy.usage(key("gpu-0")) == Usage(shares=1)


DEVICES = ("gpu-0", "gpu-1", "gpu-2")
CHANGES = st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.sampled_from(DEVICES), max_size=3)), max_size=20)


@given(CHANGES)
def test_any_order_of_changes_ends_in_the_use_that_the_claims_spell(changes: list[tuple[str, list[str]]]) -> None:
    occupancy = Occupancy()
    last: dict[str, list[str]] = {}
    for uid, names in changes:
        occupancy.put(claim(uid, *map(whole, names)))
        last[uid] = names
    expected = Counter(name for names in last.values() for name in names)
    assert all(occupancy.usage(key(name)) == Usage(dedicated=expected[name]) for name in DEVICES)
