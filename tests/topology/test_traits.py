"""Which devices have a trait."""

from typing import Any

import pytest

from extender.model.device import Attribute
from extender.topology.policy import Policy, Trait
from extender.topology.traits import generation_of, has_trait, is_avoided, is_forbidden
from tests.topology.machines import member, with_values


@pytest.mark.parametrize(
    ("published", "values", "is_had"),
    [
        pytest.param("NVIDIA A100-SXM4-40GB", ("NVIDIA A100*",), True, id="a star for the rest"),
        pytest.param("NVIDIA A100-SXM4-40GB", ("A100*",), False, id="the whole text counts"),
        pytest.param("NVIDIA A100-SXM4-40GB", ("*A100*",), True, id="a star on either side"),
        pytest.param("NVIDIA A100-SXM4-40GB", ("*a100*",), False, id="capitals matter"),
        pytest.param("H100", ("A100", "H100"), True, id="one of several"),
        pytest.param("a.c", ("a.c",), True, id="a dot is a dot"),
        pytest.param("abc", ("a.c",), False, id="and nothing else"),
        pytest.param("b", ("[abc]", "?"), False, id="only stars are wild"),
        pytest.param("two\nlines", ("two*",), True, id="a star for line breaks too"),
        pytest.param("a" * 64, ("*" * 30 + "b",), False, id="many stars are one"),
        pytest.param(3, ("3",), True, id="an integer by its text"),
        pytest.param(30, ("3",), False, id="another integer"),
        pytest.param(True, ("true",), True, id="true"),
        pytest.param(False, ("true",), False, id="false"),
        pytest.param(("a", "b"), ("b",), True, id="any of a list"),
    ],
)
def test_a_value_is_matched(published: Any, values: tuple[str, ...], is_had: bool) -> None:  # noqa: FBT001 - a column of the table
    device = with_values(member("gpu-0"), {"gpu.nvidia.com/thing": published})
    assert has_trait(device, Trait("gpu.nvidia.com/thing", values)) is is_had
    assert has_trait(device, Trait("thing", values)) is is_had
    assert not has_trait(device, Trait("example.com/thing", values))


def test_a_version_is_matched_by_its_text() -> None:
    one = member("gpu-0")
    device = one._replace(
        device=type(one.device)(one.device.name, (("driverVersion", Attribute("version", "12.4.0")),))
    )
    assert has_trait(device, Trait("driverVersion", ("12.*",)))


def test_what_is_absent_has_no_trait() -> None:
    assert not has_trait(member("gpu-0"), Trait("thing", ("*",)))


def test_the_first_preferred_trait_counts_and_others_come_last() -> None:
    policy = Policy(prefer=(Trait("model", ("A100",)), Trait("model", ("H100", "A100"))))
    assert [generation_of(policy, member("gpu-0", model=model)) for model in ("A100", "H100", "V100")] == [0, 1, 2]
    assert generation_of(Policy(), member("gpu-0")) == 0


def test_any_trait_is_enough_to_be_avoided_or_forbidden() -> None:
    traits = (Trait("state", ("bad",)), Trait("reserved", ("true",)))
    devices = [member("gpu-0", state="good"), member("gpu-1", state="bad"), member("gpu-2", reserved=True)]
    assert [is_avoided(Policy(avoid=traits), device) for device in devices] == [False, True, True]
    assert [is_forbidden(Policy(forbid=traits), device) for device in devices] == [False, True, True]
    assert not any(is_forbidden(Policy(avoid=traits), device) for device in devices)
