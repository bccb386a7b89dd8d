"""Requests and constraints take names as they are published: with a domain or without."""

import pytest

from extender.allocation.fit import Fitter
from extender.allocation.question import Question
from extender.model.change import Changed
from extender.model.claim import Constraint
from extender.model.device import Device
from tests.allocation.small import DRIVER, chosen, cluster, device, node, published, question, request, verdicts

FULL = f"{DRIVER}/memory"


@pytest.mark.parametrize("asked", ["memory", FULL])
def test_two_capacities_that_selectors_take_for_one_are_two_for_requests(asked: str) -> None:
    amounts = ({"memory": "1", FULL: "4"}, {"memory": "8", FULL: "4"}, {"memory": "8", FULL: "1"}, {FULL: "4"})
    pools = [f"n{index}" for index in range(len(amounts))]
    nouns = [published(pool, device("d", capacity=amount)) for pool, amount in zip(pools, amounts, strict=True)]
    snapshot = cluster(*map(node, pools), *nouns).snapshot
    wanted = question(request(capacity={asked: "2"}))
    expected = {"memory": ["NO", "FITS", "FITS", "NO"], FULL: ["FITS", "FITS", "NO", "FITS"]}
    assert verdicts(Fitter(wanted), snapshot) == chosen(wanted, snapshot) == expected[asked]


def test_a_change_of_a_capacity_that_selectors_do_not_see_is_seen() -> None:
    built = cluster(node("n"), published("n", device("d", capacity={"memory": "1", FULL: "4"})))
    fitter = Fitter(question(request(capacity={"memory": "2"})))
    assert verdicts(fitter, built.snapshot) == ["NO"]
    built.apply(Changed(published("n", device("d", capacity={"memory": "2", FULL: "4"}))))
    assert verdicts(fitter, built.snapshot) == ["FITS"]


def same(attribute: str) -> Question:
    return question(request(2), Constraint(match_attribute=attribute))


def pair(**values: int) -> tuple[Device, Device]:
    """Two devices that agree in what *values* says; colons stand for slashes."""
    return device("d0", values), device("d1", values)


def test_a_constraint_without_a_domain_compares_what_is_published_without_one() -> None:
    snapshot = cluster(
        node("n1"),
        node("n2"),
        published("n1", *pair(numa=1)),
        published("n2", *pair(**{f"{DRIVER}/numa": 1})),
    ).snapshot
    for attribute, expected in (("numa", ["FITS", "NO"]), (f"{DRIVER}/numa", ["FITS", "FITS"])):
        assert verdicts(Fitter(same(attribute)), snapshot) == chosen(same(attribute), snapshot) == expected


def test_what_a_constraint_without_a_domain_compares_is_asked_anew_at_every_change() -> None:
    full = f"{DRIVER}/numa"
    built = cluster(node("n"), published("n", *pair(**{full: 1, "numa": 1})))
    fitter = Fitter(same("numa"))
    assert verdicts(fitter, built.snapshot) == ["FITS"]
    built.apply(Changed(published("n", device("d0", {full: 1, "numa": 1}), device("d1", {full: 1, "numa": 2}))))
    assert verdicts(fitter, built.snapshot) == ["NO"]
