"""What configures drivers is taken over as it is, or told to be flawed and not taken over at all."""

import math
from decimal import Decimal
from typing import Any

import orjson
import pytest

from extender.kube.decoding import decoded
from extender.kube.objects import with_allocation
from extender.model.claim import Allocation, Consumer, DeviceClass, flaws_in
from extender.model.names import Uid
from extender.model.parse import parse_class
from extender.model.parse.opaque import DEEPEST, MARK, flaw_in
from tests.model.parse.exemplars import CLAIM, CLASS, SPEC
from tests.model.parse.reading import changed, read_claim

PARAMETERS = ("spec", "devices", "config", 0, "opaque", "parameters")
IN_CLASS = ("spec", "config", 0, "opaque", "parameters")
IN_ALLOCATION = ("status", "allocation", "devices", "config", 0, "opaque", "parameters")
NO_UNICODE = "has text that is no Unicode, and cannot be handed to a driver as it is"
TOO_LARGE = "has a number of more than 64 bits, and cannot be handed to a driver as it is"
TOO_DEEP = "nests deeper than 200 levels, and cannot be written into an allocation"


def nested(levels: int, value: object = 1) -> object:
    for _ in range(levels):
        value = [value]
    return value


FLAWED: dict[str, tuple[Any, str]] = {
    "text": (f"a{MARK}", NO_UNICODE),
    "within": ({"a": [1, {"b": MARK}]}, NO_UNICODE),
    "key": ({f"{MARK}": 1}, NO_UNICODE),
    "deep": (nested(DEEPEST), TOO_DEEP),
    "very deep": (nested(1000), TOO_DEEP),
    "large": ({"seed": decoded(b"123456789012345678901234567890")}, TOO_LARGE),
    "very large": ([1e300], TOO_LARGE),
}


@pytest.mark.parametrize("value", [None, {}, {"a": ["�", 1.5, True, None]}, nested(DEEPEST)])
def test_what_can_be_handed_through_has_no_flaw(value: object) -> None:
    assert flaw_in(value) == ""


@pytest.mark.parametrize("text", ["18446744073709551615", "-9223372036854775808", "0", "-0.25", "1e18", "1e-7"])
def test_numbers_of_64_bits_are_handed_through_as_they_are(text: str) -> None:
    read = decoded(text.encode())
    assert flaw_in({"seed": read}) == ""
    assert Decimal(orjson.dumps(read).decode()) == Decimal(text)


@pytest.mark.parametrize("text", ["18446744073709551616", "-9223372036854775809", "-" + "9" * 30, "9" * 300, "1e300"])
def test_numbers_that_may_have_lost_digits_are_flawed(text: str) -> None:
    assert flaw_in({"seed": decoded(text.encode())}) == TOO_LARGE


# As YAML has them.
@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, math.inf, -math.inf, math.nan])
def test_numbers_that_cannot_be_written_are_flawed(value: float) -> None:
    assert flaw_in({"seed": value}) == TOO_LARGE


@pytest.mark.parametrize("name", FLAWED)
def test_flawed_configuration_of_a_claim_is_not_taken_over(name: str) -> None:
    value, flaw = FLAWED[name]
    claim = read_claim(changed(CLAIM, *PARAMETERS, value=value))
    assert claim.spec.config[0].opaque is None
    assert flaws_in(claim.spec.config) == (f"config[0].opaque: {flaw}",)


@pytest.mark.parametrize("name", FLAWED)
def test_flawed_configuration_of_a_class_is_not_taken_over(name: str) -> None:
    value, flaw = FLAWED[name]
    read = parse_class(changed(CLASS, *IN_CLASS, value=value))
    assert isinstance(read, DeviceClass)
    assert read.config[0].opaque is None
    assert flaws_in(read.config) == (f"config[0].opaque: {flaw}",)


@pytest.mark.parametrize("name", FLAWED)
def test_a_claim_with_a_flawed_allocation_has_its_devices(name: str) -> None:
    claim = read_claim(changed(CLAIM, *IN_ALLOCATION, value=FLAWED[name][0]))
    assert claim.allocation is not None
    assert claim.allocation.devices


def test_the_deepest_that_is_taken_over_can_be_written() -> None:
    claim = read_claim(changed(CLAIM, *PARAMETERS, value=nested(DEEPEST - 1)))
    assert not flaws_in(claim.spec.config)
    consumer = Consumer(resource="pods", name="p", uid=Uid("u"))
    patch = with_allocation(claim, Allocation(config=claim.spec.config), consumer)
    assert orjson.dumps(SPEC["devices"]["config"][0]["requests"]) in orjson.dumps(patch)
