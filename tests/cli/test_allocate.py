"""The door of the allocator, as people and programs use it."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.cli import main
from extender.config.settings import Ownership
from tests.allocation.cel.expressions import seeded
from tests.cli.fuzz import ask, damaged
from tests.tree import ROOT

EXAMPLES = ROOT / "examples"
CLASS = {"metadata": {"name": "gpu"}, "spec": {}}
NODE = {"metadata": {"name": "n1"}}


def device_slice(*names: str, node: str = "n1") -> dict[str, Any]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": name} for name in names]
    return {
        "metadata": {"name": f"{node}-gpu"},
        "spec": {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices},
    }


def claim(name: str = "c1", count: int = 1, **exactly: object) -> dict[str, Any]:
    request = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count} | exactly
    return {
        "metadata": {"namespace": "ns", "name": name, "uid": name},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": request}]}},
    }


def case(**changes: object) -> dict[str, Any]:
    base = {"name": "case", "node": NODE, "classes": [CLASS], "slices": [device_slice("d0", "d1")], "claims": [claim()]}
    return base | changes


def told(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes], *lines: object, order: str = "best"
) -> tuple[int, list[dict[str, Any]]]:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    status = main(["allocate", "--order", order])
    return status, [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]


def test_one_line_out_for_one_line_in(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    nodes = [{"metadata": {"name": name}} for name in ("n1", "n2")]
    status, (answer,) = told(monkeypatch, capsysbinary, case(nodes=nodes, node=None))
    assert status == 0
    assert answer["name"] == "case"
    assert list(answer["nodes"]) == ["n1", "n2"]
    first, second = answer["nodes"]["n1"], answer["nodes"]["n2"]
    assert first["fits"] is True
    assert first["allocations"][0]["devices"]["results"] == [
        {"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "d0"}
    ]
    assert first["micros"] > 0
    assert second["fits"] is False
    assert second["reason"] == "no devices are published for the node"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        pytest.param("{", "not JSON", id="no-json"),
        pytest.param("[]", "object: is no JSON object", id="no-object"),
        pytest.param({"name": "x"}, "nodes: is required, or node", id="no-node"),
        pytest.param({"node": NODE, "Alocated": []}, "Alocated: is no key; is allocated meant?", id="misspelt"),
        pytest.param(case(slices={}), "slices: is no list", id="no-list"),
        pytest.param(case(slices=[{}]), "slices[0].metadata.name: is required", id="no-name"),
        pytest.param(case(nodes=[NODE]), "nodes: n1 is there more than once", id="node-twice"),
        pytest.param(case(features=["DRAMagic"]), "features: 'DRAMagic' is none of", id="no-gate"),
        pytest.param(case(usedShares=[{"id": "a/b"}]), "usedShares[0].id: is not of the form", id="no-share"),
        pytest.param(case(usedDevices=[{"driver": "d"}]), "usedDevices[0].pool: is required", id="no-pool"),
    ],
)
def test_a_bad_line_is_answered_with_its_field_and_the_next_is_still_read(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes], line: object, error: str
) -> None:
    status, (bad, good) = told(monkeypatch, capsysbinary, line, case())
    assert status == 1
    assert bad["error"].startswith(error)
    assert good["nodes"]["n1"]["fits"] is True


@pytest.mark.parametrize(
    ("changes", "device"),
    [
        pytest.param({"usedDevices": [{"driver": "gpu.example.com", "pool": "n1", "device": "d0"}]}, "d1", id="device"),
        pytest.param(
            {
                "allocated": [
                    claim("other")
                    | {
                        "status": {
                            "allocation": {
                                "devices": {
                                    "results": [
                                        {"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "d0"}
                                    ]
                                }
                            }
                        }
                    }
                ]
            },
            "d1",
            id="claim",
        ),
        pytest.param(
            {
                "taintRules": [
                    {
                        "metadata": {"name": "sick"},
                        "spec": {"deviceSelector": {"device": "d0"}, "taint": {"key": "sick", "effect": "NoExecute"}},
                    }
                ]
            },
            "d1",
            id="taint",
        ),
    ],
)
def test_what_cannot_be_had_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes], changes: dict[str, Any], device: str
) -> None:
    _, (answer,) = told(monkeypatch, capsysbinary, case(**changes), order="first")
    assert answer["nodes"]["n1"]["allocations"][0]["devices"]["results"][0]["device"] == device


def test_an_error_on_a_device_fails_the_pod_in_upstreams_order_and_the_node_in_ours(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    selectors = [{"cel": {"expression": "device.attributes['x'].y == 1"}}]
    question = case(claims=[claim(selectors=selectors)])
    _, (first,) = told(monkeypatch, capsysbinary, question, order="first")
    _, (best,) = told(monkeypatch, capsysbinary, question)
    assert "gpu.example.com/n1/d0" in first["nodes"]["n1"]["fatalError"]
    assert "device.attributes['x'].y == 1" in best["nodes"]["n1"]["nodeError"]
    assert best["nodes"]["n1"]["fatalError"] == ""


def test_an_error_that_quotes_bytes_that_are_no_text_is_answered(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    selectors = [{"cel": {"expression": "{'a': 1}[url('http://a/?a=%ff').getQuery()['a'][0]] == 1"}}]
    for order, field in (("first", "fatalError"), ("best", "nodeError")):
        _, (answer,) = told(monkeypatch, capsysbinary, case(claims=[claim(selectors=selectors)]), order=order)
        assert answer["nodes"]["n1"][field].partition(" in ")[0].endswith("no such key: \N{REPLACEMENT CHARACTER}")


def test_errors_are_strict_on_request_in_our_order_too(
    capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    selectors = [{"cel": {"expression": "device.attributes['x'].y == 1"}}]
    (tmp_path / "lines").write_text(json.dumps(case(claims=[claim(selectors=selectors)])))
    main(["allocate", "--strict", "--file", str(tmp_path / "lines")])
    node = json.loads(capsysbinary.readouterr().out)["nodes"]["n1"]
    assert node["fatalError"]
    assert not node["nodeError"]


def test_an_expression_that_does_not_compile_fails_the_pod_in_both_orders(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    question = case(claims=[claim(selectors=[{"cel": {"expression": "nonsense"}}])])
    for order in ("first", "best"):
        _, (answer,) = told(monkeypatch, capsysbinary, question, order=order)
        assert "nonsense" in answer["nodes"]["n1"]["fatalError"]


def replayed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["allocate", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_a_pod_of_a_recorded_cluster_is_shown_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = replayed(capsys, "--from", str(EXAMPLES), "--pod", "ml/trainer", "-o", "table")
    assert status == 0
    assert [line.split()[:2] for line in out.splitlines()[1:4]] == [
        ["node-1", "yes"],
        ["node-2", "no"],
        ["node-3", "no"],
    ]
    assert "needs 2 free devices for request gpus and 1 for request nic with one value of" in out
    assert "resource.kubernetes.io/pcieRoot, best has 1 and 1" in out


def test_a_claim_of_a_recorded_cluster_is_asked_for_as_if_it_held_nothing(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert main(["allocate", "--from", str(EXAMPLES), "--claim", "ml/notebook", "--order", "first"]) == 0
    answer = json.loads(capsysbinary.readouterr().out)
    assert answer["name"] == "ml/notebook"
    assert answer["nodes"]["node-1"]["allocations"][0]["devices"]["results"][0]["device"] == "gpu-0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--pod", "ml/trainer"), "--from DIR goes with --claim or --pod"),
        (("--from", str(EXAMPLES)), "--from DIR goes with --claim or --pod"),
        (("-o", "table"), "--output goes with --from DIR"),
        (("--owner-taint", "k"), "--owner-taint goes with --from DIR"),
        (("--from", str(EXAMPLES), "--pod", "ml/trainer", "--file", "f"), "--file goes without --from"),
        (("--from", str(EXAMPLES / "none"), "--pod", "ml/trainer"), f"{EXAMPLES / 'none'}: is no folder"),
        (("--from", str(EXAMPLES), "--pod", "ml/nobody"), "there is no pod ml/nobody"),
        (("--from", str(EXAMPLES), "--claim", "ml/nothing"), "there is no claim ml/nothing"),
    ],
)
def test_a_question_that_cannot_be_asked_is_wrong_usage(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    status, _, err = replayed(capsys, *arguments)
    assert status == 2
    assert message in err


def test_what_cannot_be_read_in_a_recording_is_named_and_the_rest_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = json.loads((EXAMPLES / "claims.json").read_text())
    listed["items"].append({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {}})
    (tmp_path / "claims.json").write_text(json.dumps(listed))
    for name in ("nodes.json", "slices.json"):
        (tmp_path / name).write_text((EXAMPLES / name).read_text())
    status, out, err = replayed(capsys, "--from", str(tmp_path), "--pod", "ml/trainer", "-o", "table")
    assert status == 1
    assert "claims.json: DeviceClass (unnamed): metadata.name: is required" in err
    assert "node-1  yes" in out


def test_a_claim_that_is_allocated_ties_its_pod_to_where_it_can_be_used(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]
    held = claim("held") | {"status": {"allocation": {"nodeSelector": {"nodeSelectorTerms": terms}}}}
    nodes = [{"metadata": {"name": name}} for name in ("n1", "n2")]
    slices = [device_slice("d0"), device_slice("d0", node="n2")]
    _, (answer,) = told(monkeypatch, capsysbinary, case(nodes=nodes, node=None, slices=slices, claims=[held, claim()]))
    assert [answer["nodes"][name]["fits"] for name in ("n1", "n2")] == [False, True]
    assert answer["nodes"]["n1"]["reason"] == "claim held is allocated for other nodes"


def test_a_pod_whose_claims_are_all_allocated_needs_nothing_that_is_published(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    spoiled = device_slice("s")
    terms = [{"matchExpressions": [{"key": "zone", "operator": "Like", "values": ["a"]}]}]
    spoiled["spec"] = {**spoiled["spec"], "nodeName": None, "nodeSelector": {"nodeSelectorTerms": terms}}
    held = claim("held") | {"status": {"allocation": {}}}
    _, (answer,) = told(monkeypatch, capsysbinary, case(slices=[spoiled], claims=[held]))
    (on_node,) = answer["nodes"].values()
    assert on_node["fits"] is True


def test_a_claim_whose_devices_skip_node_operations_ties_its_pod_to_nodes_that_declare_to_support_it(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    result = {"request": "r", "driver": "d", "pool": "p", "device": "shared", "skipNodeOperations": ["*"]}
    held = claim("held") | {"status": {"allocation": {"devices": {"results": [result]}}}}
    able = {"metadata": {"name": "n2"}, "status": {"declaredFeatures": ["DRAOptionalNodeOperations"]}}
    nodes = [{"metadata": {"name": "n1"}}, able]
    _, (answer,) = told(monkeypatch, capsysbinary, case(nodes=nodes, node=None, slices=[], claims=[held]))
    assert [answer["nodes"][name]["fits"] for name in ("n1", "n2")] == [False, True]


def test_a_claim_that_holds_something_is_counted_once_wherever_it_is_listed(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    shared = device_slice("s")
    shared["spec"]["devices"][0] |= {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "10Gi"}}}
    result = {"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "s", "shareID": "a"}
    results = [result | {"consumedCapacity": {"memory": "4Gi"}}]
    held = claim("held") | {"status": {"allocation": {"devices": {"results": results}}}}
    asked = [held, claim(capacity={"requests": {"memory": "5Gi"}})]
    _, (answer,) = told(monkeypatch, capsysbinary, case(slices=[shared], claims=asked, allocated=[held]))
    assert answer["nodes"]["n1"]["fits"] is True


def pod_of(*entries: dict[str, Any], statuses: tuple[dict[str, str], ...] = ()) -> dict[str, Any]:
    metadata = {"namespace": "ns", "name": "pod", "uid": "pod"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"resourceClaims": list(entries)},
        "status": {"resourceClaimStatuses": list(statuses)},
    }


def recorded(folder: Path, *objects: dict[str, Any]) -> str:
    """Record a node with one device, beside *objects*."""
    resource = {"apiVersion": "resource.k8s.io/v1"}
    items = [
        NODE | {"apiVersion": "v1", "kind": "Node"},
        CLASS | resource | {"kind": "DeviceClass"},
        device_slice("d0") | resource | {"kind": "ResourceSlice"},
        *(resource | {"kind": "ResourceClaim"} | item for item in objects),
    ]
    (folder / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(folder)


def test_a_claim_that_two_entries_of_a_pod_name_is_allocated_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = [{"name": name, "resourceClaimName": "c1"} for name in ("a", "b")]
    folder = recorded(tmp_path, claim(), pod_of(*entries))
    status, out, _ = replayed(capsys, "--from", folder, "--pod", "ns/pod", "-o", "table")
    assert status == 0
    assert out.splitlines()[1].split() == ["n1", "yes", "r=gpu.example.com/n1/d0"]


def test_claims_of_a_pod_are_answered_in_its_order_made_or_not(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    held = {"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "other"}
    named = claim("named") | {"status": {"allocation": {"devices": {"results": [held]}}}}
    template = {"metadata": {"namespace": "ns", "name": "t"}, "spec": {"spec": claim()["spec"]}}
    entries = [{"name": "made", "resourceClaimTemplateName": "t"}, {"name": "named", "resourceClaimName": "named"}]
    folder = recorded(tmp_path, named, template | {"kind": "ResourceClaimTemplate"}, pod_of(*entries))
    assert main(["allocate", "--from", folder, "--pod", "ns/pod", "-o", "json"]) == 0
    allocations = json.loads(capsysbinary.readouterr().out)["nodes"]["n1"]["allocations"]
    assert [item["devices"]["results"][0]["device"] for item in allocations] == ["d0", "other"]


def test_an_object_that_was_recorded_twice_is_there_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = recorded(tmp_path, claim())
    (tmp_path / "again.json").write_text((tmp_path / "all.json").read_text())
    status, out, err = replayed(capsys, "--from", folder, "--claim", "ns/c1", "-o", "table")
    assert (status, err) == (0, "")
    assert "1 nodes: 1 fit" in out


def test_what_cannot_be_read_is_named_where_that_is_why_nothing_can_be_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cut.json").write_text('{"kind": "List", "items": [')
    status, _, err = replayed(capsys, "--from", str(tmp_path), "--claim", "ns/c1")
    assert status == 2
    assert "cut.json" in err.splitlines()[0]
    assert "there is no claim ns/c1" in err.splitlines()[1]


def odd() -> dict[str, Any]:
    """Return a claim with an amount that Kubernetes reads and we do not. It has the only device."""
    held = {"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "d0"}
    asked = claim("odd", capacity={"requests": {"memory": "1e1001"}})
    return asked | {"status": {"allocation": {"devices": {"results": [held]}}}}


# As deep as Kubernetes keeps it, and deeper than Python writes it.
DEEP = '{"a":' * 1100 + "1" + "}" * 1100


def deep() -> dict[str, Any]:
    """Return a claim that has the only device, with parameters to be replaced by deep ones."""
    held = {"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "d0"}
    opaque = {"driver": "gpu.example.com", "parameters": "DEEP"}
    devices = {"results": [held], "config": [{"source": "FromClaim", "requests": [], "opaque": opaque}]}
    return claim("deep") | {"status": {"allocation": {"devices": devices}}}


def test_a_recorded_claim_with_deep_parameters_hides_no_other_and_has_its_devices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recorded(tmp_path, claim(), deep())
    (tmp_path / "all.json").write_text((tmp_path / "all.json").read_text().replace('"DEEP"', DEEP))
    _, out, err = replayed(capsys, "--from", folder, "--claim", "ns/c1", "-o", "table")
    assert err == ""
    assert "1 nodes: 0 fit" in out


def test_a_question_with_deep_parameters_is_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lines").write_text(json.dumps(case(allocated=[deep()])).replace('"DEEP"', DEEP))
    assert main(["allocate", "--file", str(tmp_path / "lines")]) == 0
    node = json.loads(capsys.readouterr().out)["nodes"]["n1"]
    assert node["allocations"][0]["devices"]["results"][0]["device"] == "d1"


FIELD = "spec.devices.requests[0].exactly.capacity.requests[memory]: '1e1001' is not a quantity"


def test_a_recorded_claim_that_cannot_be_read_is_named_and_has_its_devices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recorded(tmp_path, claim(), odd())
    status, out, err = replayed(capsys, "--from", folder, "--claim", "ns/c1", "-o", "table")
    assert status == 1
    assert f"all.json: ResourceClaim ns/odd: {FIELD}" in err
    assert "1 nodes: 0 fit" in out


def test_for_a_recorded_claim_that_cannot_be_read_nothing_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recorded(tmp_path, odd(), pod_of({"name": "a", "resourceClaimName": "odd"}))
    status, out, _ = replayed(capsys, "--from", folder, "--claim", "ns/odd", "-o", "json")
    assert status == 1
    assert json.loads(out)["nodes"]["n1"]["fatalError"].startswith(f"claim odd: {FIELD}")
    status, _, err = replayed(capsys, "--from", folder, "--pod", "ns/pod", "-o", "json")
    assert status == 2
    assert f"pod ns/pod: claim odd cannot be read: {FIELD}" in err


def test_a_claim_of_a_question_is_read_as_a_whole(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    status, (answer,) = told(monkeypatch, capsysbinary, case(allocated=[odd()]))
    assert status == 1
    assert FIELD in str(answer)


def test_of_two_that_differ_the_last_counts_and_somebody_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recorded(tmp_path, claim())
    fresh = device_slice("later") | {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    (tmp_path / "zulu.json").write_text(json.dumps(fresh))
    status, out, err = replayed(capsys, "--from", folder, "--claim", "ns/c1", "-o", "table")
    assert status == 1
    assert "gpu.example.com/n1/later" in out
    assert "zulu.json" in err
    assert "differs" in err


DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("asked", "pod", "message"),
    [
        pytest.param(
            claim() | {"metadata": claim()["metadata"] | DELETED},
            pod_of({"name": "a", "resourceClaimName": "c1"}),
            "pod ns/pod: claim c1 is being deleted",
            id="being-deleted",
        ),
        pytest.param(
            claim(),
            pod_of(
                {"name": "a", "resourceClaimTemplateName": "t"}, statuses=({"name": "a", "resourceClaimName": "c1"},)
            ),
            "pod ns/pod: claim c1 was not made for this pod",
            id="of-another-pod",
        ),
        pytest.param(
            claim(),
            pod_of({"name": "a", "resourceClaimName": "c2"}),
            "pod ns/pod: there is no claim c2",
            id="no-claim",
        ),
        pytest.param(
            claim(),
            pod_of({"name": "a", "resourceClaimTemplateName": "t"}),
            "there is no template ns/t",
            id="no-template",
        ),
    ],
)
def test_a_pod_that_could_not_be_placed_whatever_is_free_is_told_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: dict[str, Any], pod: dict[str, Any], message: str
) -> None:
    status, _, err = replayed(capsys, "--from", recorded(tmp_path, asked, pod), "--pod", "ns/pod")
    assert status == 2
    assert message in err


@given(st.integers(0, 1 << 40))
def test_no_damaged_question_makes_the_door_fail(seed: int) -> None:
    ask(damaged(seeded(seed)))


def extended(name: str = "x", owner: str = "pod") -> tuple[dict[str, Any], dict[str, Any]]:
    """A pod with a claim for extended resources, and one of that name that *owner* controls."""
    made = claim("x")
    made["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": owner, "controller": True}
    ]
    pod = pod_of({"name": "a", "resourceClaimName": "c1"})
    pod["status"]["extendedResourceClaimStatus"] = {"resourceClaimName": name}
    return made, pod


def test_the_claim_for_extended_resources_is_one_of_the_pods(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, pod = extended()
    arguments = ("--from", recorded(tmp_path, claim(), made, pod), "--pod", "ns/pod", "-o", "table")
    status, out, _ = replayed(capsys, *arguments)
    assert status == 0
    assert "2 requests of the pod's claims need 2 free devices together, has 1" in out


@pytest.mark.parametrize(
    ("name", "owner", "message"),
    [("gone", "pod", "there is no claim gone"), ("x", "other", "claim x was not made for this pod")],
)
def test_a_claim_for_extended_resources_must_be_there_and_the_pods(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, owner: str, message: str
) -> None:
    folder = recorded(tmp_path, claim(), *extended(name, owner))
    status, _, err = replayed(capsys, "--from", folder, "--pod", "ns/pod")
    assert status == 2
    assert message in err


def test_a_recording_is_answered_with_the_features_of_its_release(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    folder = recorded(tmp_path, claim(capacity={"requests": {}}))
    for release, fits in (("1.34", False), ("v1.35", False), ("1.36", True), ("v1.37", True)):
        main(["allocate", "--from", folder, "--claim", "ns/c1", "--release", release])
        node = json.loads(capsysbinary.readouterr().out)["nodes"]["n1"]
        assert node["fits"] is fits
        assert bool(node["fatalError"]) is not fits


def test_what_is_no_key_of_a_taint_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["allocate", "--from", str(EXAMPLES), "--pod", "ml/trainer", "--owner-taint", "a b"])
    assert ended.value.code == 2
    assert "argument --owner-taint: 'a b' is not the key of a taint" in capsys.readouterr().err


OWNED = Ownership().owner_taint


def owner_rule(key: str = OWNED) -> dict[str, Any]:
    spec = {"deviceSelector": {"driver": "gpu.example.com"}, "taint": {"key": key, "effect": "NoSchedule"}}
    return {"kind": "DeviceTaintRule", "metadata": {"name": "dra-extender-owned-gpu.example.com"}, "spec": spec}


def tainted_by_its_driver(key: str = OWNED) -> dict[str, Any]:
    found = device_slice("d1") | {"kind": "ResourceSlice"}
    found["metadata"]["name"] = "tainted"
    found["spec"]["pool"]["name"] = "tainted"
    found["spec"]["devices"][0]["taints"] = [{"key": key, "effect": "NoSchedule"}]
    return found


TWO = claim(count=2)


@pytest.mark.parametrize(
    ("key", "arguments", "free"),
    [
        pytest.param(OWNED, (), 2, id="default"),
        pytest.param("ours", (), 0, id="another"),
        pytest.param("ours", ("--owner-taint", "ours"), 2, id="named"),
        pytest.param(OWNED, ("--owner-taint", ""), 0, id="none"),
        pytest.param(OWNED, ("--order", "first"), 0, id="kube-scheduler"),
        pytest.param(OWNED, ("--order", "first", "--owner-taint", OWNED), 2, id="its-order-as-the-owner"),
    ],
)
def test_the_owners_taint_bars_nobody_but_kube_scheduler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, arguments: tuple[str, ...], free: int
) -> None:
    folder = recorded(tmp_path, TWO, owner_rule(key), tainted_by_its_driver(key))
    status, out, _ = replayed(capsys, "--from", folder, "--claim", "ns/c1", "-o", "table", *arguments)
    assert status == 0
    assert out.splitlines()[1].split()[1] == ("yes" if free else "no"), out
    if not free:
        assert f"needs 2 free devices, has 0: 2 have taint {key}=:NoSchedule" in out


def asking(amount: int, *entries: dict[str, Any]) -> dict[str, Any]:
    """A pod that asks for extended resources, for which there is no claim."""
    pod = pod_of(*entries)
    requests = {"example.com/gpu": str(amount), "example.com/other": "1", "cpu": "1"}
    pod["spec"]["containers"] = [{"name": "main", "resources": {"requests": requests}}]
    return pod


def standing_behind(folder: Path, *objects: dict[str, Any]) -> str:
    """Record a class that stands behind an extended resource, and a second node, which has a device plugin for it."""
    spec = {"extendedResourceName": "example.com/gpu"}
    behind = {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec}
    plugged = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}}
    found = recorded(folder, plugged | {"status": {"allocatable": {"example.com/gpu": "8"}}}, *objects)
    raw = json.loads((folder / "all.json").read_text())
    raw["items"] = [item for item in raw["items"] if item["kind"] != "DeviceClass"]
    raw["items"].append(behind | {"apiVersion": "resource.k8s.io/v1"})
    (folder / "all.json").write_text(json.dumps(raw))
    return found


@pytest.mark.parametrize("order", ["best", "first"])
def test_extended_resources_without_a_claim_are_asked_for_where_no_device_plugin_has_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], order: str
) -> None:
    folder = standing_behind(tmp_path, asking(8))
    _, out, _ = replayed(capsys, "--from", folder, "--pod", "ns/pod", "-o", "table", "--order", order)
    first, second = out.splitlines()[1:3]
    assert first.split()[:2] == ["n1", "no"]
    assert first.split(maxsplit=2)[2].startswith("example.com/gpu of container main needs 8 free devices, has 1")
    assert second.split() == ["n2", "yes"]


def test_the_claim_to_be_made_for_extended_resources_comes_after_the_others(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    more = device_slice("d1") | {"kind": "ResourceSlice", "metadata": {"name": "more"}}
    more["spec"]["pool"]["name"] = "more"
    folder = standing_behind(tmp_path, more, claim(), asking(1, {"name": "a", "resourceClaimName": "c1"}))
    assert main(["allocate", "--from", folder, "--pod", "ns/pod", "-o", "json"]) == 0
    nodes = json.loads(capsysbinary.readouterr().out)["nodes"]
    given = [item["devices"]["results"][0]["request"] for item in nodes["n1"]["allocations"]]
    assert given == ["r", "container-0-request-1"]
    assert nodes["n2"]["fits"] is False
