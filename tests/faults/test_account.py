"""Where a test has waited in vain, it says why."""

from pathlib import Path

import pytest

from tests.controlplane.client import Object
from tests.controlplane.plane import Plane
from tests.faults import scene
from tests.faults.account import account
from tests.invariants.checker import Moment


def pod(version: int, *named: str) -> Object:
    metadata = {"name": "p1", "namespace": "default", "uid": "u1", "resourceVersion": str(version)}
    statuses = [{"name": name, "resourceClaimName": f"p1-{name}"} for name in named]
    return {"metadata": metadata, "spec": {}, "status": {"resourceClaimStatuses": statuses}}


def claim(name: str, owner: str) -> Object:
    return {"metadata": {"name": name, "namespace": "default", "ownerReferences": [{"uid": owner}]}, "spec": {}}


def moment(version: int, *named: str) -> Moment:
    claims = [claim("p1-gpu", "u1"), claim("p1-nic", "u1"), claim("p2-gpu", "u2")]
    return Moment(pods=[pod(version, *named)], claims=claims)


@pytest.mark.parametrize("seen", ["p1 has no claims", "default/p1 waits"])
def test_of_a_pod_that_waits_is_told_what_it_has_and_names_and_what_was_said_of_it(tmp_path: Path, seen: str) -> None:
    plane = Plane(tmp_path, tmp_path)
    plane.log("kube-controller-manager").write_text("about p1\nabout p2\n")
    told = [*account(plane, [moment(7, "gpu"), moment(9, "nic")], [seen])]
    assert told == [
        "default/p1 in version 7 names {'gpu': 'p1-gpu'}; made for it: ['default/p1-gpu', 'default/p1-nic']; ",
        "default/p1 in version 9 names {'nic': 'p1-nic'}; made for it: ['default/p1-gpu', 'default/p1-nic']; ",
        "kube-controller-manager: about p1\nabout p2\n",
        "kube-controller-manager on p1: about p1",
    ]


async def test_who_waits_for_calm_in_vain_hears_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plane = Plane(tmp_path, tmp_path)
    plane.log("etcd").write_text("no disk")
    monkeypatch.setattr("tests.controlplane.client.PATIENCE_SECONDS", 0.2)
    here = scene.Scene(plane, None, None, _Deaf(), (), 0)  # type: ignore[arg-type]  # nobody is asked

    async def seen(_: object) -> Moment:
        waits = pod(7)
        waits["spec"] = {"schedulerName": scene.SCHEDULER, "resourceClaims": [{"name": "gpu"}]}
        return Moment(pods=[waits])

    monkeypatch.setattr(scene, "moment_of", seen)
    with pytest.raises(AssertionError, match=r"no calm: \['p1 has no claims'\]\n(.*\n)*etcd: no disk"):
        await here.calm()


class _Deaf:
    async def metrics(self) -> str:
        return "dra_extender_holds 0"
