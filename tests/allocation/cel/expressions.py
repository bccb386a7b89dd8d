"""Random expressions and devices for laws and for fuzzing: mostly well-typed, often failing, never large."""

from random import Random

from extender.allocation.cel import CelValue, DeviceValue
from extender.model.quantity import Quantity, parse_quantity
from extender.model.semver import parse_semver

DOMAINS = ("a.example.com", "b.example.com")
NAMES = ("model", "index", "mig", "version", "tags")
VALUES: tuple[CelValue, ...] = ("A100", "", 3, 0, True, False, parse_semver("1.2.3"), ("x", "y"), (1, 2), ())
AMOUNTS = tuple(map(parse_quantity, ("1", "40Gi", "1500m")))

LEAVES = {
    "bool": ("true", "false", "device.allowMultipleAllocations"),
    "int": ("0", "1", "-1", "9223372036854775807", "3"),
    "string": ("'A100'", "''", "'x'", "device.driver", "'1.2.3'", "'40Gi'"),
    "list": ("[1, 2]", "[]", "lists.range(3)"),
    "quantity": ("quantity('1')", "quantity('40Gi')"),
}
TEMPLATES = {
    "bool": (
        "($bool && $bool)",
        "($bool || $bool)",
        "!$bool",
        "($dyn == $dyn)",
        "($dyn == $string)",
        "($dyn != $int)",
        "($dyn < $int)",
        "($int <= $dyn)",
        "($dyn in $list)",
        "($string in device.attributes[$domain])",
        "('index' in device.attributes[$domain])",
        "($string in device.attributes)",
        "has($attribute)",
        "has($box.$name)",
        "($bool ? $bool : has($box.$name))",
        "({true: $bool}[has($box.$name)])",
        "$dyn.includes($dyn)",
        "$dyn.startsWith($string)",
        "dyn($box).matches('^A')",
        "$dyn.isGreaterThan(semver('1.0.0'))",
        "$capacity.isLessThan($quantity)",
        "$list.all(x, x == $dyn)",
        "$dyn.exists(x, x == $dyn)",
        "$list.exists_one(x, $bool)",
        "cel.bind(v, $dyn, v == $dyn && v != $int)",
        "cel.bind(d, device.attributes[$domain], d.model == $string || d.?index.hasValue())",
        "cel.bind(d, device.attributes, d[$domain].mig)",
        "$optional.hasValue()",
        "device.attributes.exists(k, v, $bool)",
        "(device.attributes[$domain].size() > $int)",
        "device.capacity[$domain].all(k, device.capacity[$domain][k].isGreaterThan($quantity))",
        "(device.attributes == {})",
        "isSemver($string)",
    ),
    "dyn": (
        "$attribute",
        "$attribute",
        "dyn($int)",
        "dyn($string)",
        "$attribute[0]",
        "$attribute.x",
        "$optional.orValue($dyn)",
        "$box.$name",
    ),
    "box": (
        "device.attributes[$domain]",
        "device.attributes[?$domain]",
        "dyn(device)[?'attributes'][$domain]",
        "dyn($optional)",
        "[$box, $box][0]",
        "{'model': $dyn}",
        "{'$name': dyn($box)}.model",
        "($bool ? $box : $box)",
        "$box.?$name",
        "$box[?'$name']",
    ),
    "attribute": (
        "device.attributes[$domain].$name",
        "device.attributes[$domain]['$name']",
        "device.attributes[?$domain].$name",
    ),
    "optional": (
        "device.attributes[$domain].?$name",
        "device.attributes[$domain][?'$name']",
        "optional.none()",
        "optional.of($dyn)",
        "device.attributes[?$domain].optMap(d, d.$name)",
        "optional.of($box)",
        "device.attributes[$domain].?$name.optMap(v, v == $dyn)",
    ),
    "capacity": ("device.capacity[$domain].memory", "device.capacity[$domain]['cores']"),
    "int": ("($int + $int)", "($int / $int)", "size($string)", "int($dyn)", "($bool ? $int : $int)", "$list.sum()"),
    "string": (
        "($string + $string)",
        "string($dyn)",
        "$string.lowerAscii()",
        "'%s'.format([$dyn])",
        "$string.substring($int)",
    ),
    "list": ("[$int, $int]", "$list.map(x, x + $int)", "$list.filter(x, $bool)", "($list + $list)", "$list.sort()"),
    "quantity": ("quantity($string)", "$quantity.add($quantity)", "$capacity"),
    "domain": ("'a.example.com'", "'b.example.com'", "'c.example.com'"),
    "name": (*NAMES, "nope"),
}
DYNAMIC_DOMAIN = "$string"


def seeded(seed: int | str) -> Random:
    """Return what makes the same choices for the same seed."""
    return Random(seed)  # noqa: S311 - no secret depends on it


def expression(random: Random, kind: str = "bool", depth: int = 4) -> str:
    """Write an expression whose type is mostly *kind*."""
    leaves = LEAVES.get(kind, ())
    if leaves and (depth <= 0 or random.random() < 0.15):
        return random.choice(leaves)
    template = random.choice(TEMPLATES[kind])
    if kind == "domain" and random.random() < 0.05:
        template = DYNAMIC_DOMAIN
    parts = template.split("$")
    written = [parts[0]]
    for part in parts[1:]:
        length = next((place for place, letter in enumerate(part) if not letter.isalpha()), len(part))
        written += (expression(random, part[:length], depth - 1), part[length:])
    return "".join(written)


def device(random: Random) -> DeviceValue:
    """Make a device of which anything may be missing."""
    attributes: dict[str, dict[str, CelValue]] = {
        domain: {name: random.choice(VALUES) for name in NAMES if random.random() < 0.7}
        for domain in DOMAINS
        if random.random() < 0.8
    }
    capacity: dict[str, dict[str, Quantity]] = {
        domain: {name: random.choice(AMOUNTS) for name in ("memory", "cores") if random.random() < 0.7}
        for domain in DOMAINS
        if random.random() < 0.8
    }
    return DeviceValue(
        driver=random.choice(DOMAINS),
        allow_multiple_allocations=random.random() < 0.5,
        attributes=attributes,
        capacity=capacity,
    )
