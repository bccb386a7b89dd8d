import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.model.names import ClassName, DeviceKey, DeviceName, DriverName, PoolName
from extender.model.taint import Taint, TaintSelector, Toleration, blocking, evicts, selects, tolerates

TAINT = Taint(key="example.com/broken", value="fan", effect="NoSchedule")
KEY, VALUE = TAINT.key, TAINT.value
DEVICE = DeviceKey(DriverName("gpu.example.com"), PoolName("node-1"), DeviceName("gpu-0"))

effects = st.sampled_from(["NoSchedule", "NoExecute", "None", "PreferNoSchedule"])
keys, values = st.sampled_from(["a", "b"]), st.sampled_from(["", "x"])
taints = st.builds(Taint, key=keys, value=values, effect=effects)
tolerations = st.builds(
    Toleration,
    key=keys | st.just(""),
    operator=st.sampled_from(["", "Equal", "Exists", "Like"]),
    value=values,
    effect=effects | st.just(""),
)


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param(Toleration(key=KEY, operator="Equal", value=VALUE, effect="NoSchedule"), True, id="equal"),
        pytest.param(
            Toleration(key=KEY, operator="", value=VALUE, effect="NoSchedule"), True, id="no-operator-is-equal"
        ),
        pytest.param(Toleration(key=KEY, operator="Equal", value="x", effect="NoSchedule"), False, id="other-value"),
        pytest.param(Toleration(key=KEY, operator="Equal", effect="NoSchedule"), False, id="empty-value-is-a-value"),
        pytest.param(Toleration(key=KEY, operator="Exists", effect="NoSchedule"), True, id="exists"),
        pytest.param(
            Toleration(key=KEY, operator="Exists", value="x", effect="NoSchedule"), True, id="exists-ignores-value"
        ),
        pytest.param(Toleration(key=KEY, operator="Exists"), True, id="any-effect"),
        pytest.param(Toleration(key=KEY, operator="Exists", effect="NoExecute"), False, id="other-effect"),
        pytest.param(Toleration(operator="Exists"), True, id="any-key"),
        pytest.param(Toleration(value=VALUE), True, id="any-key-but-one-value"),
        pytest.param(Toleration(value="x"), False, id="any-key-and-another-value"),
        pytest.param(Toleration(key="example.com/other", operator="Exists"), False, id="other-key"),
        pytest.param(Toleration(key=KEY, operator="exists", value=VALUE), False, id="unknown-operator"),
        pytest.param(Toleration(key=KEY, operator="Exists", seconds=0), True, id="seconds-do-not-matter"),
    ],
)
def test_a_toleration_covers_a_taint_or_not(toleration: Toleration, expected: bool) -> None:  # noqa: FBT001 - a column of the table
    assert tolerates(toleration, TAINT) is expected


NO_SCHEDULE = Taint(key="a", effect="NoSchedule")
NO_EXECUTE = Taint(key="a", effect="NoExecute")
NO_EFFECT = Taint(key="a", effect="None")
UNKNOWN = Taint(key="a", effect="Explode")


@pytest.mark.parametrize(
    ("accepted", "left"),
    [
        pytest.param((), (NO_SCHEDULE, NO_EXECUTE), id="only-two-effects-block"),
        pytest.param((Toleration(key="a", effect="NoExecute"),), (NO_SCHEDULE,), id="each-needs-its-own"),
        pytest.param((Toleration(key="b"), Toleration(key="a", effect="NoSchedule")), (NO_EXECUTE,), id="any-may-help"),
        pytest.param((Toleration(operator="Exists"),), (), id="one-for-all"),
    ],
)
def test_taints_block_unless_each_is_tolerated(accepted: tuple[Toleration, ...], left: tuple[Taint, ...]) -> None:
    assert blocking((NO_SCHEDULE, NO_EXECUTE, NO_EFFECT, UNKNOWN), accepted) == left


@given(st.lists(taints), st.lists(tolerations), tolerations)
def test_another_toleration_never_blocks_more(
    present: list[Taint], accepted: list[Toleration], more: Toleration
) -> None:
    before, after = blocking(present, accepted), blocking(present, [*accepted, more])
    assert set(after) <= set(before) <= set(present)
    assert all(tolerates(more, taint) for taint in set(before) - set(after))


@given(st.lists(taints), st.lists(tolerations))
def test_what_blocks_does_not_depend_on_how_the_lists_are_given(
    present: list[Taint], accepted: list[Toleration]
) -> None:
    assert blocking(present, accepted) == blocking(iter(present), iter(accepted))
    assert set(blocking(present, accepted)) == set(blocking(present[::-1], accepted[::-1]))


@pytest.mark.parametrize(
    ("present", "accepted", "expected"),
    [
        pytest.param((NO_SCHEDULE, NO_EFFECT, UNKNOWN), (), False, id="one-effect-alone-evicts"),
        pytest.param((NO_EXECUTE,), (), True, id="not-tolerated"),
        pytest.param((NO_EXECUTE,), (Toleration(key="a", effect="NoExecute"),), False, id="tolerated"),
        pytest.param((NO_EXECUTE,), (Toleration(key="a", effect="NoExecute", seconds=9),), True, id="for-a-time"),
        pytest.param((NO_EXECUTE,), (Toleration(key="a"),), True, id="by-no-effect"),
        pytest.param((NO_EXECUTE,), (Toleration(key="b", effect="NoExecute"),), True, id="another-key"),
        pytest.param(
            (NO_EXECUTE,),
            (Toleration(key="a", effect="NoExecute", seconds=9), Toleration(operator="Exists", effect="NoExecute")),
            False,
            id="the-most-patient-counts",
        ),
    ],
)
def test_pods_are_evicted_for_what_they_do_not_tolerate_for_ever(
    present: tuple[Taint, ...], accepted: tuple[Toleration, ...], *, expected: bool
) -> None:
    assert evicts(present, accepted) is expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(TaintSelector(), True, id="empty-selects-all"),
        pytest.param(TaintSelector(driver=DEVICE.driver), True, id="driver"),
        pytest.param(TaintSelector(driver=DriverName("other")), False, id="other-driver"),
        pytest.param(TaintSelector(driver=DriverName("GPU.example.com")), False, id="case-matters"),
        pytest.param(TaintSelector(pool=DEVICE.pool), True, id="pool-of-any-driver"),
        pytest.param(TaintSelector(pool=PoolName("node-2")), False, id="other-pool"),
        pytest.param(TaintSelector(device=DEVICE.device), True, id="device-of-any-pool"),
        pytest.param(TaintSelector(device=DeviceName("")), False, id="empty-name-is-a-name"),
        pytest.param(TaintSelector(driver=DEVICE.driver, device=DeviceName("gpu-1")), False, id="all-must-hold"),
        pytest.param(TaintSelector(driver=DEVICE.driver, pool=DEVICE.pool, device=DEVICE.device), True, id="all-hold"),
        pytest.param(TaintSelector(class_name=ClassName("gpu")), True, id="names-accept-what-a-class-may-refuse"),
    ],
)
def test_a_rule_selects_by_the_names_that_it_gives(selector: TaintSelector, expected: bool) -> None:  # noqa: FBT001 - a column of the table
    assert selects(selector, DEVICE) is expected


def test_a_rule_without_a_selector_taints_nothing() -> None:
    assert not selects(None, DEVICE)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(TaintSelector(driver=DEVICE.driver), False, id="names"),
        pytest.param(TaintSelector(class_name=ClassName("gpu")), True, id="class"),
        pytest.param(TaintSelector(expressions=("true",)), True, id="expression"),
        pytest.param(TaintSelector(expressions=(None,)), True, id="unknown-kind-of-selector"),
    ],
)
def test_old_selectors_may_ask_for_attributes(selector: TaintSelector, expected: bool) -> None:  # noqa: FBT001 - a column of the table
    assert selector.asks_attributes is expected


def test_a_selector_is_the_conjunction_of_its_parts() -> None:
    driver, pool, device = (
        (DEVICE.driver, DriverName("x")),
        (DEVICE.pool, PoolName("x")),
        (DEVICE.device, DeviceName("x")),
    )
    for a, b, c in itertools.product((None, *driver), (None, *pool), (None, *device)):
        parts = TaintSelector(driver=a), TaintSelector(pool=b), TaintSelector(device=c)
        assert selects(TaintSelector(driver=a, pool=b, device=c), DEVICE) is all(
            selects(part, DEVICE) for part in parts
        )
