"""Leases at an API server: a write replaces what was read, or nothing."""

import json
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import AsyncMock

import pytest

from extender.kube.answer import Answer, Unanswered
from extender.kube.leases import Failure, Lease, Leases, is_conflict, path_of
from extender.kube.outcome import Refused
from extender.model.names import ObjectKey
from extender.scheduling.steps import Refusal
from extender.state.tenure import Record
from tests.servers import Cluster

KEY = ObjectKey("dra-extender", "dra-extender")


@pytest.fixture
async def cluster(api_server: Cluster) -> AsyncIterator[Cluster]:
    """Give a cluster without our Lease."""
    await api_server.admin.call("DELETE", path_of(KEY))
    yield api_server
    await api_server.admin.call("DELETE", path_of(KEY))


def leases(cluster: Cluster, wall: float = 1e9) -> Leases:
    return Leases(cluster.api, 5.0, lambda: wall)


def there(found: Lease | Failure) -> Lease:
    assert isinstance(found, Lease), found
    return found


def record_in(found: Lease | Failure) -> Record:
    record = there(found).record
    assert record is not None
    return record


async def spec(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = (await cluster.do("GET", path_of(KEY)))["spec"]
    return found


async def test_a_lease_that_is_not_there_is_created_by_whoever_is_first(cluster: Cluster) -> None:
    absent = there(await leases(cluster).read(KEY))
    assert absent == Lease()
    created = record_in(await leases(cluster).hold(KEY, absent, "a_1", 14.2))
    assert (created.holder, created.lease_s) == ("a_1", 15)
    second = await leases(cluster).hold(KEY, absent, "b_2", 15)
    assert isinstance(second, Refused)
    assert (second.kind, is_conflict(second)) == (Refusal.EXISTS, True)


async def test_a_renewal_moves_the_version_and_nothing_but_its_time(cluster: Cluster) -> None:
    first = there(await leases(cluster).hold(KEY, Lease(), "a_1", 15))
    before = await spec(cluster)
    second = record_in(await leases(cluster, 1e9 + 2).hold(KEY, first, "a_1", 15))
    assert second.version != record_in(first).version
    assert {key for key, value in (await spec(cluster)).items() if before[key] != value} == {"renewTime"}


async def test_a_write_is_known_again_by_the_time_in_it_of_which_no_two_have_the_same(cluster: Cluster) -> None:
    clock = iter((1e9, 1e9, 1e9 - 3600, 1e9 + 2))
    ours, known, times = Leases(cluster.api, 5.0, lambda: next(clock)), Lease(), list[str]()
    for _ in range(4):
        known = there(await ours.hold(KEY, known, "a_1", 15))
        times.append(ours.written)
        assert record_in(known).written == record_in(await ours.read(KEY)).written == times[-1]
    assert times == [f"2001-09-09T01:46:{seconds}Z" for seconds in ("40.000000", "40.000001", "40.000002", "42.000000")]


async def test_who_has_read_an_older_version_writes_nothing(cluster: Cluster) -> None:
    first = there(await leases(cluster).hold(KEY, Lease(), "a_1", 15))
    await leases(cluster, 1e9 + 2).hold(KEY, first, "a_1", 15)
    late = await leases(cluster, 1e9 + 3).hold(KEY, first, "b_2", 15)
    assert not isinstance(late, Lease)
    assert is_conflict(late)
    assert (await spec(cluster))["holderIdentity"] == "a_1"


async def test_a_lease_that_was_deleted_is_not_renewed(cluster: Cluster) -> None:
    first = there(await leases(cluster).hold(KEY, Lease(), "a_1", 15))
    await cluster.admin.call("DELETE", path_of(KEY))
    late = await leases(cluster, 1e9 + 2).hold(KEY, first, "a_1", 15)
    assert not isinstance(late, Lease)
    assert is_conflict(late)


async def test_without_its_namespace_a_lease_is_not_to_be_had_and_that_is_no_conflict() -> None:
    api = AsyncMock()
    status = {"kind": "Status", "reason": "NotFound", "code": 404, "message": "namespaces not found"}
    api.call.return_value = Answer(404, {}, json.dumps(status).encode())
    found = await Leases(api, 5.0, lambda: 1e9).hold(KEY, Lease(), "a_1", 15)
    assert isinstance(found, Refused)
    assert (found.kind, found.message, is_conflict(found)) == (Refusal.REJECTED, "namespaces not found", False)


async def test_a_write_is_given_up_by_the_api_server_as_soon_as_nobody_waits_for_its_answer_any_more() -> None:
    api = AsyncMock()
    api.call.return_value = Unanswered(was_sent=True, why="no answer")
    ours = Leases(api, 2.5, lambda: 1e9)
    await ours.read(KEY)
    await ours.hold(KEY, Lease(), "a_1", 15)
    read, write = (call.kwargs for call in api.call.call_args_list)
    assert (read["timeout_s"], write["timeout_s"], write["query"]) == (2.5, 2.5, (("timeout", "2500ms"),))


async def test_a_lease_that_is_given_up_has_no_holder_and_counts_who_takes_it(cluster: Cluster) -> None:
    first = there(await leases(cluster).hold(KEY, Lease(), "a_1", 15))
    released = there(await leases(cluster, 1e9 + 2).hold(KEY, first, "", 15))
    assert record_in(released).holder == ""
    assert "holderIdentity" not in await spec(cluster)
    await leases(cluster, 1e9 + 3).hold(KEY, released, "b_2", 15)
    assert ((await spec(cluster))["holderIdentity"], (await spec(cluster))["leaseTransitions"]) == ("b_2", 2)


async def test_what_others_have_put_on_the_lease_stays(cluster: Cluster) -> None:
    raw = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": KEY.name, "labels": {"example.com/team": "x"}},
        "spec": {},
    }
    await cluster.create(path_of(KEY, is_whole=False), raw)
    known = there(await leases(cluster).read(KEY))
    assert record_in(known).holder == ""
    await leases(cluster).hold(KEY, known, "a_1", 15)
    assert (await cluster.do("GET", path_of(KEY)))["metadata"]["labels"] == {"example.com/team": "x"}
