"""Small questions about one node some of whose requests err on some devices, and are not met everywhere."""

from typing import Any

from tests.allocation.drawing import GPU, Draw

Json = dict[str, Any]
ATTRIBUTES = ("a", "b", "c")
OF = f"device.attributes['{GPU}']"
# On a device without the attribute `ok` the first and the last err; the last only where it comes to that.
RASH = (f"{OF}.ok", f"{OF}.?a.orValue(0) > 1", f"{OF}.?a.orValue(0) <= 1", f"{OF}.?a.orValue(0) > 1 && {OF}.ok")


def question(seed: object) -> Json:
    draw = Draw(f"rash {seed}")
    spec: Json = {"driver": GPU, "nodeName": "n1", "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}}
    spec["devices"] = [_device(draw, f"d{place}") for place in range(draw.between(3, 9))]
    return {
        "name": "rash",
        "nodes": [{"metadata": {"name": "n1"}}],
        "classes": [{"metadata": {"name": "gpu"}}],
        "slices": [{"metadata": {"name": "s"}, "spec": spec}],
        "claims": [_claim(draw, f"c{index}") for index in range(draw.pick((1, 1, 2)))],
    }


def _device(draw: Draw, name: str) -> Json:
    attributes: Json = {attribute: {"int": draw.between(0, 3)} for attribute in draw.some(ATTRIBUTES, 0.9)}
    if draw.chance(0.85):
        attributes["ok"] = {"bool": draw.chance(0.9)}
    return {"name": name, "attributes": attributes} | ({"allowMultipleAllocations": True} if draw.chance(0.1) else {})


def _claim(draw: Draw, name: str) -> Json:
    requests = [_request(draw, f"r{index}") for index in range(draw.between(1, 4))]
    names = [request["name"] for request in requests]
    constraints = [
        {
            draw.pick(("matchAttribute", "matchAttribute", "distinctAttribute")): f"{GPU}/{draw.pick(ATTRIBUTES)}",
            "requests": draw.sample(names, draw.between(1, len(names))),
        }
        for _ in range(draw.between(0, 3))
    ]
    spec = {"devices": {"requests": requests, "constraints": constraints}}
    return {"metadata": {"namespace": "ns", "name": name}, "spec": spec}


def _request(draw: Draw, name: str) -> Json:
    if draw.chance(0.35):
        return {"name": name, "firstAvailable": [{"name": f"s{index}"} | _body(draw) for index in range(2)]}
    return {"name": name, "exactly": _body(draw) | ({"adminAccess": True} if draw.chance(0.07) else {})}


def _body(draw: Draw) -> Json:
    if draw.chance(0.02):
        return {"deviceClassName": "gpu", "allocationMode": "All"}
    body: Json = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": draw.pick((1, 1, 2, 2, 3))}
    if draw.chance(0.6):
        body["selectors"] = [{"cel": {"expression": draw.pick(RASH)}}]
    return body
