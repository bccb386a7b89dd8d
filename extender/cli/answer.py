"""What the allocator says of each node of a case, and the same as JSON."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import perf_counter_ns
from typing import Any
from uuid import uuid4

from extender.allocation.board import board_of
from extender.allocation.choose import deciding
from extender.allocation.extended import in_words
from extender.allocation.pools import Unreadable
from extender.allocation.question import Question, Refusal, ask, formulas
from extender.allocation.reason import Reason, reason_of
from extender.allocation.result import Release, allocations, is_usable, overfull
from extender.allocation.solve import Failure, Manner, Solution, Undecided
from extender.allocation.work import finished
from extender.cli.case import Case
from extender.model.claim import Allocation, ResourceClaim
from extender.model.encode import allocation as spelled
from extender.model.frozen import dataclass
from extender.model.node import Node
from extender.model.node_selector import problem_of

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAnswer:
    """One node's answer. *fits* is None where the search was given up."""

    node: str
    fits: bool | None = False
    allocations: tuple[Allocation, ...] = ()
    node_error: str = ""
    fatal_error: str = ""
    reason: Reason | str = ""
    micros: float = 0


def answers(case: Case, manner: Manner, release: Release = Release.V1_37) -> Iterator[NodeAnswer]:
    """Answer for each node of *case*, in the words of *release*."""
    held = [claim for claim in case.claims if claim.allocation]
    asked: dict[tuple[str, ...], tuple[tuple[ResourceClaim, ...], Question | Refusal]] = {}
    for node in case.nodes:
        served = case.served_by(node)
        if served not in asked:
            asked[served] = _asked(case, served)
        claims, question = asked[served]
        elsewhere = next((claim for claim in held if not _can_be_used(claim, node)), None)
        if elsewhere:
            yield NodeAnswer(node=node.name, reason=f"claim {elsewhere.key.name} is allocated for other nodes")
        elif isinstance(question, Refusal):
            yield NodeAnswer(node=node.name, fatal_error=str(question))
        elif not question.claims:
            # Nothing is looked for, whatever is wrong with what is published.
            yield NodeAnswer(
                node=node.name, fits=True, allocations=tuple(filter(None, (item.allocation for item in held)))
            )
        else:
            started = perf_counter_ns()
            answer = _answer(Context(case, claims, question, manner, release), node)
            elapsed = (perf_counter_ns() - started) / 1000
            yield answer(round(elapsed, 1))


def _asked(case: Case, served: tuple[str, ...]) -> tuple[tuple[ResourceClaim, ...], Question | Refusal]:
    """Return the claims of a pod, and what those ask that hold nothing."""
    claims = case.claims_with(served)
    try:
        question = ask([claim for claim in claims if not claim.allocation], case.classes, case.features)
    except Refusal as refusal:
        return claims, refusal
    # What is timed is the search alone.
    for formula in formulas(question):
        finished(formula.compiling())
    return claims, question


@dataclass(frozen=True, slots=True)
class Context:
    """What is the same for all nodes that serve the same extended resources by devices."""

    case: Case
    claims: tuple[ResourceClaim, ...]
    question: Question
    manner: Manner
    release: Release


def _answer(context: Context, node: Node) -> Callable[[float], NodeAnswer]:
    """Answer for one node; what takes long to tell is told after the clock was read."""
    case = context.case
    try:
        board = board_of(node, case.slices, case.tainting, case.features)
        found = finished(deciding(context.question, board, case.usage_of, context.manner))
        written = allocations(found, lambda: str(uuid4()), context.release) if isinstance(found, Solution) else ()
    except Unreadable as error:
        message = str(error)
        return lambda micros: NodeAnswer(node=node.name, fatal_error=message, micros=micros)
    match found:
        case Solution() if flaw := overfull((part.claim for part in context.question.claims), written):
            return lambda micros: NodeAnswer(node=node.name, fatal_error=flaw, micros=micros)
        case Solution():
            fresh = iter(written)
            everything = tuple(claim.allocation or next(fresh) for claim in context.claims)
            return lambda micros: NodeAnswer(node=node.name, fits=True, allocations=everything, micros=micros)
        case Failure(message, is_local):
            local, fatal = (message, "") if is_local else ("", message)
            return lambda micros: NodeAnswer(node=node.name, node_error=local, fatal_error=fatal, micros=micros)
        case Undecided(steps):
            given_up = f"not decided within {steps} steps"
            return lambda micros: NodeAnswer(node=node.name, fits=None, node_error=given_up, micros=micros)
        case nothing:
            return lambda micros: NodeAnswer(node=node.name, reason=reason_of(nothing.situation), micros=micros)


def _can_be_used(claim: ResourceClaim, node: Node) -> bool:
    """Tell whether an allocated claim can be used on *node*."""
    allocation = claim.allocation
    if allocation and allocation.node_selector and problem_of(allocation.node_selector):
        return False
    return allocation is None or is_usable(allocation, node)


def in_words_of(answer: NodeAnswer, case: Case) -> NodeAnswer:
    """Say what a pod asks for in place of the claim that nobody has made for it yet."""
    if case.unmade is None:
        return answer
    pod = case.unmade.pod
    return replace(
        answer,
        node_error=in_words(answer.node_error, pod),
        fatal_error=in_words(answer.fatal_error, pod),
        reason=in_words(str(answer.reason), pod),
    )


def as_json(answer: NodeAnswer) -> Json:
    """Spell an answer; empty strings stand for no error and no reason."""
    return {
        "fits": answer.fits,
        "allocations": [spelled(item) for item in answer.allocations],
        "nodeError": answer.node_error,
        "fatalError": answer.fatal_error,
        "reason": str(answer.reason),
        "micros": answer.micros,
    }
