import re
from argparse import ArgumentParser
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.allocation.features import Features
from extender.config.flags import add_flags, settings_of
from extender.config.load import Invalid, load
from extender.config.settings import Answer, Settings
from extender.config.table import rows
from extender.config.values import checked, shown


def loaded(folder: Path, text: str) -> Settings:
    file = folder / "extender.yaml"
    file.write_text(text)
    return load(file)


def complaints(folder: Path, text: str) -> list[str]:
    with pytest.raises(Invalid) as caught:
        loaded(folder, text)
    return [complaint.replace(f"{folder}/", "") for complaint in caught.value.complaints]


def test_without_anything_all_is_default() -> None:
    assert load() == Settings()


@pytest.mark.parametrize("text", ["", "answer:\n", "# nothing\n", "{}"])
def test_an_empty_file_is_all_default(tmp_path: Path, text: str) -> None:
    assert loaded(tmp_path, text) == Settings()


def test_a_file_sets_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    text = """
      schedulers: [gpu-scheduler, other]
      answer: {policy: all, shortlist: 3}
      allocation: {features: {DRAListTypeAttributes: true}}
      watch: {maxAgeSeconds: 20}
      fastPaths: false
    """
    found = loaded(tmp_path, text)
    assert found.schedulers == ("gpu-scheduler", "other")
    assert found.answer == Answer(policy="all", shortlist=3)
    assert found.allocation.features == Features(list_type_attributes=True)
    assert found.watch.max_age_seconds == 20
    assert not found.fast_paths
    assert (found.listen, found.holds) == (Settings().listen, Settings().holds)


def test_a_driver_may_have_capitals_as_in_the_api(tmp_path: Path) -> None:
    found = loaded(tmp_path, "ownership: {drivers: [GPU.example.com, gpu.example.com]}")
    assert found.ownership.drivers == ("GPU.example.com", "gpu.example.com")


@pytest.mark.parametrize("release", ["v1.36", "1.36", "'1.36'"])
def test_a_release_is_written_with_a_v_or_without(tmp_path: Path, release: str) -> None:
    assert loaded(tmp_path, f"allocation: {{release: {release}}}").allocation.release == "v1.36"


WRONG = {
    "unknown-section": ("answers: {}", "answers: is no setting; there are schedulers, listen, tls, api, answer"),
    "unknown-key": ("answer: {shortList: 2}", "answer.shortList: is no setting; there are answer.policy, answer.sh"),
    "flat-key": (
        "answer.shortlist: 2",
        "answer.shortlist: is no setting: they are nested, answer: {shortlist: ...}",
    ),
    "unknown-flat-key": ("answer.short: 2", "answer.short: is no setting; there are answer.policy, answer.shortlist"),
    "flat-key-of-no-section": ("answers.a: 2", "answers.a: is no setting; there are schedulers, listen, tls"),
    "key-below-a-key": ("answer: {policy.x: 1}", "answer.policy.x: is no setting; there are answer.policy, answer.s"),
    "unknown-gate": (
        "allocation: {features: {DRANone: true}}",
        "allocation.features.DRANone: is no feature gate that is known here; those are DRAAdminAccess, DRA",
    ),
    "gate-text": (
        "allocation: {features: {DRAAdminAccess: maybe}}",
        "allocation.features.DRAAdminAccess: must be true or false",
    ),
    "section-text": ("answer: all", "answer: must be keys with values"),
    "number": ("answer: {shortlist: many}", "answer.shortlist: must be an integer"),
    "flag-as-number": ("answer: {shortlist: true}", "answer.shortlist: must be an integer"),
    "too-small": ("answer: {shortlist: 0}", "answer.shortlist: must be at least 1"),
    "always-too-old": ("watch: {maxAgeSeconds: 9}", "watch.maxAgeSeconds: must be at least 10"),
    "too-large": ("api: {timeoutSeconds: 61}", "api.timeoutSeconds: must be at most 60"),
    "not-finite": ("watch: {maxAgeSeconds: .nan}", "watch.maxAgeSeconds: must be a number"),
    "huge": (f"watch: {{maxAgeSeconds: 1{'0' * 400}}}", "watch.maxAgeSeconds: must be a number"),
    "huge-integer": (f"allocation: {{steps: 1{'0' * 400}}}", "allocation.steps: must be at most 92233720368"),
    "hugely-negative": (f"allocation: {{steps: -1{'0' * 400}}}", "allocation.steps: must be at least 1"),
    "huge-and-bounded": (f"answer: {{shortlist: 1{'0' * 400}}}", "answer.shortlist: must be at most 11"),
    "a-lease-longer-than-an-api-server-takes": (
        "leading: {leaseSeconds: 3000000000}",
        "leading.leaseSeconds: must be at most 3600",
    ),
    "a-resource-without-a-domain": (
        "allocation: {ignoredResources: [example.com/fpga, gpu]}",
        "allocation.ignoredResources[1]: must be an extended resource, as example.com/gpu, or example.com/* for all",
    ),
    "a-resource-with-more-than-a-star": (
        "allocation: {ignoredResources: [example.com/g*]}",
        "allocation.ignoredResources[0]: must be an extended resource",
    ),
    "no-bool": ("fastPaths: !!bool x", "extender.yaml: line 1: this is no bool"),
    "no-map": ("answer: !!map [1]", "extender.yaml: line 1: keys with values are expected, and here is a sequence"),
    "choice": ("answer: {policy: best}", "answer.policy: must be one of auto, all, shortlist, one"),
    "flag": ("waking: {nominate: 1}", "waking.nominate: must be true or false"),
    "text": ("tls: {certificate: 1}", "tls.certificate: must be text"),
    "nul": (r'placement: {file: "a\0b"}', "placement.file: must be text without NUL, and without half of a surr"),
    "half-a-pair": (r'tls: {key: "\ud800", certificate: c}', "tls.key: must be text without NUL, and without half"),
    "null": ("tls: {certificate: }", "tls.certificate: must be text"),
    "no-list": ("schedulers: dra-scheduler", "schedulers: must be a list of at least one name"),
    "no-name": ("schedulers: []", "schedulers: must be a list of at least one name"),
    "name-number": ("schedulers: [a, 3]", "schedulers[1]: must be text"),
    "name-twice": ("schedulers: [a, a]", "schedulers[1]: is there twice"),
    "bad-name": ("schedulers: [a_b]", "schedulers[0]: must be the name of a scheduler, as dra-scheduler"),
    "list": ("[1]", "extender.yaml: must be keys with values"),
    "not-yaml": ("answer: {", "extender.yaml: line 1: expected the node content, but found '<stream end>'"),
    "key-twice": ("answer: {}\nanswer: {}", "extender.yaml: line 2: answer is there twice"),
    "python": ("answer: !!python/object:os.system {}", "extender.yaml: line 1: could not determine a constructor for"),
    "no-address": ("listen: {verbs: here}", "listen.verbs: must be host:port"),
    "no-port": ("listen: {probes: '127.0.0.1:70000'}", "listen.probes: must have a port of at most 65535"),
    "ipv6-bare": ("listen: {verbs: '::1:80'}", "listen.verbs: must be host:port"),
    "same-port": ("listen: {probes: '0.0.0.0:8888'}", "listen.probes: must have another port than listen.verbs"),
    "open-verbs": ("listen: {verbs: '0.0.0.0:1'}", "listen.verbs: must be loopback, or tls.clientAuthorities must"),
    "open-verbs-tls": (
        "listen: {verbs: '0.0.0.0:1'}\ntls: {certificate: c, key: k}",
        "listen.verbs: must be loopback, or tls.clientAuthorities must",
    ),
    "no-key": ("tls: {certificate: c}", "tls.key: is needed with tls.certificate"),
    "no-certificate": ("tls: {key: k}", "tls.certificate: is needed with tls.key"),
    "only-authorities": ("tls: {clientAuthorities: a}", "tls.certificate: is needed with tls.clientAuthorities"),
    "slow-bind": ("api: {bindSeconds: 30}", "api.bindSeconds: must be less than api.schedulerTimeoutSeconds, 30"),
    "bold-trust": (
        "leading: {leaseSeconds: 12}",
        "leading.trustSeconds: must be at most 0.8 of leading.leaseSeconds, 12",
    ),
    "late-renewal": (
        "leading: {renewSeconds: 6}",
        "leading.renewSeconds: must be at most half of leading.trustSeconds, 10",
    ),
    "no-lease": ("leading: {lease: ''}", "leading.lease: must be the name of an object"),
    "no-such-lease": ("leading: {schedulerLease: A/B}", "leading.schedulerLease: must be the name of an object"),
    "no-pod": ("leading: {pod: a_b}", "leading.pod: must be the UID of a pod"),
    "one-lease": ("leading: {lease: dra-scheduler}", "leading.lease: must be another one than leading.schedulerLease"),
    "slow-write": ("api: {timeoutSeconds: 20}", "api.timeoutSeconds: must be less than api.bindSeconds, 20"),
    "taint": ("ownership: {ownerTaint: a b}", "ownership.ownerTaint: must be the key of a taint, as example.com/"),
    "mode": ("ownership: {mode: both}", "ownership.mode: must be one of owner, advisor"),
    "driver": ("ownership: {drivers: [A b]}", "ownership.drivers[0]: must be a name, as gpu.example.com"),
    "long-driver": (f"ownership: {{drivers: [{'d' * 64}]}}", "ownership.drivers[0]: must be a name"),
    "class": ("ownership: {drivers: [d], classes: [c, C]}", "ownership.classes[1]: must be a name, as gpu.example.com"),
    "classes-alone": (
        "ownership: {classes: [gpu]}",
        "ownership.classes: needs ownership.drivers, or ownership.keepTai",
    ),
    "shared-stranger": (
        "ownership: {drivers: [d], classes: [c], sharedDrivers: [e]}",
        "ownership.sharedDrivers[0]: must be one of ownership.drivers",
    ),
    "shared-whole": (
        "ownership: {drivers: [d], sharedDrivers: [d]}",
        "ownership.sharedDrivers: needs ownership.classes",
    ),
    "ahead-of-advice": (
        "{ownership: {mode: advisor}, waking: {nominateAhead: always}}",
        "waking.nominateAhead: is for ownership.mode owner",
    ),
    "ahead-blind": (
        "{placement: {boundPods: false}, waking: {nominateAhead: always}}",
        "waking.nominateAhead: needs placement.boundPods",
    ),
    "policies-in-vain": (
        "{placement: {file: /f}, allocation: {order: first}}",
        "placement.file: needs allocation.order best",
    ),
    "ahead-alone": ("waking: {nominate: false, nominateAhead: always}", "waking.nominateAhead: needs waking.nominate"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_is_refused_with_its_path(tmp_path: Path, case: str) -> None:
    text, complaint = WRONG[case]
    (found,) = complaints(tmp_path, text)
    assert found.startswith(complaint)


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    text = "answer: {policy: best, shortlist: 0}\nnoise: 1\ntls: {key: k}\n"
    named = [complaint.partition(":")[0] for complaint in complaints(tmp_path, text)]
    assert named == ["answer.policy", "answer.shortlist", "noise", "tls.certificate"]


def test_every_entry_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    gates = "{DRANone: true, DRAAdminAccess: 1, DRAListTypeAttributes: true}"
    text = f"schedulers: [a, 3, a, '']\nallocation: {{features: {gates}}}"
    assert [complaint.partition(":")[0] for complaint in complaints(tmp_path, text)] == [
        *("schedulers[1]", "schedulers[2]", "schedulers[3]"),
        *("allocation.features.DRANone", "allocation.features.DRAAdminAccess"),
    ]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"none\.yaml: No such file or directory"):
        load(tmp_path / "none.yaml")


def test_verbs_may_be_open_to_clients_with_certificates(tmp_path: Path) -> None:
    text = "listen: {verbs: '[::]:443'}\ntls: {certificate: c, key: k, clientAuthorities: a}"
    assert loaded(tmp_path, text).listen.verbs == "[::]:443"


def test_flags_come_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "extender.yaml"
    file.write_text("answer: {policy: all, shortlist: 2}\nholds: {rechecks: 7}\n")
    environment = {"DRA_EXTENDER_ANSWER_SHORTLIST": "4", "DRA_EXTENDER_ANSWER_POLICY": "one"}
    found = load(file, environment, {"answer.shortlist": "5"})
    assert (found.answer, found.holds.rechecks) == (Answer(policy="one", shortlist=5), 7)


def test_the_environment_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "extender.yaml"
    file.write_text("holds: {rechecks: 7}\n")
    assert load(None, {"DRA_EXTENDER_CONFIG": str(file)}).holds.rechecks == 7


TEXTS = {
    "DRA_EXTENDER_SCHEDULERS": ("a, b", "schedulers", ("a", "b")),
    "DRA_EXTENDER_WAKING_NOMINATE": ("False", "waking.nominate", False),
    "DRA_EXTENDER_WATCH_MAX_AGE_SECONDS": ("22.5", "watch.maxAgeSeconds", 22.5),
    "DRA_EXTENDER_LISTEN_PROBES": ("", "listen.probes", ""),
    "DRA_EXTENDER_ALLOCATION_FEATURES": (
        "DRAListTypeAttributes=true, DRAAdminAccess=false",
        "allocation.features",
        Features(list_type_attributes=True, admin_access=False),
    ),
}


@pytest.mark.parametrize("variable", TEXTS)
def test_a_variable_is_read_as_its_setting_is_typed(variable: str) -> None:
    text, path, value = TEXTS[variable]
    assert value_at(load(None, {variable: text}), path) == value
    assert value_at(load(None, {}, {path: text}), path) == value


def test_a_variable_is_no_number_where_a_file_would_not_have_one() -> None:
    with pytest.raises(Invalid, match=r"^DRA_EXTENDER_HOLDS_RECHECKS: must be an integer"):
        load(None, {"DRA_EXTENDER_HOLDS_RECHECKS": "1_0"})


def value_at(found: object, path: str) -> object:
    row = rows()[path]
    return getattr(getattr(found, row.section) if row.section else found, row.field)


@pytest.mark.parametrize(
    ("variable", "text", "complaint"),
    [
        pytest.param("ANSWER_SHORTLIST", "many", "must be an integer", id="number"),
        pytest.param("ANSWER_SHORTLIST", "1.5", "must be an integer", id="fraction"),
        pytest.param("EVENTS_ENABLED", "yes", "must be true or false", id="flag"),
        pytest.param("SCHEDULERS", "", "must be a list of at least one name", id="names"),
        pytest.param("ALLOCATION_FEATURES", "DRAAdminAccess", "must be true or false", id="gate"),
        pytest.param("ANSWERS", "1", "is no setting", id="unknown"),
    ],
)
def test_a_wrong_variable_is_refused_by_its_name(variable: str, text: str, complaint: str) -> None:
    with pytest.raises(Invalid) as caught:
        load(None, {f"DRA_EXTENDER_{variable}": text})
    (found,) = caught.value.complaints
    assert re.fullmatch(rf"DRA_EXTENDER_{variable}[][.\w]*: {complaint}", found)


def test_variables_of_a_service_of_our_name_are_not_ours() -> None:
    environment = {
        "DRA_EXTENDER_SERVICE_HOST": "10.0.0.1",
        "DRA_EXTENDER_SERVICE_PORT_METRICS": "8080",
        "DRA_EXTENDER_PORT": "tcp://10.0.0.1:8080",
        "DRA_EXTENDER_PORT_8080_TCP_ADDR": "10.0.0.1",
        "DRA_EXTENDER_METRICS_PORT_8080_TCP": "tcp://10.0.0.1:8080",
        "DRA_EXTENDERS": "others",
    }
    assert load(None, environment) == Settings()


def parser() -> ArgumentParser:
    built = ArgumentParser()
    add_flags(built)
    return built


def test_every_setting_has_a_flag(tmp_path: Path) -> None:
    file = tmp_path / "extender.yaml"
    file.write_text("holds: {rechecks: 7}\n")
    arguments = parser().parse_args(["--config", str(file), "--answer-policy", "one", "--fast-paths=false"])
    found = settings_of(arguments, {"DRA_EXTENDER_ANSWER_POLICY": "all"})
    assert (found.answer.policy, found.fast_paths, found.holds.rechecks) == ("one", False, 7)
    assert {row.flag for row in rows().values()} <= set(re.findall(r"--[a-z-]+", parser().format_help()))


def test_a_wrong_flag_is_refused_by_its_name() -> None:
    with pytest.raises(Invalid, match=r"^--answer-shortlist: must be at least 1$"):
        settings_of(parser().parse_args(["--answer-shortlist", "0"]), {})


@pytest.mark.parametrize("path", rows())
def test_every_default_is_a_value_that_a_file_may_have(path: str) -> None:
    row = rows()[path]
    assert checked(row.hint, row.key, yaml.safe_load(shown(row.default))) == row.default


NAMES = st.sampled_from([*(row.field for row in rows().values()), *(path.partition(".")[0] for path in rows())])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.dates(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES | st.integers(), inner, max_size=3),
)


@settings(max_examples=200)
@given(st.text(max_size=40) | VALUES.map(yaml.safe_dump))
def test_no_file_makes_loading_fail_otherwise(text: str) -> None:
    with NamedTemporaryFile("wb") as file:
        file.write(text.encode(errors="replace"))
        file.flush()
        with suppress(Invalid):
            assert isinstance(load(Path(file.name)), Settings)


@pytest.mark.parametrize("text", ["", "[]", "[gpu.example.com, nic.example.com]"])
def test_lists_of_what_is_ours_may_be_empty(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"ownership: {{drivers: {text}}}" if text else "")
    named = ("gpu.example.com", "nic.example.com") if "gpu" in text else ()
    assert load(file, {}).ownership.drivers == named
    assert load(file, {"DRA_EXTENDER_OWNERSHIP_DRIVERS": ""}).ownership.drivers == ()


@pytest.mark.parametrize(
    "text",
    ["{classes: [gpu], drivers: [d]}", "{classes: [gpu], keepTaint: false}", "{classes: [gpu], mode: advisor}"],
)
def test_classes_are_owned_with_their_drivers_or_without_a_taint(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"ownership: {text}")
    assert load(file, {}).ownership.classes == ("gpu",)
