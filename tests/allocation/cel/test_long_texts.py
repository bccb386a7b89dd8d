"""Long texts in every place of what functions read, and of what is written in an expression."""

from collections.abc import Iterator

import pytest

from extender.allocation.cel import Budget, CompileError, DeviceValue, compile_expression
from tests.allocation.cel.computed import computed

# More digits than Python makes a number of.
LENGTH = 4500
UNITS = (
    *"01.-+:_/%aé",
    *("1_", "%61", "a.", "1e", "٣", "²", "[", "\\\\"),
)
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
    "double": ("{}", "1.{}", "1e{}", "0x{}p1", "0x1p{}", "1e-{}", ".{}"),
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
