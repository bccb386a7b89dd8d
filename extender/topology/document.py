"""The placement document out of plain values: topology, which sizes are asked for, policies."""

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Final

from extender.model.frozen import dataclass
from extender.model.names import is_dns_label, is_dns_subdomain
from extender.topology.configuration import Configuration
from extender.topology.demand import Demand
from extender.topology.policies import DEFAULT, SHIPPED, Assigned, Policies
from extender.topology.policy import Placing, Policy, Trait, Wish
from extender.topology.reading import Entry, attribute, one_of, read, whole
from extender.topology.residual import Mix
from extender.topology.tables import shipped, with_shipped
from extender.topology.traits import written
from extender.topology.validation import MOST_DEVICES

LEARNT: Final = "learnt"
# Weights are shares of their sum, and nobody counts finer.
MOST_OFTEN: Final = 1_000_000
CLASS: Final = (is_dns_subdomain, "must be the name of a device class")
NAMESPACE: Final = (is_dns_label, "must be the name of a namespace")
Naming = tuple[Callable[[str], bool], str]
OURS: Final = tuple(policy.name for policy in SHIPPED)
NEW: Final[Naming] = (
    lambda name: is_dns_label(name) and name not in OURS,
    f"must be lower-case letters, digits and dashes, and none of {', '.join(OURS)}",
)


@dataclass(frozen=True, slots=True)
class Document:
    """All that an administrator says about placing; what is left open is as shipped."""

    configuration: Configuration = field(default_factory=shipped)
    demand: Demand = field(default_factory=Demand)
    policies: Policies = field(default_factory=Policies)

    @property
    def idle(self) -> tuple[str, ...]:
        """What is said that has no effect, in words."""
        is_near = self.configuration.tiers != shipped().tiers
        return ("clusterTopology: is checked, but no pod is placed by it",) * is_near


def document_of(raw: object) -> Document:
    """Read a document; raise InvalidDocument with all that is wrong."""
    return read(raw, lambda top: Document(with_shipped(top), _demand(top), _policies(top.child("policies"))))


def _demand(top: Entry) -> Demand:
    if not top.has("mix") or top.raw["mix"] == LEARNT:
        return Demand()
    if isinstance(top.raw["mix"], str):
        top.complain(f"must be {LEARNT}, or keys with values", "mix")
        return Demand()
    entry = top.child("mix")
    found = Demand(
        tuple((name, _sizes(inner)) for name, inner in _named(entry.child("classes"), CLASS)),
        _sizes(entry.child("sizes")) if entry.has("sizes") else None,
    )
    entry.close()
    return found


def _sizes(entry: Entry) -> Mix:
    """Read how often each number of devices is asked for."""
    size, often = whole(1, MOST_DEVICES), whole(0, MOST_OFTEN)
    counts: dict[int, int] = {}
    for key, value in entry.raw.items():
        try:
            # In JSON every key is a string.
            number = size(int(key) if isinstance(key, str) and key.isdecimal() else key)
            if number in counts:
                entry.complain("is said twice", str(key))
            counts[number] = often(value)
        except ValueError as error:
            entry.complain(str(error), str(key))
    if entry.is_fit and not any(entry.raw.values()):
        entry.complain("must be numbers of devices, and how often each is asked for")
    return Mix.of(counts)


def _policies(entry: Entry) -> Policies:
    named = tuple(_policy(name, inner) for name, inner in _named(entry.child("named"), NEW))
    every = (*SHIPPED, *named)
    names = tuple(dict.fromkeys(policy.name for policy in every))
    name = one_of(*names)
    found = Policies(
        every=every,
        default=entry.take("default", name, DEFAULT),
        allowed=_allowed(entry, names),
        classes=_assigned(entry.child("classes"), CLASS, name),
        namespaces=_assigned(entry.child("namespaces"), NAMESPACE, name),
        avoid=_traits(entry, "avoid"),
        forbid=_traits(entry, "forbid"),
    )
    entry.close()
    return found


def _policy(name: str, entry: Entry) -> Policy:
    wish = one_of(*Wish)
    policy = Policy(
        name=name,
        placing=Placing(entry.take("place", one_of(*Placing), Placing.PROTECT.value)),
        numa=Wish(entry.take("numa", wish, Wish.IGNORED.value)),
        links=Wish(entry.take("links", wish, Wish.PREFERRED.value)),
        prefer=_traits(entry, "prefer"),
        avoid=_traits(entry, "avoid"),
        forbid=_traits(entry, "forbid"),
    )
    entry.close()
    return policy


def _allowed(entry: Entry, every: tuple[str, ...]) -> tuple[str, ...]:
    check, names = one_of(*every), list[str]()
    if not entry.has("allowed"):
        if "allowed" not in entry.raw:
            return every
        # Left open it would allow everything, which nobody means who has struck out all names.
        entry.complain("must be a list; [] allows none", "allowed")
    for raw, path in entry.items("allowed"):
        try:
            name = check(raw)
        except ValueError as error:
            entry.wrong.append(f"{path}: {error}")
            continue
        if name in names:
            entry.wrong.append(f"{path}: {name} is there twice")
        names.append(name)
    return tuple(names)


def _assigned(entry: Entry, naming: Naming, check: Callable[[object], str]) -> Assigned:
    found = []
    for name, value in entry.raw.items():
        _complain_of_name(entry, name, naming)
        try:
            found.append((str(name), check(value)))
        except ValueError as error:
            entry.complain(str(error), str(name))
    return tuple(found)


def _traits(entry: Entry, key: str) -> tuple[Trait, ...]:
    return tuple(_trait(inner) for inner in entry.entries(key))


def _trait(entry: Entry) -> Trait:
    trait = Trait(entry.need("attribute", attribute, ""), entry.need("values", _values, ()))
    entry.close()
    return trait


def _values(value: object) -> tuple[str, ...]:
    """Read what an attribute may say; a number with a point is text: YAML takes 1.10 for 1.1."""
    if not isinstance(value, list | tuple) or not value:
        raise ValueError("must be a list of at least one value")
    if not all(isinstance(item, str | int) and item != "" for item in value):
        raise ValueError("must be texts, integers, true or false; versions in quotes")
    return tuple(written(item) for item in value)


def _named(entry: Entry, naming: Naming) -> Iterator[tuple[str, Entry]]:
    """Yield what stands under names of people's own."""
    for name, raw in entry.raw.items():
        _complain_of_name(entry, name, naming)
        yield str(name), Entry(raw, entry.at(str(name)), entry.wrong)


def _complain_of_name(entry: Entry, name: object, naming: Naming) -> None:
    is_right, text = naming
    if not isinstance(name, str) or not is_right(name):
        entry.complain(text, str(name))
