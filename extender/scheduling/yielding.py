"""Devices that nobody was told of, left by those who were promised them to somebody more important.

Who is woken, or sent ahead, has devices kept before the scheduler asks. Meanwhile it may ask about another.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from extender.allocation.snapshot import Snapshot, without
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.choosing import Chooser
from extender.scheduling.needs import Needs, needs_of
from extender.scheduling.placement import Placement
from extender.scheduling.survey import Numbers, Survey, Unfinished, survey
from extender.state.belief import Belief

# Whose devices are to be left, by node.
Lesser = Mapping[NodeName, Sequence[Uid]]


def lesser_than(pod: Pod, belief: Belief) -> Lesser:
    """Find those who are less important than *pod*, of whose promises nobody was told; the least important first."""
    found = list[tuple[int, float, NodeName, Uid]]()
    for promise in belief.ledger:
        if not promise.is_answer and not promise.is_binding:
            other = belief.pods.with_uid(promise.pod)
            if other is not None and other.priority < pod.priority:
                found.append((other.priority, -promise.since, promise.node, promise.pod))
    lesser: dict[NodeName, list[Uid]] = {}
    for _, _, node, uid in sorted(found):
        lesser.setdefault(node, []).append(uid)
    return lesser


def yielding(pod: Pod, lesser: Lesser, nodes: Numbers, belief: Belief, chooser: Chooser) -> Sequence[Uid]:
    """Name those of *lesser* who leave what *pod* lacks on one of *nodes*: no more of them than it takes."""
    needs, seen = needs_of(pod, belief), belief.seen_by(pod.uid)
    if not isinstance(needs, Needs):
        return ()
    try:
        surveyed = survey(needs, _left(seen, chain(*lesser.values()), belief), belief.questions, chooser.taste)
    except Unfinished:
        return ()
    fits = set(nodes[surveyed.fits[nodes]].tolist()) if isinstance(surveyed, Survey) else ()
    there = next((node for node in lesser if seen.layout.number(node) in fits), None)
    if there is None:
        return ()
    others = lesser[there]
    fewer = (others[:count] for count in range(1, len(others) + 1))
    return next((some for some in fewer if _is_enough(chooser, needs, there, _left(seen, some, belief))), ())


def _is_enough(chooser: Chooser, needs: Needs, node: NodeName, snapshot: Snapshot) -> bool:
    return isinstance(chooser.place(needs, node, snapshot), Placement)


def _left(seen: Snapshot, others: Iterable[Uid], belief: Belief) -> Snapshot:
    """Return what is *seen* without what was promised to *others*."""
    return without(seen, chain.from_iterable(map(belief.ledger.offered, others)))
