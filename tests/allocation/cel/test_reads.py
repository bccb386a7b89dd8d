import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from extender.allocation.cel import Budget, CompileError, DeviceValue, Path, compile_expression, compile_selector
from tests.allocation.cel.expressions import device, expression, seeded

A = 'device.attributes["a.example.com"]'
MODEL = ("attributes", "a.example.com", "model")
MEMORY = ("capacity", "a.example.com", "memory")


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("true", frozenset()),
        ("device.driver == 'x'", {("driver",)}),
        ("device.allowMultipleAllocations", {("allowMultipleAllocations",)}),
        (f"{A}.model == 'x'", {MODEL}),
        (f"{A}['model'] == 'x' || {A}.?model.hasValue() || {A}[?'model'].hasValue()", {MODEL}),
        (f"has({A}.model) && 'model' in {A}", {MODEL}),
        (f"{A}.model.x.y == 1 && {A}.model[0] == 1 && has({A}.model.x)", {MODEL}),
        ("device.capacity['a.example.com'].memory.isInteger()", {MEMORY}),
        (f"cel.bind(d, {A}, d.model == 'x')", {MODEL}),
        ("cel.bind(d, device.attributes, d['a.example.com'].model == 'x')", {MODEL}),
        (f"cel.bind(d, {A}, cel.bind(d, 1, d == 1))", frozenset()),
        (f"[1].all(x, {A}.model == 'x')", {MODEL}),
        (f"{A}.model.exists(x, x == 1)", {MODEL}),
        ("has(device.attributes.nope) && has(device.driver)", {("driver",)}),
        ("[1].exists(device, device == 1)", frozenset()),
        (f"{A}.size() == 1", None),
        (f"{A}[device.driver] == 1", None),
        ("device.attributes[device.driver].model == 'x'", None),
        ("'a.example.com' in device.attributes", None),
        ("device.attributes.exists(d, true)", None),
        (f"cel.bind(d, {A}, d == {{}})", None),
        ("type(device) == map", None),
    ],
)
def test_reads_of_expression(text: str, reads: set[Path] | None) -> None:
    assert compile_selector(text).reads == reads


def stripped(whole: DeviceValue, reads: frozenset[Path] | None) -> DeviceValue:
    """Return the device with nothing but what is read."""
    if reads is None:
        return whole

    def kept(group: str) -> dict[str, dict[str, object]]:
        found: dict[str, dict[str, object]] = {}
        for path in reads:
            domain = getattr(whole, group).get(path[1], {}) if path[0] == group else {}
            if path[0] == group and path[2] in domain:
                found.setdefault(path[1], {})[path[2]] = domain[path[2]]
        return found

    return DeviceValue(
        driver=whole.driver if ("driver",) in reads else "",
        allow_multiple_allocations=("allowMultipleAllocations",) in reads and whole.allow_multiple_allocations,
        attributes=kept("attributes"),  # type: ignore[arg-type]  # taken from the device
        capacity=kept("capacity"),  # type: ignore[arg-type]  # taken from the device
    )


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**64))
def test_only_what_is_read_matters(seed: int) -> None:
    random = seeded(seed)
    text = expression(random)
    try:
        program = compile_expression(text)
    except CompileError:
        reject()
    for _ in range(4):
        whole = device(random)
        assert program.evaluate(whole, Budget()) == program.evaluate(stripped(whole, program.reads), Budget()), text
