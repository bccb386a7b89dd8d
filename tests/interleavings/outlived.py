"""What writes of whoever was followed could still do, once who follows says that they do nothing any more."""

from collections.abc import Collection, Iterator
from random import Random
from typing import TYPE_CHECKING, Any, Final, Protocol

from extender.config.settings import Settings
from extender.demo.apiserver.kinds import DRA
from extender.demo.apiserver.paths import target_of
from extender.demo.apiserver.server import ApiServer
from tests.interleavings.server import Desk, Line, Request

if TYPE_CHECKING:
    from tests.interleavings.loop import Clock
    from tests.interleavings.process import Process

Json = dict[str, Any]
# How long whoever follows has until it writes, in steps of a second.
SUCCESSION_S: Final = 40
SCHEDULERS: Final = Settings().schedulers
# How much of what is kept from landing tries to at once.
EAGER: Final = 0.5
# How much of what was sent by who goes on no more lies where it is, each time that something else could become of it.
LIES: Final = 0.95
FINISHED: Final = ("Succeeded", "Failed")


class House(Protocol):
    """Whoever has processes of the extender."""

    clock: "Clock"
    desk: Desk

    def is_gone(self, line: Line) -> bool:
        """Tell whether who speaks by *line* goes on no more."""

    def living(self) -> list["Process"]:
        """Return the processes that run."""

    def aged(self) -> None:
        """Do what is due now that time has passed."""


def danger(request: Request, api: ApiServer) -> str:
    """Say what *request* would do if it arrived now; nothing where it would be in vain, or harmless."""
    target, version = target_of(request.path, api.kinds), _version(request)
    item = api.store.get(target.kind, target.key)
    if item is None or version != item["metadata"]["resourceVersion"]:
        return ""
    if target.part == "binding":
        has_devices = any(_is_reserved(claim, item) for claim in api.store.all(api.kinds[DRA, "v1", "resourceclaims"]))
        return "binds a pod that waits with its devices" if _waits(item) and has_devices else ""
    if target.kind.name != "ResourceClaim":
        return ""
    if not (item.get("status") or {}).get("allocation"):
        return "gives devices" if request.gives_devices else ""
    is_awaited = any(_is_reserved(item, pod) for pod in _waiting(api))
    return "changes a claim for which a pod waits" if is_awaited else ""


def outlive(desk: Desk, own: Collection[Line], random: Random) -> None:
    """Have what others than *own* have sent arrive at any time, or never; some of it now, before all else is written.

    Whoever follows has seen to it that this changes nothing.
    """
    # What it has sent itself, when it led before, is nothing that it could have moved on.
    desk.open += [each for each in desk.asleep if each.sender not in own]
    desk.asleep = [each for each in desk.asleep if each.sender in own]
    for request in [each for each in desk.open if each.sender not in own]:
        request.is_outlived = True
        desk.happened["outlived"] += request.is_write
        if why := danger(request, desk.api):
            desk.complaints.append(f"{request} could still arrive, and {why}")
        if not request.is_awaited and random.random() < EAGER:
            desk.land(request)


def go_well(house: House, seconds: float) -> None:
    """Let time pass in which all goes well for those that go on."""
    house.clock.pass_to(house.clock.moment + seconds)
    house.desk.too_late()
    while heard := [each for each in house.desk.open if not house.is_gone(each.sender)]:
        for request in heard:
            house.desk.land(request)
        for process in house.living():
            process.catch_up()
        house.clock.settle()
    house.aged()


def _version(request: Request) -> str | None:
    """Return the version that *request* is meant for; None where it is for any."""
    content = request.body.content if request.body else None
    if isinstance(content, list):
        return next((step["value"] for step in content if step["path"] == "/metadata/resourceVersion"), None)
    return (content.get("metadata") or {}).get("resourceVersion") if isinstance(content, dict) else None


def _waiting(api: ApiServer) -> Iterator[Json]:
    return filter(_waits, api.store.all(api.kinds["", "v1", "pods"]))


def _waits(pod: Json) -> bool:
    is_ours = pod["spec"].get("schedulerName") in SCHEDULERS
    return is_ours and not pod["spec"].get("nodeName") and (pod.get("status") or {}).get("phase") not in FINISHED


def _is_reserved(claim: Json, pod: Json) -> bool:
    users = (claim.get("status") or {}).get("reservedFor") or ()
    return any(user["uid"] == pod["metadata"]["uid"] for user in users)
