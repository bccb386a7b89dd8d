"""Whether a pod that gives up what it has could go elsewhere."""

from collections.abc import Collection
from itertools import chain

from extender.allocation.snapshot import without
from extender.model.claim import ResourceClaim
from extender.scheduling.needs import Needs, needs_of
from extender.scheduling.planner import Planner
from extender.scheduling.survey import Survey, Unfinished, survey


def finds_another(planner: Planner, needs: Needs, claims: Collection[ResourceClaim]) -> bool:
    """Tell whether the pod, had it given up *claims*, could be on a node, as far as we know, where they keep it from.

    Where that is not found out yet it is looked for further when this is asked again.
    """
    belief, taste = planner.belief, planner.chooser.taste
    anew = needs_of(needs.pod, belief, frozenset(claim.uid for claim in claims))
    if not isinstance(anew, Needs) or needs.made in claims:
        return True
    holds = chain.from_iterable(belief.cluster.holds_of(claim.key) for claim in claims)
    seen = without(belief.seen_by(needs.pod.uid), holds)
    try:
        here, there = survey(needs, seen, belief.questions, taste), survey(anew, seen, belief.questions, taste)
    except Unfinished:
        return False
    if not (isinstance(here, Survey) and isinstance(there, Survey)):
        return True
    found, possible = there.fits & ~here.usable, planner.possible.nodes(anew)
    return bool((found if possible is None else found & possible).any())
