"""What an allocation must say beside the devices: the fields of results, the configuration, the node selector."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from extender.model.quantity import quantity_of
from tests.allocation.checked_pools import Published
from tests.allocation.checked_question import BINDING, View

Json = dict[str, Any]


class Pick(NamedTuple):
    """One result, the request that it answers, and the device that it names."""

    claim: int
    name: str
    body: Json
    result: Json
    published: Published

    @property
    def is_admin(self) -> bool:
        return bool(self.body.get("adminAccess"))

    @property
    def where(self) -> str:
        return f"claim #{self.claim}, request {self.name}, device {'/'.join(self.published.key)}"


def field_problems(view: View, pick: Pick) -> Iterator[str]:
    """Compare a result's fields with what the request and the device make of them."""
    result = {key: value for key, value in pick.result.items() if value not in (None, [], {})}
    for name, value in _expected(view, pick).items():
        if result.pop(name, []) != value:
            yield f"{pick.where}: {name} is not {value}"
    share, consumed = result.pop("shareID", None), result.pop("consumedCapacity", {})
    if view.is_shared(pick.published):
        if not share:
            yield f"{pick.where}: a share without an id"
        amounts = view.amounts(pick.published, pick.body)
        if pick.is_admin and consumed:
            yield f"{pick.where}: consumedCapacity of what is looked into only"
        elif not pick.is_admin and {name: quantity_of(amount).nanos for name, amount in consumed.items()} != amounts:
            yield f"{pick.where}: consumedCapacity {consumed} is not {amounts}"
    elif share or consumed:
        yield f"{pick.where}: a share of what cannot be shared"
    if result:
        yield f"{pick.where}: unexpected {sorted(result)}"


def _expected(view: View, pick: Pick) -> Json:
    driver, pool, device = pick.published.key
    drawn = pick.published.device if view.gates >= BINDING else {}
    expected: Json = {
        "request": pick.name,
        "driver": driver,
        "pool": pool,
        "device": device,
        "tolerations": pick.body.get("tolerations") or [],
        "bindingConditions": drawn.get("bindingConditions") or [],
        "bindingFailureConditions": drawn.get("bindingFailureConditions") or [],
        "skipNodeOperations": pick.published.spec.get("skipNodeOperations") or [],
        "adminAccess": True if pick.is_admin else [],
    }
    return expected


def config_of(view: View, claim: Json, chosen: list[tuple[Json, str, Json]]) -> list[Json]:
    """Return the configuration of a claim. *chosen* has each request, its name in results, and what was chosen."""
    entries: list[Json] = []
    start_of_class: dict[str, list[Json]] = {}
    for _, name, body in chosen:
        class_name = body["deviceClassName"]
        if class_name not in start_of_class:
            spec = view.classes[class_name].get("spec") or {}
            start_of_class[class_name] = [
                {"source": "FromClass", "requests": [], **config} for config in spec.get("config") or ()
            ]
            entries += start_of_class[class_name]
        for entry in start_of_class[class_name]:
            entry["requests"].append(name)
    names = {name for _, name, _ in chosen} | {request["name"] for request, _, _ in chosen}
    entries += [
        {"source": "FromClaim", **config}
        for config in claim["spec"]["devices"].get("config") or ()
        if not config.get("requests") or names & set(config["requests"])
    ]
    for entry in entries:
        if all({request["name"], name} & set(entry.get("requests") or ()) for request, name, _ in chosen):
            entry["requests"] = []
    return [{key: value for key, value in entry.items() if value not in (None, [])} for entry in entries]


def node_selector_of(view: View, picks: list[Pick]) -> Json | str | None:
    """Return the selector that the devices of one claim make, or say why there is none to be had."""
    fields: list[Json] = []
    expressions: list[Json] = []
    for pick in picks:
        place = pick.published.device if pick.published.spec.get("perDeviceNodeSelection") else pick.published.spec
        if place.get("nodeName") or pick.published.device.get("bindsToNode"):
            name = {"key": "metadata.name", "operator": "In", "values": [view.node["metadata"]["name"]]}
            return {"nodeSelectorTerms": [{"matchFields": [name]}]}
        terms = (place.get("nodeSelector") or {}).get("nodeSelectorTerms") or []
        if len(terms) > 1:
            return "a node selector with more than one term"
        for term in terms:
            _add_missing(fields, term.get("matchFields") or [])
            _add_missing(expressions, term.get("matchExpressions") or [])
    term = {"matchFields": fields, "matchExpressions": expressions}
    kept = {key: value for key, value in term.items() if value}
    return {"nodeSelectorTerms": [kept]} if kept else None


def _add_missing(requirements: list[Json], more: list[Json]) -> None:
    for requirement in more:
        if all(_meaning(requirement) != _meaning(known) for known in requirements):
            requirements.append(requirement)


def _meaning(requirement: Json) -> tuple[str, str, frozenset[str]]:
    return requirement["key"], requirement["operator"], frozenset(requirement.get("values") or ())
