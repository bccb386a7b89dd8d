"""What selectors see of devices: the substance of upstream's own table."""

import pytest

from extender.allocation.cel import (
    Budget,
    CompileError,
    DeviceValue,
    EvaluationError,
    Verdict,
    compile_attribute,
    compile_expression,
    compile_selector,
    to_cel,
)
from extender.model.device import Attribute
from extender.model.quantity import Quantity
from extender.model.semver import Semver
from tests.allocation.cel.description import describe
from tests.allocation.cel.devices import DEVICE

DOMAIN = 'device.attributes["dra.example.com"]'
OTHER = 'device.attributes["other.com"]'
CAPACITY = 'device.capacity["dra.example.com"]'


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('device.driver == "dra.example.com"', Verdict.MATCH),
        ("device.allowMultipleAllocations", Verdict.NO),
        (f'{DOMAIN}.model == "A100" && {DOMAIN}["model"].startsWith("A")', Verdict.MATCH),
        (f"{DOMAIN}.mig", Verdict.MATCH),
        (f"{DOMAIN}.model", Verdict.ERROR),
        (f"{DOMAIN}.index", Verdict.ERROR),
        (f"{DOMAIN}.index == 3 && {DOMAIN}.index == 3.0 && {DOMAIN}.index < 4", Verdict.MATCH),
        (f"{DOMAIN}.mig == 1", Verdict.NO),
        (f"{DOMAIN}.model == 1", Verdict.NO),
        (f'{DOMAIN}.version.isGreaterThan(semver("0.0.1"))', Verdict.MATCH),
        (f'{DOMAIN}.version == semver("1.2.3")', Verdict.MATCH),
        (f"{DOMAIN}.version == 1", Verdict.ERROR),
        (f"{DOMAIN}.nope == 1", Verdict.ERROR),
        (f"has({DOMAIN}.nope) || has({DOMAIN}.model)", Verdict.MATCH),
        (f"has({DOMAIN}.model.x)", Verdict.NO),
        (f"has({DOMAIN}.nope.x)", Verdict.ERROR),
        (f'{DOMAIN}.?nope.orValue("x") == "x" && {DOMAIN}[?"model"].value() == "A100"', Verdict.MATCH),
        (f'"model" in {DOMAIN} && !("nope" in {DOMAIN})', Verdict.MATCH),
        ('"unknown" in device.attributes', Verdict.NO),
        ('device.attributes["unknown"] == {} && device.attributes.unknown.size() == 0', Verdict.MATCH),
        ('device.attributes["unknown"].x', Verdict.ERROR),
        ('has(device.attributes["unknown"].x)', Verdict.NO),
        ('has(device.attributes.unknown) && device.attributes[?"unknown"].hasValue()', Verdict.MATCH),
        ('device.capacity["unknown"].x == quantity("1")', Verdict.ERROR),
        ('device.attributes.size() == 2 && device.attributes.all(d, d.endsWith(".com"))', Verdict.MATCH),
        (f'{CAPACITY}.memory.compareTo(quantity("40Gi")) == 0 && {CAPACITY}.memory == quantity("40Gi")', Verdict.MATCH),
        (f'{CAPACITY}.cores.isLessThan(quantity("2")) && {CAPACITY}.exists(k, v, v == quantity("1.5"))', Verdict.MATCH),
        (f"{OTHER}.ints.exists(i, i == 2) && {OTHER}.ints.all(i, i > 0) && {OTHER}.ints.size() == 3", Verdict.MATCH),
        (f'2 in {OTHER}.ints && "b" in {OTHER}.strings && {OTHER}.ints[0] == 1', Verdict.MATCH),
        (f'{OTHER}.ints.includes(2) && {DOMAIN}.model.includes("A100") && !{DOMAIN}.index.includes(4)', Verdict.MATCH),
        (f"{DOMAIN}.model.exists(c, c == 'A')", Verdict.ERROR),
        ('cel.bind(dra, device.attributes["dra.example.com"], dra.mig && dra.index == 3)', Verdict.MATCH),
        ('cel.bind(a, device.attributes, a["nope"].x == 1)', Verdict.ERROR),
        (".device.driver == device.driver", Verdict.MATCH),
    ],
)
def test_selector_on_device(text: str, verdict: Verdict) -> None:
    assert compile_selector(text).evaluate(DEVICE, Budget()).verdict is verdict


@pytest.mark.parametrize("text", ["true", "device.driver == 'x'", "1 / 0 == 1"])
def test_fault_of_a_device_makes_every_evaluation_an_error(text: str) -> None:
    device = DeviceValue(driver="d", fault='attribute x: "1.2" is not a version')
    program = compile_selector(text)
    assert program.evaluate(device, Budget()) == (Verdict.ERROR, 'attribute x: "1.2" is not a version')
    with pytest.raises(EvaluationError):
        program.compute(device, Budget())


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        (Attribute("int", 1), 1),
        (Attribute("bool", value=True), True),
        (Attribute("string", "a"), "a"),
        (Attribute("version", "1.2.3"), Semver(1, 2, 3)),
        (Attribute("ints", (1, 2)), (1, 2)),
        (Attribute("versions", ("1.2.3",)), (Semver(1, 2, 3),)),
    ],
)
def test_attribute_becomes_a_value(attribute: Attribute, value: object) -> None:
    assert to_cel(attribute) == value


@pytest.mark.parametrize(
    "attribute", [Attribute("version", "v1"), Attribute("versions", ("1",)), Attribute("invalid", "?")]
)
def test_attribute_without_value_is_refused(attribute: Attribute) -> None:
    with pytest.raises(ValueError, match=r".+"):
        to_cel(attribute)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("'a'", "a"),
        ("true", True),
        ("semver('1.2.3')", Semver(1, 2, 3)),
        ("[1]", (1,)),
        ("['a']", ("a",)),
        ("device.driver", "dra.example.com"),
        (f"{DOMAIN}.model", "A100"),
        ("[semver('1.0.0')]", (Semver(1, 0, 0),)),
    ],
)
def test_derived_attribute_is_a_scalar_or_a_list_of_scalars(text: str, value: object) -> None:
    assert compile_attribute(text).compute(DEVICE, Budget()) == value


@pytest.mark.parametrize(
    "text", ["1.0", "1u", "{'a': 1}", "[[1]]", "quantity('1')", "null", "device", "optional.of(1)", "b''"]
)
def test_derived_attribute_of_another_type_is_refused(text: str) -> None:
    with pytest.raises(CompileError, match="must evaluate to a primitive scalar"):
        compile_attribute(text)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1", "int", 1),
        ("1u", "uint", 1),
        ("1.5", "double", 1.5),
        ("double('inf')", "double", "Infinity"),
        ("true", "bool", True),
        ("'a'", "string", "a"),
        ("b'a'", "bytes", "YQ=="),
        ("null", "null", None),
        ("[1]", "list", [{"type": "int", "value": 1}]),
        ("{true: 1}", "map", [[{"type": "bool", "value": True}, {"type": "int", "value": 1}]]),
        ("quantity('1.5')", "quantity", "1500000000n"),
        ("semver('1.2.3-a+b')", "semver", "1.2.3-a+b"),
        ("timestamp('2020-01-01T00:00:00Z')", "timestamp", "2020-01-01T00:00:00Z"),
        ("duration('1s')", "duration", 1_000_000_000),
        ("ip('::1')", "ip", "::1"),
        ("cidr('::/0')", "cidr", "::/0"),
        ("url('/a')", "url", "/a"),
        ("format.uuid()", "format", "uuid"),
        ("int", "type", "int"),
        ("optional.of(1)", "optional", {"type": "int", "value": 1}),
        ("optional.none()", "optional", None),
    ],
)
def test_value_is_described(text: str, kind: str, value: object) -> None:
    assert describe(compile_expression(text).compute(DEVICE, Budget())) == {"type": kind, "value": value}


def test_quantity_in_capacity_keeps_its_class() -> None:
    value = compile_expression(f"{CAPACITY}.memory").compute(DEVICE, Budget())
    assert isinstance(value, Quantity)
    assert str(value) == "40Gi"
