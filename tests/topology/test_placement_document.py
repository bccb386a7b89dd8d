"""The placement document is read whole, or refused with everything that is wrong with it."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.topology.demand import Demand
from extender.topology.document import Document, document_of
from extender.topology.policies import SHIPPED, Policies
from extender.topology.policy import Placing, Policy, Trait, Wish
from extender.topology.reading import InvalidDocument
from extender.topology.residual import Mix
from extender.topology.tables import shipped

NAMES = "protect, pack, spread, one-numa, linked"
NEW = f"must be lower-case letters, digits and dashes, and none of {NAMES}"


def complaints(raw: object) -> tuple[str, ...]:
    with pytest.raises(InvalidDocument) as caught:
        document_of(raw)
    return caught.value.complaints


@pytest.mark.parametrize("raw", [None, {}, {"mix": "learnt", "policies": {}}, {"policies": None, "mix": None}])
def test_what_is_left_open_is_as_shipped(raw: object) -> None:
    assert document_of(raw) == Document() == Document(shipped(), Demand(), Policies())


@pytest.mark.parametrize(
    ("mix", "of_gpus", "of_others"),
    [
        pytest.param("learnt", None, None, id="learnt"),
        pytest.param({"sizes": {1: 4, 2: 3}}, {2: 3}, {2: 3}, id="the same for all"),
        pytest.param({"classes": {"gpu": {8: 1}}}, {8: 1}, None, id="learnt but for one class"),
        pytest.param({"sizes": {2: 3}, "classes": {"gpu": {8: 1}}}, {8: 1}, {2: 3}, id="one class unlike others"),
        pytest.param({"sizes": {1: 1}}, {}, {}, id="single devices only"),
        pytest.param({"sizes": {"1": 4, "2": 3}}, {2: 3}, {2: 3}, id="keys as in JSON"),
    ],
)
def test_a_mix_is_of_a_class_or_of_all(
    mix: Any, of_gpus: dict[int, int] | None, of_others: dict[int, int] | None
) -> None:
    demand = document_of({"mix": mix}).demand
    assert demand.mix_for("gpu") == (None if of_gpus is None else Mix.of(of_gpus))
    assert demand.mix_for("nic") == (None if of_others is None else Mix.of(of_others))


def test_policies_are_read_with_all_their_keys() -> None:
    trait = {"attribute": "productName", "values": ["A100*", 3, True]}
    named = {"cheap": {"place": "pack", "links": "ignored", "numa": "strict", "prefer": [trait], "forbid": [trait]}}
    raw = {
        "default": "cheap",
        "named": named,
        "classes": {"gpu.nvidia.com": "spread"},
        "namespaces": {"team-a": "cheap"},
        "avoid": [trait],
    }
    read = Trait("productName", ("A100*", "3", "true"))
    cheap = Policy(
        name="cheap", placing=Placing.PACK, links=Wish.IGNORED, numa=Wish.STRICT, prefer=(read,), forbid=(read,)
    )
    assert document_of({"policies": raw}).policies == Policies(
        every=(*SHIPPED, cheap),
        default="cheap",
        allowed=(*NAMES.split(", "), "cheap"),
        classes=(("gpu.nvidia.com", "spread"),),
        namespaces=(("team-a", "cheap"),),
        avoid=(read,),
    )


def test_a_policy_about_which_nothing_is_said_protects() -> None:
    assert document_of({"policies": {"named": {"own": None}}}).policies.policy("own") == Policy(name="own")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param([], "document: must be keys with values", id="no-keys"),
        pytest.param(
            {"policy": {}}, "policy: is no key; there are clusterTopology, deviceTopology, mix, policies", id="unknown"
        ),
        pytest.param({"deviceTopology": {}}, "deviceTopology: must be a list", id="topology"),
        pytest.param({"mix": "learned"}, "mix: must be learnt, or keys with values", id="misspelt"),
        pytest.param({"mix": {2: 1}}, "mix.2: is no key; there are classes, sizes", id="sizes-without-their-key"),
        pytest.param({"mix": {"sizes": {0: 1}}}, "mix.sizes.0: must be an integer from 1 to 1024", id="size"),
        pytest.param(
            {"mix": {"sizes": {"two": 1}}}, "mix.sizes.two: must be an integer from 1 to 1024", id="size-in-letters"
        ),
        pytest.param({"mix": {"sizes": {2: 1, "2": 3}}}, "mix.sizes.2: is said twice", id="size-twice"),
        pytest.param({"mix": {"sizes": {2: 0.5}}}, "mix.sizes.2: must be an integer from 0 to 1000000", id="share"),
        pytest.param(
            {"mix": {"sizes": {2: 0}}},
            "mix.sizes: must be numbers of devices, and how often each is asked for",
            id="nothing-is-asked-for",
        ),
        pytest.param(
            {"mix": {"classes": {"GPU": {2: 1}}}},
            "mix.classes.GPU: must be the name of a device class",
            id="mix-of-no-class",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_path(raw: object, expected: str) -> None:
    assert complaints(raw) == (expected,)


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        pytest.param([], ": must be keys with values", id="no-keys"),
        pytest.param({"default": "best"}, f".default: must be one of {NAMES}", id="default"),
        pytest.param(
            {"defaults": 1},
            ".defaults: is no key; there are allowed, avoid, classes, default, forbid, named, namespaces",
            id="unknown",
        ),
        pytest.param({"allowed": ["best"]}, f".allowed[0]: must be one of {NAMES}", id="allowed"),
        pytest.param({"allowed": ["pack", "pack"]}, ".allowed[1]: pack is there twice", id="twice"),
        pytest.param({"allowed": None}, ".allowed: must be a list; [] allows none", id="all-names-struck-out"),
        pytest.param({"allowed": "pack"}, ".allowed: must be a list", id="no-list"),
        pytest.param({"classes": {"gpu": "best"}}, f".classes.gpu: must be one of {NAMES}", id="class"),
        pytest.param({"classes": {7: "pack"}}, ".classes.7: must be the name of a device class", id="no-class"),
        pytest.param(
            {"namespaces": {"a.b": "pack"}}, ".namespaces.a.b: must be the name of a namespace", id="no-namespace"
        ),
        pytest.param({"named": {"pack": {}}}, f".named.pack: {NEW}", id="a-shipped-name"),
        pytest.param({"named": {"Own": {}}}, f".named.Own: {NEW}", id="no-name"),
        pytest.param({"named": {"own": 7}}, ".named.own: must be keys with values", id="no-policy"),
        pytest.param(
            {"named": {"own": {"place": "best"}}}, ".named.own.place: must be one of protect, pack, spread", id="place"
        ),
        pytest.param(
            {"named": {"own": {"numa": True}}}, ".named.own.numa: must be one of ignored, preferred, strict", id="wish"
        ),
        pytest.param(
            {"named": {"own": {"pace": 1}}},
            ".named.own.pace: is no key; there are avoid, forbid, links, numa, place, prefer",
            id="unknown-in-policy",
        ),
        pytest.param({"forbid": [{"values": ["x"]}]}, ".forbid[0].attribute: is needed", id="no-attribute"),
        pytest.param(
            {"forbid": [{"attribute": "a b", "values": ["x"]}]},
            ".forbid[0].attribute: must be the name of an attribute, as example.com/name",
            id="bad-attribute",
        ),
        pytest.param(
            {"avoid": [{"attribute": "a", "values": []}]},
            ".avoid[0].values: must be a list of at least one value",
            id="no-value",
        ),
        pytest.param(
            {"avoid": [{"attribute": "a", "values": [1.1]}]},
            ".avoid[0].values: must be texts, integers, true or false; versions in quotes",
            id="a-number-that-yaml-shortens",
        ),
        pytest.param({"avoid": {"attribute": "a"}}, ".avoid: must be a list", id="trait-without-list"),
    ],
)
def test_what_is_wrong_with_policies_is_named_with_its_path(policies: object, expected: str) -> None:
    assert complaints({"policies": policies}) == (f"policies{expected}",)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    raw = {"deviceTopology": [{}], "mix": {"size": {}}, "policies": {"default": 1, "forbid": [{}]}, "more": 1}
    assert len(complaints(raw)) == 6


KEYS = st.sampled_from(["mix", "policies", "named", "own", "sizes", "classes", "forbid", "values", "attribute", 2])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(ANYTHING)
def test_no_document_breaks_the_reader(raw: object) -> None:
    with suppress(InvalidDocument):
        assert isinstance(document_of(raw), Document)
