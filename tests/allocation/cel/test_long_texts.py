"""Long texts in every place of what functions read, and of what is written in an expression."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from time import thread_time

import pytest

from extender.allocation.cel import Budget, CompileError, DeviceValue, EvaluationError, compile_expression
from extender.allocation.cel.limits import CHARACTERS_PER_STEP
from extender.allocation.cel.overloads import table
from extender.allocation.cel.types import STRING
from extender.allocation.cel.values import Timestamp
from tests.allocation.cel.computed import computed, plain
from tests.oracle_program import Oracle

# More digits than Python makes a number of.
LENGTH = 4500
UNITS = (*"01.-:_%aé", "1_", "%61", "a.", "٣")
FILLS = (
    *(unit * (LENGTH // len(unit)) for unit in UNITS),
    "0" * LENGTH + "1",
    "9" * 20 + "0" * LENGTH,
    "1e" + "9" * LENGTH,
    "0x" + "f" * LENGTH,
)
READ = {
    "bool": ("{}",),
    "int": ("{}", "-{}"),
    "uint": ("{}",),
    "double": ("{}", "1.{}", "1e{}", "0x{}p1", "0x1p{}", "0x1p-{}", "0x0p{}", "1e-{}", ".{}"),
    "duration": ("{}s", "1.{}s", "{}.5h", "-{}ns", "{}", "1h{}m"),
    "timestamp": ("{}-01-01T00:00:00Z", "2024-{}-01T00:00:00Z", "2024-01-01T00:00:00.{}Z", "2024-01-01T00:00:00+{}:00"),
    "semver": ("{}.0.0", "1.{}.0", "1.0.{}", "1.0.0-{}", "1.0.0+{}", "v{}"),
    "ip": ("{}", "1.{}.3.4", "::{}", "{}::", "fe80::1%{}"),
    "cidr": ("10.0.0.0/{}", "::/{}", "{}/8"),
    "url": (
        *("http://h:{}/", "http://{}/", "/{}", "{}://h", "http://{}@h/", "http://[{}]/", "http://[::1%25{}]/"),
        *("/?{}", "/#{}"),
    ),
    "quantity": ("{}", "1.{}", "{}Gi", "1e{}", "1e-{}"),
}
WRITTEN = (
    *("{}", "{}u", "0x{}", "1e{}", "1.{}", "{}.5", "a{}", "[{}]", "r'{}'"),
    *("'%.{}f'.format([1.5])", "'%{}'.format([1])", "'a'.matches('a[{}]')", "'a'.find('a{{}}')"),
    *("timestamp(0).getHours('{}')", "timestamp(0).getHours('+{}:00')"),
    *(
        f"format.{name}().validate('{{}}')"
        for name in ("date", "datetime", "dns1123Subdomain", "byte", "qualifiedName")
    ),
    *("format.uri().validate('http://[{}]')", "url('/?{}').getQuery()", "url('http://h:{}/').getPort()"),
    *("strings.quote('{}')", "'{}'.lowerAscii()", "bytes('{}').size()", "ip.isCanonical('{}')"),
)


def read(name: str) -> Iterator[str]:
    """Yield calls of a function with texts that are known when the expression is compiled, and with others."""
    for place in READ[name]:
        for fill in FILLS:
            text = place.replace("{}", fill)
            yield from (f"{name}('{text}')", f"{name}(dyn('{text}'))")


def written() -> Iterator[str]:
    for place in WRITTEN:
        for fill in FILLS:
            yield place.replace("{}", fill)


def error_of(text: str) -> str:
    try:
        return compile_expression(text).evaluate(DeviceValue(driver="gpu.example.com"), Budget()).error
    except CompileError as error:
        return error.message


@pytest.mark.parametrize("texts", [*map(read, READ), written()], ids=[*READ, "written"])
def test_a_long_text_is_no_surprise(texts: Iterator[str]) -> None:
    for text in texts:
        assert not error_of(text).startswith("internal error"), text[:80]


def test_zeros_before_a_number_of_a_duration_are_nothing() -> None:
    assert computed(f"duration('{'0' * LENGTH}1s') == duration('1s')", DeviceValue(driver="d"))[1] == ("bool", True)


# Of quantities with such exponents upstream makes powers of ten, for hours.
@pytest.mark.parametrize("name", sorted(READ.keys() - {"quantity"}))
def test_a_long_text_is_read_as_kubernetes_reads_it(oracle: Oracle, name: str) -> None:
    texts, device = list(read(name)), DeviceValue(driver="dra.example.com")
    body = {"driver": device.driver, "device": {}, "mode": "value"}
    answers = oracle.ask("cel", [{**body, "expression": text} for text in texts])
    told = [
        (text[:80], theirs, mine)
        for text, answer in zip(texts, answers, strict=True)
        if (theirs := (answer["outcome"], plain(answer["value"]) if answer["outcome"] == "value" else None))
        != (mine := computed(text, device))
    ]
    assert told == []


# Longer than an expression may be, as what is built in one.
LONGER = 32_000
READERS = [*READ, "isIP", "isCIDR", "isURL", "isSemver", "isQuantity", "ip.isCanonical", "bytes"]


def called(name: str, text: str) -> Budget:
    """Call a function with a text, whatever comes of it; return the budget that it had."""
    budget = Budget()
    (variant,) = (each for each in table()[name] if each.parameters == (STRING,))
    assert variant.compute
    assert variant.is_metered
    with suppress(EvaluationError):
        variant.compute(budget, text)
    return budget


@pytest.mark.parametrize("name", READERS)
def test_whoever_has_a_text_read_pays_for_its_length(name: str) -> None:
    assert called(name, "1" * LONGER).spent >= LONGER // CHARACTERS_PER_STEP


def test_whoever_names_a_time_zone_pays_for_its_length() -> None:
    (variant,) = (each for each in table()["getDate"] if len(each.parameters) == 2)
    budget = Budget()
    assert variant.compute
    with pytest.raises(EvaluationError):
        variant.compute(budget, Timestamp(0), "1" * LONGER)
    assert budget.spent >= LONGER // CHARACTERS_PER_STEP


def taken(work: Callable[[], object]) -> float:
    """Return the processor's time for *work*, undisturbed."""

    def once() -> float:
        began = thread_time()
        work()
        return thread_time() - began

    return min(once() for _ in range(3))


@pytest.mark.parametrize("name", READERS)
def test_a_text_is_read_in_one_go_whatever_it_is(name: str) -> None:
    glance = taken(lambda: sum(map(ord, "1" * LONGER)))
    for place in READ.get(name, ("{}",)):
        for unit in UNITS:
            text = place.replace("{}", unit * (LONGER // len(unit)))
            assert taken(partial(called, name, text)) < 300 * glance, text[:20]
