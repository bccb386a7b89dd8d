"""Which devices have a trait that a policy speaks of."""

import re
from collections.abc import Iterable
from functools import lru_cache

from extender.model.device import Scalar
from extender.topology.aliases import Member, values_of
from extender.topology.policy import Policy, Trait


def has_trait(member: Member, trait: Trait) -> bool:
    """Tell whether a value of the attribute is one of those; of a list any is enough, what is absent is none."""
    pattern = _pattern(trait.values)
    return any(pattern.fullmatch(written(value)) for _, value in values_of(member, trait.attribute))


def generation_of(policy: Policy, member: Member) -> int:
    """Return how many preferred traits come before the first that *member* has."""
    ranked = (index for index, trait in enumerate(policy.prefer) if has_trait(member, trait))
    return next(ranked, len(policy.prefer))


def is_avoided(policy: Policy, member: Member) -> bool:
    return _has_any(member, policy.avoid)


def is_forbidden(policy: Policy, member: Member) -> bool:
    return _has_any(member, policy.forbid)


def written(value: Scalar) -> str:
    """Write a value as people do in YAML."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _has_any(member: Member, traits: Iterable[Trait]) -> bool:
    return any(has_trait(member, trait) for trait in traits)


@lru_cache(maxsize=256)
def _pattern(values: tuple[str, ...]) -> re.Pattern[str]:
    """Stars stand for any text, everything else for itself."""
    # A row of stars is one: several would try every way to share the text between them.
    parted = (re.split(r"\*+", value) for value in values)
    return re.compile("|".join(".*".join(map(re.escape, parts)) for parts in parted), re.DOTALL)
