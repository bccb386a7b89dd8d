"""What this account may do, and which version the API server has: asked at the start.

That nobody answered is a Setback, and no answer.
"""

import re
from typing import Final

from extender.kube.answer import Answer, Json
from extender.kube.api import Api
from extender.kube.request import Body
from extender.kube.resource import Served
from extender.kube.setback import Setback, setback_of
from extender.model.taint import NO_SCHEDULE, DeviceTaintRule
from extender.scheduling.rights import Right

REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
DIGITS: Final = re.compile(r"\d+")


async def is_denied(api: Api, right: Right) -> bool | Setback:
    """Tell whether the API server says that we do not have *right*; where it says nothing, we may have it."""
    read = await _read(api, "POST", REVIEWS, Body(review(right)))
    if isinstance(read, Setback):
        return read
    status = read.get("status")
    return isinstance(status, dict) and status.get("allowed") is False


def review(right: Right) -> Json:
    """Spell the question for *right*, in any namespace."""
    asked = {"verb": right.verb, "group": right.group, "resource": right.resource, "subresource": right.part}
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }


async def minor_of(api: Api) -> int | Setback | None:
    """Return the API server's minor version; None where it does not tell."""
    read = await _read(api, "GET", "/version")
    if isinstance(read, Setback):
        return read
    # Some distributions write 37+.
    found = DIGITS.match(str(read.get("minor", "")))
    return int(found.group()) if found else None


async def has_rule_with(api: Api, served: Served, key: str) -> bool | Setback:
    """Tell whether any rule keeps whoever does not tolerate *key* from all devices of a driver, or of all."""
    read = await _read(api, "GET", served.path())
    if isinstance(read, Setback):
        return read
    items = read.get("items")
    rules = (served.resource.parse(item, served.version) for item in items) if isinstance(items, list) else ()
    return any(isinstance(rule, DeviceTaintRule) and _is_partition(rule, key) for rule in rules)


def _is_partition(rule: DeviceTaintRule, key: str) -> bool:
    chosen = rule.selector
    is_whole = chosen is not None and chosen.pool is None and chosen.device is None and not chosen.asks_attributes
    return is_whole and (rule.taint.key, rule.taint.effect) == (key, NO_SCHEDULE)


async def _read(api: Api, method: str, path: str, body: Body | None = None) -> Json | Setback:
    answer = await api.call(method, path, body=body)
    read = answer.json() if isinstance(answer, Answer) and answer.is_success else None
    return setback_of(answer) if read is None else read
