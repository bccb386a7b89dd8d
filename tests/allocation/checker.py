"""A plain, slow judge of allocations: what is wrong with one, by the rules of DRA and without searching."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from tests.allocation.checked_devices import is_tolerated, selector_problem, taints_of, values_of
from tests.allocation.checked_joint import joint_problems
from tests.allocation.checked_pools import selects
from tests.allocation.checked_question import View, refusals, view_of
from tests.allocation.checked_results import Pick, config_of, field_problems, node_selector_of
from tests.allocation.comparison import normalised

Json = dict[str, Any]
# One way to read the results of a claim: each request with its name there, what was chosen of it, and its results.
Reading = list[tuple[Json, str, Json, list[Json]]]
RESULTS = 32


def violations(case: Json, node: Json, allocations: list[Json]) -> list[str]:
    """Return what is wrong with *allocations*, one for each claim of *case*, on *node*: nothing if all is well."""
    view = view_of(case, node)
    if refused := list(refusals(view)):
        return refused
    if len(allocations) != len(case["claims"]):
        return [f"{len(allocations)} allocations for {len(case['claims'])} claims"]
    held: list[str] = []
    readings: list[list[Reading | None]] = []
    for claim, allocation in zip(case["claims"], allocations, strict=True):
        if (claim.get("status") or {}).get("allocation"):
            held += list(_held_problems(claim, node, allocation))
            readings.append([None])
        else:
            results = (allocation.get("devices") or {}).get("results") or []
            # Names need not tell alternatives apart: the best reading counts.
            readings.append(list(_readings(view, claim["spec"]["devices"].get("requests") or [], results)))
            if not readings[-1]:
                return [f"claim {claim['metadata']['name']}: the results do not answer its requests in their order"]
    return held + min((_problems(view, allocations, read) for read in product(*readings)), key=len)


def _held_problems(claim: Json, node: Json, allocation: Json) -> Iterator[str]:
    held = claim["status"]["allocation"]
    if allocation != held:
        yield f"claim {claim['metadata']['name']}: its allocation was changed"
    if held.get("nodeSelector") is not None and not selects(held["nodeSelector"], node):
        yield f"claim {claim['metadata']['name']}: its allocation is for other nodes"


def _readings(view: View, requests: list[Json], results: list[Json]) -> Iterator[Reading]:
    if not requests:
        if not results:
            yield []
        return
    first, *rest = requests
    for body in first.get("firstAvailable") or (first["exactly"],):
        name = f"{first['name']}/{body['name']}" if first.get("firstAvailable") else first["name"]
        count = _count(view, body)
        own = results[:count]
        if len(own) == count and all(result.get("request") == name for result in own):
            for reading in _readings(view, rest, results[count:]):
                yield [(first, name, body, own), *reading]


def _count(view: View, body: Json) -> int | None:
    """Return how many devices a request takes. All of none is no answer: None."""
    return (len(view.everything(body)) or None) if body["allocationMode"] == "All" else (body.get("count") or 0)


def _problems(view: View, allocations: list[Json], readings: tuple[Reading | None, ...]) -> list[str]:
    found: list[str] = []
    picks: list[Pick] = []
    for index, (allocation, reading) in enumerate(zip(allocations, readings, strict=True)):
        if reading is None:
            continue
        own: list[Pick] = []
        for _, name, body, results in reading:
            for result in results:
                published = view.published(result)
                if published is None:
                    found.append(f"claim #{index}, request {name}: the node has no usable {result}")
                else:
                    own.append(Pick(index, name, body, result, published))
        found += _claim_problems(view, view.case["claims"][index], allocation, reading, own)
        picks += own
    for pick in picks:
        found += [*_device_problems(view, pick), *field_problems(view, pick)]
    return found + list(joint_problems(view, picks))


def _claim_problems(view: View, claim: Json, allocation: Json, reading: Reading, picks: list[Pick]) -> Iterator[str]:
    name = claim["metadata"]["name"]
    if len(picks) > RESULTS:
        yield f"claim {name}: {len(picks)} results"
    for _, request, body, results in reading:
        if body["allocationMode"] == "All" and len({_key(result) for result in results}) != len(results):
            yield f"claim {name}, request {request}: not all devices"
    for constraint in claim["spec"]["devices"].get("constraints") or ():
        yield from _constraint_problems(view, constraint, [pick for pick in picks if _covers(constraint, pick.name)])
    config = config_of(view, claim, [(request, chosen, body) for request, chosen, body, _ in reading])
    selector = node_selector_of(view, picks)
    if isinstance(selector, str):
        yield selector
        return
    expected = {"devices": {"results": [pick.result for pick in picks], "config": config}, "nodeSelector": selector}
    (told,), (wanted,) = normalised([allocation]), normalised([expected])
    for part in ("config", "terms"):
        if told[part] != wanted[part]:
            yield f"claim {name}: {part} {told[part]} is not {wanted[part]}"
    if extra := set(allocation) - {"devices", "nodeSelector"}:
        yield f"claim {name}: unexpected {sorted(extra)}"


def _key(result: Json) -> tuple[str, str, str]:
    return result["driver"], result["pool"], result["device"]


def _covers(constraint: Json, name: str) -> bool:
    requests = constraint.get("requests")
    return not requests or name in requests or name.partition("/")[0] in requests


def _constraint_problems(view: View, constraint: Json, picks: list[Pick]) -> Iterator[str]:
    match = constraint.get("matchAttribute")
    attribute = match or constraint["distinctAttribute"]
    lists = "DRAListTypeAttributes" in view.gates
    seen: list[tuple[str, frozenset[object]]] = []
    for pick in picks:
        values = values_of(pick.published, attribute, pick.body.get("derivedAttributes") or [])
        if isinstance(values, str):
            yield f"{pick.where}: {values}"
            return
        kind, items = values
        if not lists and kind.endswith("s") and seen:
            yield f"{pick.where}: {attribute} is a list, which is off"
        seen.append((kind.removesuffix("s") if lists else kind, items))
    kinds = {kind for kind, _ in seen}
    if match and seen and (len(kinds) > 1 or not frozenset.intersection(*(items for _, items in seen))):
        yield f"{attribute} does not match: {seen}"
    for index, (kind, items) in enumerate(seen):
        if not match and any(kind == other and items & others for other, others in seen[:index]):
            yield f"{attribute} is not distinct: {seen}"


def _device_problems(view: View, pick: Pick) -> Iterator[str]:
    """Judge one device for the request that it was given to, apart from whoever else gets it."""
    device, spec = pick.published.device, pick.published.spec
    if problem := selector_problem(pick.published, view.selectors(pick.body)):
        yield f"{pick.where}: {problem}"
    if not view.may_bind(pick.published):
        yield f"{pick.where}: binding conditions are off"
    if device.get("consumesCounters") and "DRAPartitionableDevices" not in view.gates:
        yield f"{pick.where}: partitions are off"
    if spec.get("skipNodeOperations"):
        declared = (view.node.get("status") or {}).get("declaredFeatures") or ()
        if "DRAOptionalNodeOperations" not in view.gates or "DRAOptionalNodeOperations" not in declared:
            yield f"{pick.where}: node operations cannot be skipped"
    if "DRADeviceTaints" in view.gates:
        rules = (view.case.get("taintRules") or []) if "DRADeviceTaintRules" in view.gates else []
        for taint in taints_of(pick.published, rules):
            blocks = taint.get("effect") in ("NoSchedule", "NoExecute")
            if blocks and not is_tolerated(taint, pick.body.get("tolerations") or []):
                yield f"{pick.where}: taint {taint} is not tolerated"
