"""Where a pod goes, and the devices that it gets there."""

from dataclasses import dataclass, replace
from operator import is_

from extender.allocation.extended import Hidden
from extender.allocation.usage import holds_of
from extender.model.claim import Allocation, ResourceClaim
from extender.model.names import NodeName
from extender.scheduling.needs import Needs
from extender.state.belief import version
from extender.state.ledger import UNMADE, ClaimHold, Promise
from extender.topology.appraisal import Appraisal
from extender.topology.policies import ANNOTATION


@dataclass(frozen=True, slots=True)
class Placement:
    """A node, and what each claim without an allocation gets there. *hidden* is the claim that we make ourselves.

    *appraisal* says how good the devices are, where anything is preferred.
    """

    node: NodeName
    claims: tuple[tuple[ResourceClaim, Allocation], ...] = ()
    hidden: Hidden | None = None
    appraisal: Appraisal | None = None

    def promise(self, needs: Needs, now: float, *, is_answer: bool = True) -> Promise:
        """Return what the pod is promised by this placement."""
        holds = (ClaimHold(claim.uid, holds_of(given), version=version(claim)) for claim, given in self.claims)
        return Promise(needs.pod.uid, self.node, tuple(holds), now, is_answer)

    def made(self, claims: tuple[ResourceClaim, ...]) -> "Placement | None":
        """Return the same for *claims*, which were made since; None where they ask for something else."""
        foreseen = [claim for claim, _ in self.claims[: len(self.claims) - bool(self.hidden)]]
        if len(foreseen) != len(claims) or not all(map(_is_made_of, claims, foreseen)):
            return None
        given = tuple((claim, given) for claim, (_, given) in zip(claims, self.claims, strict=False))
        return replace(self, claims=given + self.claims[len(claims) :])

    def gives_what(self, other: "Placement") -> bool:
        """Tell whether *other* gives the very same devices, perhaps to claims that had yet to be made."""
        given = [allocation for _, allocation in self.claims], [allocation for _, allocation in other.claims]
        return self is other or (len(given[0]) == len(given[1]) and all(map(is_, *given)))


def _is_made_of(claim: ResourceClaim, foreseen: ResourceClaim) -> bool:
    """Tell whether *claim* is what was *foreseen*, or was and asks for the same by the same policy."""
    if claim == foreseen or not foreseen.uid.startswith(UNMADE):
        return claim == foreseen
    policies = [dict(one.annotations).get(ANNOTATION) for one in (claim, foreseen)]
    return claim.spec == foreseen.spec and policies[0] == policies[1]
