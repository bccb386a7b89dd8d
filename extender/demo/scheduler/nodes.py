"""What the scheduler's own plugins would say of nodes, as far as a pretend cluster needs it."""

from extender.demo.apiserver.kinds import Json


def feasible(pod: Json, nodes: list[Json]) -> list[str]:
    """Name the nodes that *pod* may go to: not cordoned, and with the labels that it selects."""
    wanted = (pod["spec"].get("nodeSelector") or {}).items()
    return [
        node["metadata"]["name"]
        for node in nodes
        if not (node.get("spec") or {}).get("unschedulable")
        and wanted <= (node["metadata"].get("labels") or {}).items()
    ]


def is_ready(pod: Json, claims: set[tuple[str, str]]) -> bool:
    """Tell whether *pod* may enter the queue: not gated, and all its claims exist."""
    if pod["spec"].get("schedulingGates"):
        return False
    made = {entry["name"]: entry.get("resourceClaimName") for entry in pod["status"].get("resourceClaimStatuses") or ()}
    namespace = pod["metadata"]["namespace"]
    for entry in pod["spec"].get("resourceClaims") or ():
        name = entry.get("resourceClaimName") or made.get(entry["name"])
        if (namespace, name) not in claims and not (entry["name"] in made and name is None):
            return False
    return True
