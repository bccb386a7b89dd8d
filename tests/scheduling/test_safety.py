"""Starting is refused where what is configured is not safe on the cluster found, with the setting and the ways out."""

from dataclasses import replace

import pytest

from extender.scheduling.rights import CLAIMS_BINDING, NEEDS, OWNER_RIGHTS, further_needs, rights_of
from extender.scheduling.safety import Found, Intent, unsafe

OWNER = Intent(is_owner=True, keeps_taint=True, names_drivers=False, accepts=False)
ADVISOR = replace(OWNER, is_owner=False, keeps_taint=False)
BY_HAND = replace(OWNER, keeps_taint=False)
FINE = Found(serves_claims=True, serves_rules=True, has_owner_rule=False)
WITHOUT_RULES = replace(FINE, serves_rules=False)


@pytest.mark.parametrize(
    ("intent", "found", "settings"),
    [
        pytest.param(OWNER, FINE, ["ownership.drivers"], id="no-drivers"),
        pytest.param(OWNER, replace(FINE, has_owner_rule=True), [], id="no-drivers-but-a-rule"),
        pytest.param(replace(OWNER, names_drivers=True), FINE, [], id="taint-kept"),
        pytest.param(OWNER, WITHOUT_RULES, ["ownership.keepTaint"], id="no-rules"),
        pytest.param(replace(OWNER, names_drivers=True), WITHOUT_RULES, [], id="no-rules-but-drivers"),
        pytest.param(replace(OWNER, accepts=True), WITHOUT_RULES, [], id="no-rules-but-accepted"),
        pytest.param(ADVISOR, WITHOUT_RULES, [], id="advisor-without-rules"),
        pytest.param(BY_HAND, FINE, ["ownership.keepTaint"], id="taint-not-kept"),
        pytest.param(BY_HAND, replace(FINE, has_owner_rule=True), [], id="taint-by-hand"),
        pytest.param(replace(BY_HAND, names_drivers=True), FINE, [], id="drivers-by-hand"),
        pytest.param(replace(BY_HAND, accepts=True), FINE, [], id="accepted-by-hand"),
        pytest.param(
            replace(OWNER, names_drivers=True),
            replace(FINE, denied=(CLAIMS_BINDING,)),
            ["ownership.mode"],
            id="no-right-to-bind-claims",
        ),
        pytest.param(ADVISOR, replace(FINE, denied=OWNER_RIGHTS), [], id="advisor-without-rights"),
        pytest.param(
            replace(OWNER, names_drivers=True),
            replace(FINE, serves_claims=False),
            ["ownership.mode"],
            id="no-claims",
        ),
        pytest.param(ADVISOR, replace(FINE, serves_claims=False), ["ownership.mode"], id="advisor-without-claims"),
        pytest.param(
            OWNER,
            replace(WITHOUT_RULES, denied=OWNER_RIGHTS),
            ["ownership.mode"] * len(OWNER_RIGHTS) + ["ownership.keepTaint"],
            id="everything",
        ),
    ],
)
def test_what_is_refused_names_the_setting(intent: Intent, found: Found, settings: list[str]) -> None:
    assert [reason.partition(": ")[0] for reason in unsafe(intent, found)] == settings


def test_what_is_refused_says_what_was_found_and_what_can_be_done() -> None:
    (reason,) = unsafe(OWNER, WITHOUT_RULES)
    assert "does not serve devicetaintrules" in reason
    for way in ("ownership.drivers", "ownership.acceptUnpartitioned", "ownership.mode to advisor"):
        assert way in reason
    (reason,) = unsafe(OWNER, FINE)
    for way in ("apply such a rule", "ownership.drivers", "ownership.acceptUnpartitioned", "ownership.mode to advisor"):
        assert way in reason
    (reason,) = unsafe(replace(OWNER, names_drivers=True), replace(FINE, denied=(CLAIMS_BINDING,)))
    assert "patch resourceclaims/binding of resource.k8s.io" in reason
    assert "422" in reason
    assert "scheduler-config/base/rbac/extender.yaml" in reason


@pytest.mark.parametrize(("minor", "asks"), [(35, False), (36, True), (37, True), (None, True)])
def test_the_right_to_bind_claims_is_asked_for_from_1_36_on(minor: int | None, *, asks: bool) -> None:
    assert (CLAIMS_BINDING in rights_of(minor)) is asks


@pytest.mark.parametrize(("minor", "count"), [(35, 1), (36, 0), (37, 0), (None, 0)])
def test_on_older_clusters_no_right_is_missed_that_they_do_not_know(minor: int | None, count: int) -> None:
    assert len(NEEDS) - len(further_needs(minor)) == count
    assert all(need.right.part != "binding" for need in further_needs(35))


def test_whoever_may_not_write_a_status_as_a_whole_is_told_of_all_claims_that_take_it() -> None:
    said = {need.right.part: need.without for need in NEEDS if need.right[0] == "update" and "claims" in need.right[2]}
    assert {part: "too long" in without for part, without in said.items()} == {
        "": False,
        "status": True,
        "binding": True,
    }
