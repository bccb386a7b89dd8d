"""Where a pod goes, and the devices that it gets there."""

from dataclasses import replace

from extender.allocation.extended import Hidden
from extender.allocation.usage import holds_of
from extender.model.claim import Allocation, ResourceClaim
from extender.model.frozen import dataclass
from extender.model.names import NodeName
from extender.scheduling.needs import Needs
from extender.state.belief import version
from extender.state.ledger import ClaimHold, Promise
from extender.topology.appraisal import Appraisal


@dataclass(frozen=True, slots=True)
class Placement:
    """A node, and what each claim without an allocation gets there. *hidden* is the claim that we make ourselves.

    *appraisal* says how good the devices are, where anything is preferred.
    """

    node: NodeName
    claims: tuple[tuple[ResourceClaim, Allocation], ...] = ()
    hidden: Hidden | None = None
    appraisal: Appraisal | None = None

    def with_made(self, made: ResourceClaim) -> "Placement":
        """Return the same where the *hidden* claim, which is the last one, was *made*: it has a name by then."""
        *others, (_, given) = self.claims
        return replace(self, claims=(*others, (made, given)))

    def promise(self, needs: Needs, now: float, *, is_answer: bool = True) -> Promise:
        """Return what the pod is promised by this placement."""
        holds = (ClaimHold(claim.uid, holds_of(given), version=version(claim)) for claim, given in self.claims)
        return Promise(needs.pod.uid, self.node, tuple(holds), now, is_answer)
