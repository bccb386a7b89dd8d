"""A recorded question, answered as the service of a configuration file answers it."""

import json
from pathlib import Path

import pytest

from extender.allocation.features import Features
from extender.allocation.solve import BEST
from extender.cli import configured, main
from extender.cli.answer import answers
from extender.cli.replay import Recording, case_of_claim, pod_for, recording
from extender.config.settings import Settings
from extender.model.claim import ResourceClaim
from extender.model.names import DeviceKey, DeviceName, PoolName
from extender.scheduling import survey
from extender.scheduling.choosing import Chooser
from extender.topology.document import Document, document_of
from tests.allocation.clusters import question
from tests.cli.test_allocate import EXAMPLES, claim, device_slice, owner_rule, pod_of, recorded, tainted_by_its_driver
from tests.kube_objects import Json
from tests.scheduling.cast import held, node
from tests.scheduling.machines import NVIDIA
from tests.scheduling.mixed import CLASSES, asks, gpus, some
from tests.scheduling.test_given_up import HARD

REQUEST = {"name": "a", "resourceClaimName": "c1"}
PAIR = {"name": "a", "resourceClaimTemplateName": "t"}
OURS = "ownership: {drivers: [gpu.example.com], classes: [gpu]}"


def pod(*entries: Json, scheduler: str = "dra-scheduler", **requests: str) -> Json:
    """A pod of ours; without *entries* it asks for c1."""
    found = pod_of(*(entries or (REQUEST,)))
    found["spec"] |= {"schedulerName": scheduler, "containers": [{"name": "main", "resources": {"requests": requests}}]}
    return found


def template(made: Json, metadata: Json | None = None) -> Json:
    """A template for claims like *made*."""
    spec = {"metadata": metadata or {}, "spec": made["spec"]}
    return {"kind": "ResourceClaimTemplate", "metadata": {"namespace": "ns", "name": "t"}, "spec": spec}


def kept(*names: str) -> Json:
    """More devices, which are marked."""
    found = device_slice(*names) | {"kind": "ResourceSlice", "metadata": {"name": "kept"}}
    found["spec"]["pool"]["name"] = "kept"
    for device in found["spec"]["devices"]:
        device["attributes"] = {"kept": {"string": "yes"}, "id": {"string": device["name"]}}
    return found


def asked(folder: Path, settings: str, *objects: Json, claim: str = "", placement: str | None = None) -> list[str]:
    """Record *objects* and name the question about them, and the files with what is configured."""
    place = folder / "recorded"
    place.mkdir()
    (folder / "extender.yaml").write_text(settings)
    arguments = ["allocate", "--from", recorded(place, *objects), "--config", str(folder / "extender.yaml")]
    if placement is not None:
        (folder / "placement.yaml").write_text(placement)
        arguments += ["--placement", str(folder / "placement.yaml")]
    return [*arguments, *(("--claim", claim) if claim else ("--pod", "ns/pod"))]


def answered(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> Json:
    """Return what is said of the one node."""
    assert main([*arguments, "-o", "json"]) == 0
    found: Json = json.loads(capsys.readouterr().out)["nodes"]["n1"]
    return found


def devices(answer: Json) -> list[list[str]]:
    """Name the devices of each claim."""
    return [[item["device"] for item in given["devices"]["results"]] for given in answer["allocations"]]


def test_the_example_of_the_readme_is_answered_by_a_service_with_no_settings_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "extender.yaml").write_text("{}")
    words = ["allocate", "--from", str(EXAMPLES), "--pod", "ml/trainer", "-o", "table"]
    assert main([*words, "--config", str(tmp_path / "extender.yaml")]) == 0
    assert capsys.readouterr().out.endswith("3 nodes: 1 fit\n")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param(OURS, "", id="ours"),
        pytest.param(
            "ownership: {drivers: [gpu.example.com], classes: [nic]}",
            "NotOurs: claim c1 asks for class gpu, which is not ours to allocate",
            id="class",
        ),
        pytest.param(
            "ownership: {drivers: [nic.example.com]}",
            "NotOurs: claim c1, request r needs 1 free device, has 0: 1 not ours to allocate (ownership.drivers)",
            id="driver",
        ),
        pytest.param(
            "schedulers: [other]",
            "ForeignScheduler: scheduler 'dra-scheduler' is not configured here",
            id="scheduler",
        ),
    ],
)
def test_a_pod_is_refused_where_the_service_of_these_settings_refuses_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: str, reason: str
) -> None:
    answer = answered(capsys, asked(tmp_path, settings, claim(), pod()))
    assert (answer["fits"], answer["reason"]) == (not reason, reason)
    assert devices(answer) == ([] if reason else [["d0"]])


def test_a_claim_is_asked_for_by_a_pod_that_is_ours_and_as_if_it_held_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = {"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "d0"}
    full = claim() | {"status": {"allocation": {"devices": {"results": [held]}}}}
    assert devices(answered(capsys, asked(tmp_path, "schedulers: [other]", full, claim="ns/c1"))) == [["d0"]]


def test_a_claim_that_holds_what_is_not_ours_is_used_and_told_in_the_order_of_the_pod(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = {"request": "r", "driver": "nic.example.com", "pool": "n1", "device": "theirs"}
    used = claim("used", deviceClassName="nic") | {"status": {"allocation": {"devices": {"results": [held]}}}}
    arguments = asked(tmp_path, OURS, used, template(claim()), pod(PAIR, {"name": "b", "resourceClaimName": "used"}))
    assert devices(answered(capsys, arguments)) == [["d0"], ["theirs"]]


def test_a_claim_that_is_allocated_elsewhere_keeps_its_pod_from_other_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]
    held = claim() | {"status": {"allocation": {"nodeSelector": {"nodeSelectorTerms": terms}}}}
    answer = answered(capsys, asked(tmp_path, "", held, pod()))
    assert answer["reason"] == "ClaimAllocatedElsewhere: claim c1 is allocated on node n2, which is not there"


@pytest.mark.parametrize(("ignored", "fits"), [("[]", False), ("[ex.com/fpga]", True), ("['ex.com/*']", True)])
def test_a_node_has_to_have_what_no_class_stands_behind_unless_the_settings_ignore_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ignored: str, *, fits: bool
) -> None:
    settings = f"allocation: {{ignoredResources: {ignored}}}"
    answer = answered(capsys, asked(tmp_path, settings, claim(), pod(**{"ex.com/fpga": "1"})))
    assert answer["fits"] is fits
    missing = "BindFailed: node n1 does not have ex.com/fpga, and no device class is known to stand behind it"
    assert answer["reason"] == ("" if fits else missing)


def test_extended_resources_are_told_of_by_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    behind = {"kind": "DeviceClass", "metadata": {"name": "x"}, "spec": {"extendedResourceName": "ex.com/fpga"}}
    answer = answered(capsys, asked(tmp_path, "", behind, claim(), kept("d1"), pod(**{"ex.com/fpga": "9"})))
    assert answer["reason"].startswith("NoMatch: ex.com/fpga of container main needs 9 free devices")


def test_the_claim_that_would_be_made_for_extended_resources_comes_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    behind = {"kind": "DeviceClass", "metadata": {"name": "x"}, "spec": {"extendedResourceName": "ex.com/fpga"}}
    asking = pod(**{"ex.com/fpga": "1"})
    answer = answered(capsys, asked(tmp_path, "", behind, claim(), kept("d1"), asking))
    given = [item["devices"]["results"][0]["request"] for item in answer["allocations"]]
    assert given == ["r", "container-0-request-0"]


@pytest.mark.parametrize(
    ("settings", "fits"),
    [
        pytest.param("", False, id="another"),
        pytest.param("ownership: {ownerTaint: ours}", True, id="ours"),
        pytest.param("ownership: {ownerTaint: ours}\nallocation: {order: first}", True, id="in-the-schedulers-order"),
    ],
)
def test_the_owner_taint_is_that_of_the_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: str, *, fits: bool
) -> None:
    arguments = asked(tmp_path, settings, claim(count=2), owner_rule("ours"), tainted_by_its_driver("ours"), pod())
    assert answered(capsys, arguments)["fits"] is fits


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        pytest.param("{}", "", id="nothing"),
        pytest.param(
            "policies: {forbid: [{attribute: gpu.example.com/kept, values: ['yes']}]}",
            "PlacementPolicy: claim pod-a, request r: no set of 2 devices there is ever as the policy protect wants it"
            ", without what is forbidden: gpu.example.com/kept yes",
            id="forbidden",
        ),
        pytest.param(
            "policies: {allowed: [pack]}",
            "PolicyNotAllowed: annotation dra-extender.x-k8s.io/policy of claim ns/pod-a names 'linked'; "
            "allowed are pack",
            id="not-allowed",
        ),
    ],
)
def test_the_placement_document_decides_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], document: str, reason: str
) -> None:
    named = {"annotations": {"dra-extender.x-k8s.io/policy": "linked"}} if "annotation" in reason else {}
    arguments = asked(tmp_path, "", kept("d1"), template(claim(count=2), named), pod(PAIR), placement=document)
    answer = answered(capsys, arguments)
    assert answer["reason"] == reason
    assert answer["fits"] is not bool(reason)


def test_a_strict_policy_has_the_last_word_where_only_the_search_tells_that_nothing_will_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    linked = kept("d1", "d2", "d3")
    for device, root, zone in zip(linked["spec"]["devices"], "AAB", (0, 1, 0), strict=True):
        device["attributes"] = {"root": {"string": root}, "resource.kubernetes.io/numaNode": {"int": zone}}
    close = claim(count=2)
    close["spec"]["devices"]["constraints"] = [{"matchAttribute": "gpu.example.com/root"}]
    careful = "policies: {default: careful, named: {careful: {place: protect, numa: strict}}}"
    answer = answered(capsys, asked(tmp_path, "", linked, close, pod(), placement=careful))
    assert answer["reason"] == "PlacementPolicy: claim c1: no set of free devices is as the policy careful wants it"


def test_the_placement_document_of_the_settings_is_read_where_no_other_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "placement.yaml").write_text("policies: {default: nonsense}")
    settings = f"placement: {{file: {tmp_path / 'placement.yaml'}}}"
    assert main(asked(tmp_path, settings, claim(), pod())) == 2
    assert "placement.yaml: policies.default" in capsys.readouterr().err


@pytest.mark.parametrize(("settings", "fits"), [("", True), ("{DRAConsumableCapacity: false}", False)])
def test_features_are_those_of_the_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: str, *, fits: bool
) -> None:
    features = f"allocation: {{features: {settings}}}" if settings else ""
    answer = answered(capsys, asked(tmp_path, features, claim(capacity={"requests": {}}), pod()))
    assert answer["fits"] is fits
    assert answer["reason"].startswith("" if fits else "InvalidRequest: ")


@pytest.mark.parametrize(("strict", "error"), [("false", "nodeError"), ("true", "fatalError")])
def test_an_error_rejects_the_node_or_fails_the_pod_as_the_settings_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], strict: str, error: str
) -> None:
    bad = claim(selectors=[{"cel": {"expression": "device.attributes['x'].y == 1"}}])
    answer = answered(capsys, asked(tmp_path, f"allocation: {{strict: {strict}}}", bad, pod()))
    assert "gpu.example.com/n1/d0" in answer[error]
    assert [name for name in ("nodeError", "fatalError") if answer[name]] == [error]


def test_a_search_that_is_given_up_says_neither_yes_nor_no(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    apart = claim(count=2)
    apart["spec"]["devices"]["constraints"] = [{"distinctAttribute": "gpu.example.com/id"}]
    answer = answered(capsys, asked(tmp_path, "allocation: {steps: 1}", apart, kept("d1", "d2"), pod()))
    assert answer["fits"] is None
    assert "given up" in answer["nodeError"]


def test_a_search_that_is_given_up_for_a_strict_policy_says_neither_yes_nor_no() -> None:
    document = document_of({"deviceTopology": [{"match": {"driver": NVIDIA}, "products": [HARD]}]})
    assert isinstance(document, Document)
    taken = (DeviceKey(NVIDIA, PoolName("n"), DeviceName(f"d{place}")) for place in (0, 9))
    pairs = asks("c", *(some(2, name=f"pair-{index}") for index in range(7)), policy="linked")
    found = Recording(nouns=[*CLASSES, node("n"), gpus("n", 16), pairs, held(asks("held", some(2)), *taken)])
    asker = pod_for(pairs.key, "dra-scheduler")
    case = case_of_claim(found, pairs.key, Features())
    (told,) = configured.answers(Settings(), document, found, case, asker)
    assert (told.fits, told.reason) == (None, "")
    assert "given up" in told.node_error


def test_what_fails_before_devices_are_looked_for_is_no_matter_of_a_strict_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Chooser, "place", lambda *_: "node n1 is not known")
    careful = "policies: {default: careful, named: {careful: {place: protect, numa: strict}}}"
    answer = answered(capsys, asked(tmp_path, "", claim(), pod(), placement=careful))
    assert (answer["fits"], answer["reason"]) == (False, "BindFailed: node n1 is not known")


def test_a_claim_that_takes_long_is_answered_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "AT_ONCE", 0)
    assert devices(answered(capsys, asked(tmp_path, "", claim(), pod()))) == [["d0"]]


def test_what_somebody_else_has_allocated_is_taken_and_closes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = {"request": "r", "driver": "gpu.example.com", "pool": "tainted", "device": "d1"}
    foreign = claim("foreign") | {"status": {"allocation": {"devices": {"results": [held]}}}}
    foreign["metadata"]["managedFields"] = [
        {"manager": "somebody", "operation": "Update", "fieldsV1": {"f:status": {"f:allocation": {}}}}
    ]
    arguments = asked(tmp_path, "", foreign, claim(), tainted_by_its_driver(), pod())
    assert devices(answered(capsys, arguments)) == [["d0"]]


KINDS = {
    "classes": "DeviceClass",
    "slices": "ResourceSlice",
    "claims": "ResourceClaim",
    "allocated": "ResourceClaim",
    "taintRules": "DeviceTaintRule",
}


@pytest.mark.parametrize("seed", range(12))
def test_a_service_with_nothing_configured_says_yes_where_the_allocator_does_and_no_for_the_same_reason(
    tmp_path: Path, seed: int
) -> None:
    drawn = question(str(seed))
    items = [{"apiVersion": "v1", "kind": "Node"} | item for item in drawn["nodes"]]
    for name in KINDS.keys() & drawn.keys():
        items += [{"apiVersion": "resource.k8s.io/v1", "kind": KINDS[name]} | item for item in drawn[name]]
    (tmp_path / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    found = recording(tmp_path)
    for key in (item.key for item in found.all(ResourceClaim)):
        case = case_of_claim(found, key, Features())
        alone = {item.node: item for item in answers(case, BEST)}
        told = configured.answers(Settings(), Document(), found, case, pod_for(key, "dra-scheduler"))
        for item in told:
            assert item.fits == alone[item.node].fits
            assert str(item.reason).endswith(str(alone[item.node].reason))


@pytest.mark.parametrize(
    ("settings", "complaints"),
    [
        pytest.param("ownership: {driver: [a]}", ["ownership.driver: is no setting"], id="no-setting"),
        pytest.param(
            "answer: {shortlist: 0}\nwatch: {maxage: 1}",
            ["answer.shortlist: must be at least 1", "watch.maxage: is no setting; there are watch.maxAgeSeconds"],
            id="all-at-once",
        ),
        pytest.param("[", ["extender.yaml: "], id="no-yaml"),
        pytest.param(
            "ownership: {mode: advisor}",
            ["ownership.mode: with advisor it is kube-scheduler that allocates: ask with --order first instead"],
            id="advisor",
        ),
    ],
)
def test_settings_that_cannot_be_used_are_named_as_serve_names_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: str, complaints: list[str]
) -> None:
    assert main(asked(tmp_path, settings, claim(), pod())) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == len(complaints)
    assert all(complaint in err for complaint in complaints)


def test_a_placement_document_that_nobody_would_be_placed_by_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(asked(tmp_path, "allocation: {order: first}", claim(), pod(), placement="{}")) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("dra-extender: --placement needs allocation.order best")


def test_the_environment_is_that_of_whoever_asks_and_does_not_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRA_EXTENDER_OWNERSHIP_CLASSES", "nic")
    assert answered(capsys, asked(tmp_path, "", claim(), pod()))["fits"] is True


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--order", "first"), "--config says what --order would say"),
        (("--strict",), "--config says what --strict would say"),
        (("--release", "1.37"), "--config says what --release would say"),
        (("--owner-taint", ""), "--config says what --owner-taint would say"),
    ],
)
def test_what_the_file_says_is_not_said_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: tuple[str, ...], message: str
) -> None:
    assert main([*asked(tmp_path, "", claim(), pod()), *given]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--config", "f"), "--config goes with --from DIR"),
        (("--placement", "f"), "--placement goes with --config"),
        (("--from", str(EXAMPLES), "--pod", "ml/trainer", "--placement", "f"), "--placement goes with --config"),
    ],
)
def test_what_is_configured_is_for_a_recorded_cluster(
    capsys: pytest.CaptureFixture[str], given: tuple[str, ...], message: str
) -> None:
    assert main(["allocate", *given]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("subject", [("--pod", "ns/pod"), ("--claim", "ns/c1")])
def test_what_was_not_recorded_is_told_as_without_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], subject: tuple[str, str]
) -> None:
    arguments = [*asked(tmp_path, "")[:-2], *subject]
    assert main(arguments) == 2
    assert f"there is no {subject[0][2:]} {subject[1]}" in capsys.readouterr().err
