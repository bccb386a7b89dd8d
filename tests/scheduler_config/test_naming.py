"""Pods of labelled namespaces name our scheduler by themselves, if they have claims and name no other."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import count

import pytest

from extender.config.settings import Settings
from tests.controlplane.client import Client, Object, until
from tests.controlplane.manifests import CONFIG, documents
from tests.controlplane.objects import pod

POLICY = CONFIG / "naming" / "policy.yaml"
STOCK = "default-scheduler"
NUMBERS = count()


def owned_by(kind: str) -> list[Object]:
    return [{"apiVersion": "apps/v1", "kind": kind, "name": "owner", "uid": "6f1c"}]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A namespace with the label of the policy."""

    admin: Client
    name: str

    async def named(self, item: Object) -> str:
        """Return the scheduler of a pod as it would be created."""
        made = await self.admin.must("POST", await self.admin.path(item, name=False), item, dryRun="All")
        return str(made["spec"]["schedulerName"])

    def asking(self, scheduler: str = STOCK) -> Object:
        """Return a pod with a claim."""
        return pod("asking", templates=("gpu",), scheduler=scheduler, namespace=self.name)


@pytest.fixture
async def labelled(admin: Client) -> AsyncIterator[Labelled]:
    """Have the policy act on a namespace with its label."""
    space: Object = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": f"labelled-{next(NUMBERS)}",
            "labels": {"dra-extender.x-k8s.io/scheduler": "dra-scheduler"},
        },
    }
    here, policy = Labelled(admin, space["metadata"]["name"]), documents(POLICY)
    await admin.create(space)
    for each in policy:
        reply = await admin.apply(each)
        assert reply.status in {200, 201}, reply.message

    async def acts() -> bool:
        return await here.named(here.asking()) != STOCK

    await until(acts, "the policy to act")
    yield here
    for each in (*policy, space):
        await admin.delete(each)


def test_it_names_the_scheduler_that_the_extender_serves() -> None:
    (mutation,) = documents(POLICY)[0]["spec"]["mutations"]
    (ours,) = Settings().schedulers
    assert f'schedulerName: "{ours}"' in mutation["applyConfiguration"]["expression"]


async def test_a_pod_with_claims_in_a_labelled_namespace_names_our_scheduler(labelled: Labelled) -> None:
    unnamed = labelled.asking()
    del unnamed["spec"]["schedulerName"]
    for item in (labelled.asking(), unnamed):
        assert await labelled.named(item) == "dra-scheduler"


@pytest.mark.parametrize(("kind", "scheduler"), [("DaemonSet", STOCK), ("Job", "dra-scheduler")])
async def test_whose_pod_it_is_counts_for_daemonsets_alone(labelled: Labelled, kind: str, scheduler: str) -> None:
    item = labelled.asking()
    item["metadata"]["ownerReferences"] = owned_by(kind)
    assert await labelled.named(item) == scheduler


async def test_other_pods_keep_their_scheduler(labelled: Labelled) -> None:
    plain = pod("plain", scheduler=STOCK, namespace=labelled.name)
    elsewhere = pod("elsewhere", templates=("gpu",), scheduler=STOCK)
    others = labelled.asking("another")
    assert [await labelled.named(each) for each in (plain, elsewhere, others)] == [STOCK, STOCK, "another"]
