"""What the requests of a claim say of each other: its ways, and its constraints. Nothing of the product here."""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, NamedTuple

Json = dict[str, Any]


class Wish(NamedTuple):
    """A request, or one alternative of it, by the name that results have for it."""

    name: str
    item: Json


class Term(NamedTuple):
    """A constraint of *claim*: what all devices that it is about have in common, or each has for itself."""

    claim: str
    number: int
    attribute: str
    is_match: bool

    def value(self, driver: str, device: Json) -> Json | None:
        """Return what *device* says: where the attribute is of its driver, it may come without the domain."""
        domain, _, name = self.attribute.partition("/")
        said: Json = device.get("attributes") or {}
        return said.get(self.attribute) or (said.get(name) if domain == driver else None)

    def holds(self, values: Iterable[Json | None]) -> bool:
        """Tell whether devices with *values* may be together; one that says nothing never is."""
        written = [repr(sorted(value.items())) if value else "" for value in values]
        return all(written) and len(set(written)) == (min(1, len(written)) if self.is_match else len(written))


def wishes(claim: Json) -> Iterator[list[Wish]]:
    """Yield the alternatives of each request of *claim*; most have one."""
    for request in claim["spec"]["devices"]["requests"]:
        name, listed = request["name"], request.get("firstAvailable")
        yield [Wish(f"{name}/{each['name']}", each) for each in listed] if listed else [Wish(name, request["exactly"])]


def ways(claim: Json) -> Iterator[tuple[Wish, ...]]:
    """Yield all that suffices: one alternative of each request."""
    return product(*wishes(claim))


def terms(claim: Json) -> Iterator[tuple[Term, list[str]]]:
    """Yield the constraints of *claim*, each with the names that it is about; of all requests where there are none."""
    for number, item in enumerate(claim["spec"]["devices"].get("constraints") or ()):
        is_match = "matchAttribute" in item
        attribute = item["matchAttribute" if is_match else "distinctAttribute"]
        yield Term(claim["metadata"]["name"], number, attribute, is_match), item.get("requests") or []


def terms_of(claim: Json, name: str) -> tuple[Term, ...]:
    """Return the constraints of *claim* that are about what has *name* in results."""
    own = {name, name.partition("/")[0]}
    return tuple(term for term, names in terms(claim) if not names or own.intersection(names))
