"""A solution as Kubernetes writes it: the allocation of each claim."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import repeat
from typing import Final, NamedTuple

from extender.allocation.board import Candidate
from extender.allocation.configuration import ENTRIES, excess
from extender.allocation.eligibility import NODE_OPERATIONS
from extender.allocation.pools import Unreadable
from extender.allocation.question import Ask, At, ClaimQuestion, Question
from extender.allocation.situation import Situation
from extender.allocation.solve import Solution
from extender.model.claim import AllocatedDevice, Allocation, DeviceConfig, ResourceClaim
from extender.model.names import NodeName
from extender.model.node import Node
from extender.model.node_selector import NodeSelector, NodeSelectorTerm, Requirement, matches
from extender.model.quantity import Quantity

FROM_CLASS: Final = "FromClass"
FROM_CLAIM: Final = "FromClaim"


class Release(IntEnum):
    """Minor releases of Kubernetes, from the oldest that is served; later ones write what the last one here does."""

    V1_34 = 34
    V1_35 = 35
    V1_36 = 36
    V1_37 = 37


class Given(NamedTuple):
    """A device for an ask; *amounts* is what a share takes of it, None for who gets all of it.

    Who looks into a device that may be shared takes nothing, but has an identifier like a share: without one nothing
    would tell apart two results of a claim.
    """

    at: At
    candidate: Candidate
    amounts: tuple[tuple[str, Quantity], ...] | None = None


def allocations(
    solution: Solution, share_id: Callable[[], str], release: Release = Release.V1_37
) -> tuple[Allocation, ...]:
    """Write *solution* down as Kubernetes of *release* does; *share_id* gives a new identifier for each share."""
    situation = solution.situation
    given = [_given(situation, pick.at, pick.place) for pick in solution.picks]
    return written(situation.question, situation.board.node.name, given, share_id, release)


def _given(situation: Situation, at: At, place: int) -> Given:
    candidate = situation.board.candidates[place]
    if not situation.is_shareable(place):
        return Given(at, candidate)
    return Given(at, candidate, () if situation.asks[at].is_admin else situation.eligible[at].draws[place].amounts)


def written(
    question: Question, node: NodeName, given: Sequence[Given], share_id: Callable[[], str], release: Release
) -> tuple[Allocation, ...]:
    """Write down what is *given* on *node*, in the order of the question."""
    found = []
    for claim, part in enumerate(question.claims):
        mine = [item for item in given if item.at.claim == claim]
        found.append(
            Allocation(
                devices=tuple(_device(question, item, share_id) for item in mine),
                config=_config(question, part, _chosen(part, mine), release),
                node_selector=node_selector((item.candidate for item in mine), node),
            )
        )
    return tuple(found)


def _chosen(part: ClaimQuestion, given: Sequence[Given]) -> tuple[Ask, ...]:
    """Return the ask that each slot of a claim was answered by; without a device, the first that takes none."""
    index_of = {item.at.slot: item.at.ask for item in given}
    return tuple(
        slot.asks[index_of[index]] if index in index_of else next(ask for ask in slot.asks if _takes_none(ask))
        for index, slot in enumerate(part.slots)
    )


def _takes_none(ask: Ask) -> bool:
    return not ask.takes_all and ask.count <= 0


def _device(question: Question, given: Given, share_id: Callable[[], str]) -> AllocatedDevice:
    ask, candidate, features = question.asks[given.at], given.candidate, question.features
    traits = candidate.device.traits
    return AllocatedDevice(
        request=ask.name,
        device=candidate.key,
        admin_access=ask.is_admin,
        tolerations=ask.tolerations,
        binding_conditions=traits.binding_conditions if features.binding else (),
        binding_failure_conditions=traits.binding_failure_conditions if features.binding else (),
        share_id=None if given.amounts is None else share_id(),
        consumed_capacity=given.amounts or (),
        skip_node_operations=candidate.published.skip_node_operations,
    )


def _config(
    question: Question, part: ClaimQuestion, chosen: Sequence[Ask], release: Release
) -> tuple[DeviceConfig, ...]:
    if release < Release.V1_37:
        classes = _class_config if release >= Release.V1_35 else _class_config_by_request
        repeated = *classes(question, chosen), *_repeated_claim_config(part, chosen)
        # Without repetitions they are fewer and say the same; every release takes and reads them so.
        if len(repeated) <= ENTRIES:
            return repeated
    entries = [*_class_config(question, chosen), *_claim_config(part, chosen)]
    return tuple(_widened(entry, part, chosen) for entry in entries)


def overfull(claims: Iterable[ResourceClaim], given: Iterable[Allocation]) -> str:
    """Say which of *claims* is *given* more configuration than an allocation can have; nothing where none is."""
    for claim, allocation in zip(claims, given, strict=True):
        if flaw := excess(len(allocation.config)):
            return f"claim {claim.key.name}: {flaw}"
    return ""


def _class_config_by_request(question: Question, chosen: Sequence[Ask]) -> Iterator[DeviceConfig]:
    """Yield the configuration of each request's class, for whichever requests."""
    for ask in chosen:
        for entry in question.classes[ask.class_name].config:
            yield DeviceConfig(opaque=entry.opaque, source=FROM_CLASS)


def _repeated_claim_config(part: ClaimQuestion, chosen: Sequence[Ask]) -> Iterator[DeviceConfig]:
    """Yield the claim's own configuration, an entry that names requests once for each of them."""
    for entry in part.claim.spec.config:
        named = sum(
            slot.name in entry.requests or ask.name in entry.requests
            for slot, ask in zip(part.slots, chosen, strict=True)
        )
        fresh = DeviceConfig(requests=entry.requests, opaque=entry.opaque, source=FROM_CLAIM)
        yield from repeat(fresh, named if entry.requests else 1)


def _class_config(question: Question, chosen: Sequence[Ask]) -> Iterator[DeviceConfig]:
    """Yield the configuration of each class once, for all requests of that class."""
    requests: dict[str, list[str]] = {}
    for ask in chosen:
        requests.setdefault(ask.class_name, []).append(ask.name)
    for name in dict.fromkeys(ask.class_name for ask in chosen):
        for entry in question.classes[name].config:
            yield DeviceConfig(requests=tuple(requests[name]), opaque=entry.opaque, source=FROM_CLASS)


def _claim_config(part: ClaimQuestion, chosen: Sequence[Ask]) -> Iterator[DeviceConfig]:
    """Yield the claim's own configuration, as far as it is for a request or for an alternative that was chosen."""
    names = {slot.name for slot in part.slots} | {ask.name for ask in chosen}
    for entry in part.claim.spec.config:
        if not entry.requests or names.intersection(entry.requests):
            yield DeviceConfig(requests=entry.requests, opaque=entry.opaque, source=FROM_CLAIM)


def _widened(entry: DeviceConfig, part: ClaimQuestion, chosen: Sequence[Ask]) -> DeviceConfig:
    """Clear the requests of an entry that is for all of them."""
    named = set(entry.requests)
    covers_all = all(slot.name in named or ask.name in named for slot, ask in zip(part.slots, chosen, strict=True))
    return DeviceConfig(opaque=entry.opaque, source=entry.source) if covers_all else entry


def node_selector(candidates: Iterable[Candidate], node: NodeName) -> NodeSelector | None:
    """Say where a claim with these devices can be used: None for everywhere."""
    expressions: dict[object, Requirement] = {}
    fields: dict[object, Requirement] = {}
    for candidate in candidates:
        selection = candidate.selection
        if selection.node_name is not None or candidate.device.traits.binds_to_node:
            only = Requirement(key="metadata.name", operator="In", values=(node,))
            return NodeSelector((NodeSelectorTerm(fields=(only,)),))
        terms = selection.terms
        if len(terms) > 1:
            raise Unreadable(f"nodeSelector: {len(terms)} terms cannot be part of an allocation, only one can")
        for term in terms:
            _add(term.expressions, expressions)
            _add(term.fields, fields)
    if not expressions and not fields:
        return None
    return NodeSelector((NodeSelectorTerm(expressions=tuple(expressions.values()), fields=tuple(fields.values())),))


def ties_of(allocation: Allocation) -> tuple[NodeSelector | None, bool]:
    """Return what decides on which nodes what is allocated can be used: a selector; whether operations are skipped."""
    return allocation.node_selector, any(item.skip_node_operations for item in allocation.devices)


def is_bound_to_nodes(allocation: Allocation) -> bool:
    """Tell whether there are nodes on which what is allocated may not be used."""
    return ties_of(allocation) != (None, False)


def is_usable(allocation: Allocation, node: Node) -> bool:
    """Tell whether what is allocated can be used on *node*: its kubelet reaches and can prepare it."""
    selector, skips = ties_of(allocation)
    if skips and NODE_OPERATIONS not in node.declared_features:
        return False
    return selector is None or matches(selector, node.name, dict(node.labels))


def check_writable(solution: Solution) -> None:
    """Raise Unreadable where the devices of a claim cannot be written down as one allocation."""
    board = solution.situation.board
    for claim in range(len(solution.situation.question.claims)):
        picked = [board.candidates[pick.place] for pick in solution.picks if pick.at.claim == claim]
        node_selector(picked, board.node.name)


def _add(requirements: Iterable[Requirement], to: dict[object, Requirement]) -> None:
    for item in requirements:
        to.setdefault((item.key, item.operator, frozenset(item.values)), item)
