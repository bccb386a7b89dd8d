"""Device attributes. One without a value that we know, or with an unparsable version, is kept as invalid.

The API lets in versions that nobody can parse: it takes numbers of any length.
"""

from functools import lru_cache

from extender.model.device import Attribute, AttributeKind, Scalar
from extender.model.parse.fields import Fields, Malformed, int64, shared_name
from extender.model.quantity import MAX_INT64
from extender.model.semver import parse_semver

# The fields that a value stands in, which are called what its kind is.
SCALARS: tuple[AttributeKind, ...] = ("int", "bool", "string", "version")
LISTS: tuple[AttributeKind, ...] = ("ints", "bools", "strings", "versions")
KNOWN = frozenset((*SCALARS, *LISTS))

Named = tuple[str, Attribute]


def attributes_of(body: Fields) -> tuple[Named, ...]:
    """Read all attributes of a device, sorted by name."""
    raw = body.child("attributes").raw
    return tuple([_usual(name, raw[name]) or _unusual(name, raw[name], body) for name in sorted(raw)])


def _usual(name: str, raw: object) -> Named | None:
    """Read one scalar of the right type, as nearly all are: a fleet has hundreds of thousands of them."""
    if type(raw) is not dict or len(raw) != 1:
        return None
    for kind, value in raw.items():
        if kind == "string" and type(value) is str:
            return _string(name, value)
        if kind == "int" and type(value) is int and -MAX_INT64 <= value <= MAX_INT64:
            return _int(name, value)
        if kind == "version" and type(value) is str:
            return _version(name, value)
        if kind == "bool" and type(value) is bool:
            return _bool(name, value=value)
    return None


# One pair serves every device that has it. A fleet repeats itself, but for identities: they pass through the cache
# without displacing what many devices share, for that is asked for again and again.
@lru_cache(maxsize=8192)
def _string(name: str, value: str) -> Named:
    return shared_name(name), Attribute("string", value)


@lru_cache(maxsize=8192)
def _int(name: str, value: int) -> Named:
    return shared_name(name), Attribute("int", value)


@lru_cache(maxsize=4096)
def _bool(name: str, *, value: bool) -> Named:
    return shared_name(name), Attribute("bool", value)


@lru_cache(maxsize=4096)
def _version(name: str, text: str) -> Named:
    return shared_name(name), _checked(Attribute("version", text))


def _unusual(name: str, raw: object, body: Fields) -> Named:
    return shared_name(name), _attribute(raw, f"{body.at('attributes')}[{name}]")


def _attribute(raw: object, path: str) -> Attribute:
    """Read an attribute; a value of the wrong JSON type is malformed, as it would be for Go."""
    fields = Fields.of(raw, path)
    found = [Attribute(kind, _value(fields.raw[kind], kind, fields.at(kind))) for kind in SCALARS if fields.has(kind)]
    found += [_list(fields, kind) for kind in LISTS if fields.has(kind) and fields.raw[kind] != []]
    if len(found) != 1:
        return Attribute("invalid", "unsupported attribute value" if not found else "more than one value")
    if fields.unknown(KNOWN):
        return Attribute("invalid", "a value of a kind that is not known here")
    return _checked(found[0])


def _list(fields: Fields, kind: AttributeKind) -> Attribute:
    return Attribute(kind, tuple(_value(item, kind.removesuffix("s"), path) for item, path in fields.items(kind)))


def _value(value: object, kind: str, path: str) -> Scalar:
    if kind == "int":
        return int64(value, path)
    if kind == "bool":
        if not isinstance(value, bool):
            raise Malformed(path, "is neither true nor false")
        return value
    if not isinstance(value, str):
        raise Malformed(path, "is no string")
    return value


def _checked(attribute: Attribute) -> Attribute:
    if attribute.kind not in ("version", "versions"):
        return attribute
    texts = attribute.value if isinstance(attribute.value, tuple) else (attribute.value,)
    fault = next((bad for text in texts if (bad := _fault(str(text)))), None)
    return Attribute("invalid", (fault, attribute.kind, *texts)) if fault else attribute


@lru_cache(maxsize=4096)
def _fault(text: str) -> str | None:
    try:
        parse_semver(text)
    except ValueError as error:
        return f"version {text!r}: {error}"
    return None
