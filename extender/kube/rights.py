"""What this account may do, and which version the API server has: asked once, at the start."""

import re
from typing import Final

from extender.kube.answer import Answer, Json
from extender.kube.api import Api, Body
from extender.kube.resource import Served
from extender.model.problem import Problem
from extender.model.taint import DeviceTaintRule
from extender.scheduling.safety import Right

REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
DIGITS: Final = re.compile(r"\d+")


async def is_denied(api: Api, right: Right) -> bool:
    """Tell whether the API server says that we do not have *right*; where it says nothing, we may have it."""
    answer = await api.call("POST", REVIEWS, body=Body(review(right)))
    read = answer.json() if isinstance(answer, Answer) and answer.is_success else None
    status = read.get("status") if read else None
    return isinstance(status, dict) and status.get("allowed") is False


def review(right: Right) -> Json:
    """Spell the question for *right*, in any namespace."""
    asked = {"verb": right.verb, "group": right.group, "resource": right.resource, "subresource": right.part}
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }


async def minor_of(api: Api) -> int | None:
    """Return the API server's minor version; None where it does not tell."""
    answer = await api.call("GET", "/version")
    read = answer.json() if isinstance(answer, Answer) and answer.is_success else None
    # Some distributions write 37+.
    found = DIGITS.match(str(read.get("minor", ""))) if read else None
    return int(found.group()) if found else None


async def has_rule_with(api: Api, served: Served, key: str) -> bool:
    """Tell whether any rule puts the taint *key* on devices."""
    answer = await api.call("GET", served.path())
    read = answer.json() if isinstance(answer, Answer) and answer.is_success else None
    items = read.get("items") if read else None
    rules = (_rule(item, served) for item in items) if isinstance(items, list) else ()
    return any(isinstance(rule, DeviceTaintRule) and rule.taint.key == key for rule in rules)


def _rule(item: object, served: Served) -> object:
    found = served.resource.parse(item, served.version)
    return None if isinstance(found, Problem) else found
