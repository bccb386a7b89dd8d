"""Which policy a claim is placed by: what its author names, where that is allowed, or what the administrator says."""

from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from extender.model.claim import ResourceClaim
from extender.model.frozen import dataclass
from extender.model.names import DNS_LABEL_MAX
from extender.topology.policy import Placing, Policy, Trait, Wish

# The annotation of a claim, or of the template that it is made from, that names its policy.
ANNOTATION: Final = "dra-extender.x-k8s.io/policy"
SHIPPED: Final[tuple[Policy, ...]] = (
    Policy(name="protect"),
    Policy(name="pack", placing=Placing.PACK),
    Policy(name="spread", placing=Placing.SPREAD),
    Policy(name="one-numa", numa=Wish.STRICT),
    Policy(name="linked", links=Wish.STRICT),
)
DEFAULT: Final = SHIPPED[0].name
# What some go by, and the names of their policies.
Assigned = tuple[tuple[str, str], ...]


class NotAllowed(NamedTuple):
    """Why a claim is placed by no policy at all."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """Every policy, and who is placed by which. All have *avoid* and *forbid* beside their own; *allowed* can be named.

    *classes* and *namespaces* have the names of policies by those of device classes and of namespaces.
    """

    every: tuple[Policy, ...] = SHIPPED
    default: str = DEFAULT
    allowed: tuple[str, ...] = tuple(policy.name for policy in SHIPPED)
    classes: Assigned = ()
    namespaces: Assigned = ()
    avoid: tuple[Trait, ...] = ()
    forbid: tuple[Trait, ...] = ()

    @property
    def attributes(self) -> frozenset[str]:
        """The names of the attributes that any policy looks at."""
        traits = [*self.avoid, *self.forbid]
        for policy in self.every:
            traits += [*policy.prefer, *policy.avoid, *policy.forbid]
        return frozenset(trait.attribute for trait in traits)

    def policy_for(self, claim: ResourceClaim) -> Policy | NotAllowed:
        """Return the policy that *claim* names, or that of its namespace, of its first class, or the default."""
        named = dict(claim.annotations).get(ANNOTATION)
        if named is None:
            return self.policy(self._assigned(claim))
        if named in self.allowed:
            return self.policy(named)
        # No name is longer: what is, is no name, and would fill the log.
        said = f"annotation {ANNOTATION} of claim {claim.key} names {named[:DNS_LABEL_MAX]!r}"
        return NotAllowed(f"{said}; allowed are {', '.join(self.allowed) or 'none'}")

    def policy(self, name: str) -> Policy:
        """Return a policy with all that it avoids and forbids."""
        own = next(policy for policy in self.every if policy.name == name)
        return _beside(own, self.avoid, self.forbid)

    def _assigned(self, claim: ResourceClaim) -> str:
        of_class = dict(self.classes).get(_first_class(claim), self.default)
        return dict(self.namespaces).get(claim.key.namespace, of_class)


@lru_cache(maxsize=256)
def _beside(own: Policy, avoid: tuple[Trait, ...], forbid: tuple[Trait, ...]) -> Policy:
    return replace(own, avoid=_joined(avoid, own.avoid), forbid=_joined(forbid, own.forbid))


def _first_class(claim: ResourceClaim) -> str:
    """Return the class of the first request, or of its first alternative."""
    for slot in claim.spec.requests[:1]:
        for request in (slot.exactly, *slot.first_available):
            if request is not None:
                return request.class_name
    return ""


def _joined(first: tuple[Trait, ...], second: tuple[Trait, ...]) -> tuple[Trait, ...]:
    return tuple(dict.fromkeys((*first, *second)))
