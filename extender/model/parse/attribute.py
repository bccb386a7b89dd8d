"""Device attributes. One without a value that we know, or with an unparsable version, is kept as invalid."""

from functools import lru_cache

from extender.model.device import Attribute, AttributeKind, Scalar
from extender.model.parse.fields import MAX_INT64, Fields, Malformed, int64
from extender.model.semver import parse_semver

SCALARS: tuple[tuple[str, AttributeKind], ...] = (
    ("int", "int"),
    ("bool", "bool"),
    ("string", "string"),
    ("version", "version"),
)
LISTS: tuple[tuple[str, AttributeKind], ...] = (
    ("ints", "ints"),
    ("bools", "bools"),
    ("strings", "strings"),
    ("versions", "versions"),
)


def attribute_of(raw: object, path: str) -> Attribute:
    """Read an attribute; a value of the wrong JSON type is malformed, as it would be for Go."""
    if type(raw) is dict and len(raw) == 1:
        # Nearly all are one scalar of the right type: a fleet has hundreds of thousands of them.
        for name, value in raw.items():
            if type(value) is str and name in ("string", "version"):
                return shared("string", value) if name == "string" else _version(value)
            if type(value) is int and name == "int" and -MAX_INT64 <= value <= MAX_INT64:
                return shared("int", value)
    fields = Fields.of(raw, path)
    found = [_scalar(fields, name, kind) for name, kind in SCALARS if fields.has(name)]
    found += [_list(fields, name, kind) for name, kind in LISTS if fields.raw.get(name)]
    if len(found) != 1:
        return Attribute("invalid", "unsupported attribute value" if not found else "more than one value")
    if fields.unknown(KNOWN):
        return Attribute("invalid", "a value of a kind that is not known here")
    return _checked(found[0])


KNOWN = frozenset(name for name, _ in SCALARS + LISTS)


def _scalar(fields: Fields, name: str, kind: AttributeKind) -> Attribute:
    return shared(kind, _value(fields.raw[name], kind, fields.at(name)))


def _list(fields: Fields, name: str, kind: AttributeKind) -> Attribute:
    return Attribute(kind, tuple(_value(item, name.removesuffix("s"), path) for item, path in fields.items(name)))


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


@lru_cache(maxsize=65536, typed=True)
def shared(kind: AttributeKind, value: Scalar) -> Attribute:
    """Make one attribute serve every device that has the same: a fleet repeats itself."""
    return Attribute(kind, value)


@lru_cache(maxsize=4096)
def _version(text: str) -> Attribute:
    return _checked(Attribute("version", text))


def _checked(attribute: Attribute) -> Attribute:
    if attribute.kind not in ("version", "versions"):
        return attribute
    texts = attribute.value if isinstance(attribute.value, tuple) else (attribute.value,)
    return next((bad for text in texts if (bad := _fault(str(text)))), attribute)


@lru_cache(maxsize=4096)
def _fault(text: str) -> Attribute | None:
    try:
        parse_semver(text)
    except ValueError as error:
        return Attribute("invalid", f"version {text!r}: {error}")
    return None
