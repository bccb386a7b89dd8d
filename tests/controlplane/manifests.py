"""The manifests of scheduler-config, as files and as a kustomization renders them."""

import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.client import Client, Object, RefusedError
from tests.controlplane.programs import kustomize
from tests.tree import ROOT

CONFIG = ROOT / "scheduler-config"
BASE = CONFIG / "base"
OVERLAYS = tuple(sorted(path.parent.name for path in CONFIG.glob("[0-9]*/kustomization.yaml")))
SCHEDULER = BASE / "scheduler.yaml"
OWNERS = {name: next((CONFIG / name).rglob("owner.yaml")) for name in OVERLAYS}
EXTENDER = CONFIG / OVERLAYS[-1] / "extender.yaml"
RIGHTS = {"extender": BASE / "rbac" / "extender.yaml", "scheduler": BASE / "rbac" / "scheduler.yaml"}


def documents(path: Path) -> list[Object]:
    """Return the objects of a file."""
    return list(yaml.safe_load_all(path.read_text()))


def rendered(folder: Path) -> list[Object]:
    """Return the objects that a kustomization stands for, in the order in which they are applied."""
    ran = subprocess.run([kustomize(), "build", folder], stdout=subprocess.PIPE, check=True)
    return list(yaml.safe_load_all(ran.stdout))


def whole(minor: str) -> list[Object]:
    """Return the objects of the overlay of *minor*, with the rule that by default not every cluster of it takes."""
    objects, rules = rendered(CONFIG / minor), documents(OWNERS[minor])
    return objects if rules[0]["kind"] in kinds(objects) else [*objects, *rules]


def kinds(objects: list[Object]) -> set[str]:
    return {each["kind"] for each in objects}


async def grant(admin: Client) -> None:
    """Give each of our users what its file grants, and no more.

    In a pod both programs have one ServiceAccount; here each has its own user: neither lives on the other's rights.
    """
    for each in documents(BASE / "namespace.yaml"):
        await _applied(admin, each)
    for user, path in RIGHTS.items():
        for each in documents(path):
            await _applied(admin, _bound_to(user, each) if each["kind"].endswith("Binding") else each)


def _bound_to(user: str, binding: Object) -> Object:
    metadata: dict[str, Any] = {**binding["metadata"], "name": f"{binding['metadata']['name']}-user"}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]
    return {**binding, "metadata": metadata, "subjects": subjects}


async def _applied(admin: Client, item: Object) -> None:
    reply = await admin.apply(item)
    if reply.status not in {200, 201}:
        raise RefusedError(f"{item['kind']} {item['metadata']['name']}: {reply.status} {reply.message}")
