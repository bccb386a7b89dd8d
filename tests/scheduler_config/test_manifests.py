"""The manifests hang together: nothing is left out, and copies differ where they are meant to."""

import json
import os
import re
import shutil
import subprocess
from itertools import product
from pathlib import Path
from textwrap import dedent

import pytest
import yaml

from extender.config.load import load
from extender.config.settings import Leading
from tests.controlplane.client import Object
from tests.controlplane.manifests import (
    BASE,
    CONFIG,
    EXTENDER,
    OVERLAYS,
    OWNERS,
    RIGHTS,
    SCHEDULER,
    documents,
    kinds,
    rendered,
)
from tests.controlplane.objects import claim, exactly, template
from tests.controlplane.programs import Missing, kustomize
from tests.scheduler_config.tolerations import KEY, TOLERATIONS
from tests.tree import ROOT, files

README = (CONFIG / "README.md").read_text()
SHOWN = [dedent(text) for _, text in re.findall(r"^( *)```yaml\n(.*?)^\1```", README, re.DOTALL | re.MULTILINE)]
LINES = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
FEW = CONFIG / "few-device-nodes"
ADVISOR = CONFIG / "advisor"
PAIR = CONFIG / "two-replicas"


@pytest.fixture(scope="session")
def overlays() -> dict[str, list[Object]]:
    """Render every overlay."""
    try:
        kustomize()
    except Missing as why:
        pytest.skip(str(why))
    return {name: rendered(CONFIG / name) for name in OVERLAYS}


def with_components(folder: Path, *components: Path, overlay: str = OVERLAYS[-1]) -> list[Object]:
    """Render an overlay, the newest where none is named, with *components*, from a kustomization in *folder*."""
    resource, *listed = (os.path.relpath(path, folder) for path in (CONFIG / overlay, *components))
    (folder / "kustomization.yaml").write_text(json.dumps({"resources": [resource], "components": listed}))
    return rendered(folder)


def template_of(objects: list[Object]) -> tuple[Object, dict[str, Object]]:
    """Return the pods of the Deployment, and their containers by name."""
    spec = named(objects)["Deployment", "dra-scheduler"]["spec"]["template"]["spec"]
    return spec, {each["name"]: each for each in spec["containers"]}


def patience_s(probe: Object) -> int:
    """Return for how long a probe may fail."""
    return int(probe.get("periodSeconds", 10)) * int(probe.get("failureThreshold", 3))


def named(objects: list[Object]) -> dict[tuple[str, str], Object]:
    return {(each["kind"], each["metadata"]["name"]): each for each in objects}


def the_one(blocks: list[str], word: str) -> str:
    """Return the block of the README that speaks of *word*."""
    (found,) = (each for each in blocks if word in each)
    return found


def profile(path: Path) -> Object:
    (found,) = documents(path)[0]["profiles"]
    return dict(found)


def test_there_is_an_overlay_for_each_version_that_the_tests_can_run() -> None:
    modules = {path.parent.name.rpartition(".")[0] for path in (ROOT / "tests" / "controlplane").glob("*/go.mod")}
    assert set(OVERLAYS) == modules


def test_every_manifest_is_in_a_kustomization() -> None:
    listed = set()
    for path in CONFIG.rglob("kustomization.yaml"):
        (kustomization,) = documents(path)
        generated = [name for each in kustomization.get("configMapGenerator", ()) for name in each["files"]]
        listed |= {path.parent / name for name in (*kustomization.get("resources", ()), *generated)}
    written = {path for path in files(".yaml", root=CONFIG) if path.name != "kustomization.yaml"}
    assert {path.resolve() for path in listed if path.suffix == ".yaml"} == written


def test_the_readme_tells_what_each_file_is_for() -> None:
    missing = []
    for path in files(".yaml", root=CONFIG):
        name = str(path.relative_to(CONFIG))
        told = f"`{name}`" in README or f"`{path.parent.name}/`" in README
        if path.name not in {"kustomization.yaml", "namespace.yaml"} and not told:
            missing.append(name)
    assert missing == []


def test_overlays_differ_in_the_taint_rule_the_tag_and_the_release_alone(
    overlays: dict[str, list[Object]],
) -> None:
    newest, *others = (named(overlays[name]) for name in reversed(OVERLAYS))
    for other in others:
        differing = {key for key in newest.keys() | other.keys() if newest.get(key) != other.get(key)}
        # The name of a ConfigMap has a hash of what it holds.
        assert {key for key in differing if key[0] != "ConfigMap"} == {
            ("DeviceTaintRule", "dra-extender-owned"),
            ("Deployment", "dra-scheduler"),
        }


def test_an_overlay_has_nothing_that_a_cluster_of_its_version_does_not_serve_by_default(
    overlays: dict[str, list[Object]], tmp_path: Path
) -> None:
    assert "DeviceTaintRule" not in kinds(overlays["1.36"])
    usual = named(overlays["1.36"])
    tainting = named(with_components(tmp_path, OWNERS["1.36"].parent, overlay="1.36"))
    assert {key for key in tainting if tainting[key] != usual.get(key)} == {("DeviceTaintRule", "dra-extender-owned")}
    assert tainting.keys() >= usual.keys()


def test_every_overlay_runs_its_own_versions_scheduler(overlays: dict[str, list[Object]]) -> None:
    for name, objects in overlays.items():
        containers = named(objects)["Deployment", "dra-scheduler"]["spec"]["template"]["spec"]["containers"]
        images = {each["name"]: each["image"] for each in containers}
        assert images["scheduler"].startswith(f"kube-scheduler:v{name}.")


def test_configuration_in_a_pod_is_what_the_files_say(overlays: dict[str, list[Object]]) -> None:
    for name, objects in overlays.items():
        (held,) = (each for each in objects if each["kind"] == "ConfigMap")
        assert held["data"] == {path.name: path.read_text() for path in (SCHEDULER, CONFIG / name / "extender.yaml")}


def test_allocations_are_written_as_the_overlays_release_does() -> None:
    for name in OVERLAYS:
        assert load(CONFIG / name / "extender.yaml").allocation.release == f"v{name}"


def test_rendering_leaves_the_rights_as_the_files_grant_them(overlays: dict[str, list[Object]]) -> None:
    granted = [each for path in RIGHTS.values() for each in documents(path)]
    for objects in overlays.values():
        assert named(granted).items() <= named(objects).items()


def test_the_variant_for_few_device_nodes_differs_in_what_it_says_alone() -> None:
    usual, few = documents(SCHEDULER)[0], documents(FEW / "scheduler.yaml")[0]
    assert {key for key in usual | few if usual.get(key) != few.get(key)} == {"profiles"}
    usual, few = profile(SCHEDULER), profile(FEW / "scheduler.yaml")
    differing = {key for key in usual | few if usual.get(key) != few.get(key)}
    assert differing == {"percentageOfNodesToScore", "pluginConfig"}


def test_the_variant_takes_the_place_of_the_usual_configuration(
    overlays: dict[str, list[Object]], tmp_path: Path
) -> None:
    overlay, component = (os.path.relpath(path, tmp_path) for path in (CONFIG / OVERLAYS[-1], FEW))
    kustomization = {"resources": [overlay], "components": [component]}
    (tmp_path / "kustomization.yaml").write_text(json.dumps(kustomization))
    (held,) = (each for each in rendered(tmp_path) if each["kind"] == "ConfigMap")
    (usual,) = (each for each in overlays[OVERLAYS[-1]] if each["kind"] == "ConfigMap")
    assert held["data"] == {**usual["data"], "scheduler.yaml": (FEW / "scheduler.yaml").read_text()}


def test_an_advisor_allocates_and_binds_nothing() -> None:
    usual, advising = documents(SCHEDULER)[0], documents(ADVISOR / "scheduler.yaml")[0]
    assert {key for key in usual | advising if usual.get(key) != advising.get(key)} == {"profiles", "extenders"}
    assert profile(ADVISOR / "scheduler.yaml") == {
        key: value for key, value in profile(SCHEDULER).items() if key != "plugins"
    }
    (before,), (after,) = usual["extenders"], advising["extenders"]
    differing = {key for key in before | after if before.get(key) != after.get(key)}
    assert differing == {"bindVerb", "preemptVerb", "ignorable", "httpTimeout"}
    assert (after["ignorable"], after.get("bindVerb"), after.get("preemptVerb")) == (True, None, None)
    assert load(ADVISOR / "extender.yaml").ownership.mode == "advisor"


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_advisors_component_owns_nothing_and_may_write_events_alone(
    overlays: dict[str, list[Object]], tmp_path: Path, name: str
) -> None:
    overlay, component = (os.path.relpath(path, tmp_path) for path in (CONFIG / name, ADVISOR))
    kustomization = {"resources": [overlay], "components": [component]}
    (tmp_path / "kustomization.yaml").write_text(json.dumps(kustomization))
    usual, advising = named(overlays[name]), named(rendered(tmp_path))
    assert {kind for kind, _ in usual.keys() - advising.keys()} == {
        "ConfigMap",  # under a name of its own
        *(kinds(overlays[name]) & {"DeviceTaintRule"}),
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "Role",  # the Lease
        "RoleBinding",
    }
    assert {kind for kind, _ in advising.keys() - usual.keys()} == {"ConfigMap"}
    (held,) = (each for each in advising.values() if each["kind"] == "ConfigMap")
    assert held["data"] == {
        path.name: path.read_text() for path in files(".yaml", root=ADVISOR) if path.stem != "kustomization"
    }
    rules = advising["ClusterRole", "dra-extender"]["rules"]
    writing = [rule for rule in rules if not {"get", "list", "watch"} >= set(rule["verbs"])]
    assert [(rule["resources"], rule["verbs"]) for rule in writing] == [(["events"], ["create"])]


def test_of_two_pods_each_extender_contends_and_a_drain_takes_one(
    overlays: dict[str, list[Object]], tmp_path: Path
) -> None:
    overlay, component = (os.path.relpath(path, tmp_path) for path in (CONFIG / OVERLAYS[-1], CONFIG / "two-replicas"))
    kustomization = {"resources": [overlay], "components": [component]}
    (tmp_path / "kustomization.yaml").write_text(json.dumps(kustomization))
    usual, pair = named(overlays[OVERLAYS[-1]]), named(rendered(tmp_path))
    key = ("Deployment", "dra-scheduler")
    assert {name for name in pair if pair[name] != usual.get(name)} == {key, ("PodDisruptionBudget", "dra-scheduler")}
    # A budget that is left behind where there is one pod again keeps no drain waiting.
    budget = pair["PodDisruptionBudget", "dra-scheduler"]["spec"]
    assert (budget["maxUnavailable"], "minAvailable" in budget) == (1, False)
    # Nor do two that are not ready.
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    spec = pair[key]["spec"]
    assert (spec["replicas"], spec["strategy"]["type"]) == (2, "RollingUpdate")
    extender, scheduler = spec["template"]["spec"]["containers"]
    assert (extender["name"], scheduler["name"]) == ("extender", "scheduler")
    assert extender["env"] == template_of(overlays[OVERLAYS[-1]])[1]["extender"]["env"]


def test_the_extender_contends_and_knows_its_pod_where_there_is_one_pod_as_well(
    overlays: dict[str, list[Object]],
) -> None:
    for objects in overlays.values():
        told = template_of(objects)[1]["extender"]["env"]
        assert told[1]["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.uid"}}
        environment = {entry["name"]: entry.get("value", "6f1c-uid") for entry in told}
        assert load(EXTENDER, environment).leading == Leading(enabled=True, pod="6f1c-uid")


@pytest.mark.usefixtures("overlays")
def test_of_two_pods_a_scheduler_whose_extender_stays_dead_is_restarted_and_gives_up_its_lease(tmp_path: Path) -> None:
    spec, containers = template_of(with_components(tmp_path, PAIR))
    extender, scheduler = containers["extender"], containers["scheduler"]
    (port,) = extender["ports"]
    probe = scheduler["livenessProbe"]
    # A name would be one of the scheduler's own ports.
    assert probe["httpGet"] == {**extender["livenessProbe"]["httpGet"], "port": port["containerPort"]}
    # One that hangs and is restarted is back before.
    restart_s = patience_s(extender["livenessProbe"]) + patience_s(extender["startupProbe"])
    assert patience_s(probe) > restart_s + spec["terminationGracePeriodSeconds"]
    assert {scheduler[kind]["httpGet"]["port"] for kind in ("startupProbe", "readinessProbe")} == {"scheduler"}


@pytest.mark.parametrize("components", [[], [FEW], [ADVISOR], [PAIR, ADVISOR]], ids=["", "few", "advisor", "two"])
@pytest.mark.usefixtures("overlays")
def test_a_scheduler_that_nobody_takes_over_from_or_that_needs_no_extender_is_restarted_for_itself_alone(
    tmp_path: Path, components: list[Path]
) -> None:
    _, containers = template_of(with_components(tmp_path, *components))
    (deployment,) = documents(BASE / "deployment.yaml")
    (usual,) = (each for each in deployment["spec"]["template"]["spec"]["containers"] if each["name"] == "scheduler")
    assert containers["scheduler"]["livenessProbe"] == usual["livenessProbe"]
    assert usual["livenessProbe"]["httpGet"]["port"] == "scheduler"


def owned(objects: list[Object]) -> dict[str, Object]:
    """Return what the extender's own configuration says about ownership, and the drivers that rules taint."""
    (held,) = (each for each in objects if each["kind"] == "ConfigMap")
    rules = [each["spec"]["deviceSelector"]["driver"] for each in objects if each["kind"] == "DeviceTaintRule"]
    return {"says": yaml.safe_load(held["data"]["extender.yaml"])["ownership"], "rules": rules}


@pytest.mark.usefixtures("overlays")
def test_a_kustomization_of_ones_own_is_as_the_readme_shows_it(tmp_path: Path) -> None:
    ours = {"drivers": ["gpu.nvidia.com"]}
    (tmp_path / "extender.yaml").write_text(json.dumps({"ownership": ours}))
    shown = the_one(SHOWN, "dra-extender-owned")
    text = shown.replace("../scheduler-config", os.path.relpath(CONFIG, tmp_path))
    (tmp_path / "kustomization.yaml").write_text(text)
    objects = rendered(tmp_path)
    assert owned(objects) == {"says": ours, "rules": ours["drivers"]}
    assert named(objects)["Deployment", "dra-scheduler"]["spec"]["replicas"] == 2
    _, containers = template_of(objects)
    assert {each["image"].partition(":")[0] for each in containers.values()} == {
        "images.example.com/dra-extender",
        "images.example.com/kube-scheduler",
    }
    # The advisor's configuration takes the place of one's own, unless that comes after it.
    mine = tmp_path / "mine"
    mine.mkdir()
    advising = {"mode": "advisor", "drivers": ["gpu.nvidia.com"]}
    (mine / "extender.yaml").write_text(json.dumps({"ownership": advising}))
    (mine / "kustomization.yaml").write_text(
        json.dumps({"kind": "Component", "configMapGenerator": yaml.safe_load(shown)["configMapGenerator"]})
    )
    for after, said in (("", {"mode": "advisor"}), ("  - mine\n", advising)):
        listed = f"  - {os.path.relpath(ADVISOR, tmp_path)}\n{after}"
        (tmp_path / "kustomization.yaml").write_text(text + listed)
        assert owned(rendered(tmp_path)) == {"says": said, "rules": []}


@pytest.mark.usefixtures("overlays")
def test_a_placement_document_is_mounted_as_the_readme_shows_it(tmp_path: Path) -> None:
    shown = the_one(SHOWN, "dra-placement")
    (tmp_path / "placement.yaml").write_text("mix: learnt\n")
    head = json.dumps([os.path.relpath(CONFIG / OVERLAYS[-1], tmp_path)])
    (tmp_path / "kustomization.yaml").write_text(f"resources: {head}\n{shown}")
    objects = named(rendered(tmp_path))
    assert objects["ConfigMap", "dra-placement"]["data"] == {"placement.yaml": "mix: learnt\n"}
    spec, containers = template_of([*objects.values()])
    assert {"name": "placement", "configMap": {"name": "dra-placement"}} in spec["volumes"]
    # A whole volume: what is mounted by subPath is never replaced.
    assert {"name": "placement", "mountPath": "/etc/dra-placement", "readOnly": True} in containers["extender"][
        "volumeMounts"
    ]
    assert "placement: {file: /etc/dra-placement/placement.yaml}" in README


@pytest.mark.usefixtures("overlays")
def test_claims_that_tolerate_everything_are_only_warned_of_by_the_patch_that_the_readme_shows(tmp_path: Path) -> None:
    shown = the_one(SHOWN, "ValidatingAdmissionPolicyBinding")
    head = json.dumps([os.path.relpath(CONFIG / OVERLAYS[-1], tmp_path)])
    (tmp_path / "kustomization.yaml").write_text(f"resources: {head}\n{shown}")
    binding = named(rendered(tmp_path))["ValidatingAdmissionPolicyBinding", "dra-extender-tolerations"]
    assert binding["spec"]["validationActions"] == ["Warn", "Audit"]


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
def test_the_line_of_the_readme_finds_the_claims_and_templates_that_are_refused() -> None:
    found, items = [], []
    for name, toleration, taken in TOLERATIONS:
        alternative = {"name": "one", "deviceClassName": "gpu", "tolerations": [toleration]}
        asking = exactly(tolerations=[toleration]), {"name": "either", "firstAvailable": [alternative]}
        for build, request in product((claim, template), asking):
            items.append(build(f"{name}-{request['name']}", exactly(name="plain"), request))
            found += [] if taken else [items[-1]]
    items += [claim("looks", exactly(adminAccess=True, tolerations=[{"operator": "Exists"}])), claim("nothing")]
    _, _, filtering = the_one(LINES, "resourceclaimtemplates").partition(" | jq ")
    told = subprocess.check_output(["sh", "-c", f"jq {filtering}"], input=json.dumps({"items": items}), text=True)
    assert told.splitlines() == [f"{each['kind']} default/{each['metadata']['name']}" for each in found]


@pytest.mark.usefixtures("overlays")
def test_the_pod_runs_on_linux_and_where_the_patch_says_that_the_readme_shows(tmp_path: Path) -> None:
    shown = the_one(SHOWN, "nodeSelector")
    head = json.dumps([os.path.relpath(CONFIG / OVERLAYS[-1], tmp_path)])
    (tmp_path / "kustomization.yaml").write_text(f"resources: {head}\n{shown}")
    patched, usual = (template_of(objects)[0] for objects in (rendered(tmp_path), with_components(tmp_path)))
    assert (usual["nodeSelector"], usual.get("tolerations", [])) == ({"kubernetes.io/os": "linux"}, [])
    assert patched["nodeSelector"] == {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    assert [each["key"] for each in patched["tolerations"]] == ["node-role.kubernetes.io/control-plane"]


def test_the_quota_is_about_the_pods_priority_and_has_room_while_two_are_replaced() -> None:
    (deployment,), (quota,) = (documents(BASE / name) for name in ("deployment.yaml", "quota.yaml"))
    (scope,) = quota["spec"]["scopeSelector"]["matchExpressions"]
    assert (scope["scopeName"], scope["operator"]) == ("PriorityClass", "In")
    assert scope["values"] == [deployment["spec"]["template"]["spec"]["priorityClassName"]]
    assert quota["metadata"]["namespace"] == deployment["metadata"]["namespace"]
    assert int(quota["spec"]["hard"]["pods"]) >= 2 * (2 + 1)


@pytest.mark.usefixtures("overlays")
def test_after_the_advisors_component_nothing_is_built_that_is_for_an_owner_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for component in (PAIR, OWNERS["1.36"].parent):
        with pytest.raises(subprocess.CalledProcessError):
            with_components(tmp_path, ADVISOR, component)
        assert "mode failed: test failed" in capfd.readouterr().err


@pytest.mark.usefixtures("overlays")
def test_the_advisors_component_takes_back_the_rule_of_the_component_before_it(tmp_path: Path) -> None:
    objects = with_components(tmp_path, OWNERS["1.36"].parent, ADVISOR, overlay="1.36")
    assert "DeviceTaintRule" not in kinds(objects)


@pytest.mark.parametrize("components", [[FEW, ADVISOR], [ADVISOR, FEW]], ids=["few-first", "advisor-first"])
@pytest.mark.usefixtures("overlays")
def test_of_two_components_with_a_configuration_of_their_own_nothing_is_built(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], components: list[Path]
) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        with_components(tmp_path, *components)
    assert "scheduler.yaml failed: test failed" in capfd.readouterr().err


def test_every_component_with_a_configuration_of_its_own_says_so() -> None:
    for path in CONFIG.glob("*/kustomization.yaml"):
        (kustomization,) = documents(path)
        generated = [name for each in kustomization.get("configMapGenerator", ()) for name in each["files"]]
        if path.parent != BASE and "scheduler.yaml" in generated:
            patches = [each["patch"] for each in kustomization["patches"] if each["target"]["kind"] == "Deployment"]
            assert f"value: {path.parent.name}" in "".join(patches)


def test_the_extender_asks_for_the_leases_that_it_has_rights_to() -> None:
    roles = [each for each in documents(RIGHTS["extender"]) if each["kind"] == "Role"]
    granted = {name for role in roles for rule in role["rules"] for name in rule.get("resourceNames", ())}
    leading = load(EXTENDER).leading
    assert {leading.lease, leading.scheduler_lease} == granted
    assert {role["metadata"]["namespace"] for role in roles} == {leading.namespace}
    election = documents(SCHEDULER)[0]["leaderElection"]
    assert (election["resourceNamespace"], election["resourceName"]) == (leading.namespace, leading.scheduler_lease)


@pytest.mark.parametrize("path", [SCHEDULER, FEW / "scheduler.yaml"], ids=["usual", "few-device-nodes"])
def test_the_extender_owns_allocation_and_binding(path: Path) -> None:
    (extender,) = documents(path)[0]["extenders"]
    plugins = profile(path)["plugins"]
    dynamic = [{"name": "DynamicResources"}]
    assert plugins == {"multiPoint": {"disabled": dynamic}, "preEnqueue": {"enabled": dynamic}}
    assert extender["bindVerb"] == "bind"
    assert extender["nodeCacheCapable"] is True
    assert extender["ignorable"] is False
    assert "managedResources" not in extender


def test_one_key_is_the_owner_taints_everywhere() -> None:
    for path in OWNERS.values():
        (rule,) = documents(path)
        assert rule["spec"]["taint"] == {"key": KEY, "effect": "NoSchedule"}
        assert rule["spec"]["deviceSelector"]["driver"]
    assert f'"{KEY}"' in (BASE / "tolerations.yaml").read_text()


def test_no_image_says_where_it_comes_from() -> None:
    images = [line for path in files(".yaml", root=CONFIG) for line in re.findall(r"image: (\S+)", path.read_text())]
    assert sorted(images) == ["dra-extender", "kube-scheduler"]


def test_verbs_are_spoken_on_loopback_and_probes_on_the_pods_address() -> None:
    (deployment,) = documents(BASE / "deployment.yaml")
    containers = deployment["spec"]["template"]["spec"]["containers"]
    ports = {port["containerPort"] for each in containers for port in each["ports"]}
    (policy,) = documents(BASE / "network.yaml")
    reachable = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
    (extender,) = documents(SCHEDULER)[0]["extenders"]
    assert ports == reachable == {8080, 10259}
    assert extender["urlPrefix"] == "http://127.0.0.1:8888"
