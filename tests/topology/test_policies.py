"""Which policy a claim is placed by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.model.claim import ClaimSpec, DeviceRequest, RequestSlot, ResourceClaim
from extender.model.names import ClassName, ObjectKey, Uid
from extender.topology.policies import ANNOTATION, SHIPPED, NotAllowed, Policies
from extender.topology.policy import Placing, Policy, Trait

RESERVED, FLAKY = Trait("example.com/reserved", ("true",)), Trait("example.com/flaky", ("true",))
OLD = Trait("model", ("K80",))
POLICIES = Policies(
    every=(*SHIPPED, Policy(name="cheap", placing=Placing.PACK, avoid=(OLD,)), Policy(name="own", forbid=(OLD,))),
    allowed=("protect", "linked", "cheap"),
    classes=(("gpu.nvidia.com", "spread"),),
    namespaces=(("team-a", "pack"),),
    avoid=(FLAKY,),
    forbid=(RESERVED,),
)


def claim(*classes: str, namespace: str = "team-b", named: str | None = None) -> ResourceClaim:
    slots = [
        RequestSlot(name=f"r{index}", exactly=DeviceRequest(name=f"r{index}", class_name=ClassName(name)))
        for index, name in enumerate(classes)
    ]
    annotations = () if named is None else ((ANNOTATION, named),)
    spec = ClaimSpec(requests=tuple(slots))
    return ResourceClaim(key=ObjectKey(namespace, "c"), uid=Uid("u"), spec=spec, annotations=annotations)


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        pytest.param(claim("other"), "protect", id="the default"),
        pytest.param(claim(), "protect", id="no requests"),
        pytest.param(claim("gpu.nvidia.com"), "spread", id="the class"),
        pytest.param(claim("other", "gpu.nvidia.com"), "protect", id="the class of the first request"),
        pytest.param(claim("gpu.nvidia.com", namespace="team-a"), "pack", id="the namespace before the class"),
        pytest.param(
            claim("gpu.nvidia.com", namespace="team-a", named="cheap"), "cheap", id="the annotation before all"
        ),
    ],
)
def test_who_says_which_policy(asked: ResourceClaim, name: str) -> None:
    policy = POLICIES.policy_for(asked)
    assert isinstance(policy, Policy)
    assert policy.name == name


def test_the_first_alternative_speaks_for_a_prioritised_list() -> None:
    alternatives = [DeviceRequest(name=name, class_name=ClassName(name)) for name in ("gpu.nvidia.com", "other")]
    spec = ClaimSpec(requests=(RequestSlot(name="r", first_available=tuple(alternatives)),))
    policy = POLICIES.policy_for(ResourceClaim(key=ObjectKey("n", "c"), uid=Uid("u"), spec=spec))
    assert policy == POLICIES.policy("spread")


@pytest.mark.parametrize("named", ["pack", "own", "Protect", "", "nobody"])
def test_what_is_unknown_or_not_allowed_is_refused_with_what_is(named: str) -> None:
    assert POLICIES.policy_for(claim(named=named)) == NotAllowed(
        f"annotation dra-extender.x-k8s.io/policy of claim team-b/c names {named!r}; allowed are protect, linked, cheap"
    )


def test_an_endless_name_is_cut() -> None:
    refused = POLICIES.policy_for(claim(named="x" * 100_000))
    assert isinstance(refused, NotAllowed)
    assert len(refused.text) < 300


def test_where_nothing_may_be_named_the_text_says_so() -> None:
    refused = Policies(allowed=()).policy_for(claim(named="protect"))
    assert isinstance(refused, NotAllowed)
    assert refused.text.endswith("allowed are none")


@given(st.sampled_from([None, *(policy.name for policy in POLICIES.every), "else"]), st.sampled_from(["team-a", "b"]))
def test_no_policy_takes_what_is_forbidden_everywhere(named: str | None, namespace: str) -> None:
    policy = POLICIES.policy_for(claim("gpu.nvidia.com", namespace=namespace, named=named))
    assert isinstance(policy, NotAllowed) or (RESERVED in policy.forbid and FLAKY in policy.avoid)


def test_a_policy_keeps_what_it_avoids_and_forbids_itself() -> None:
    assert POLICIES.policy("cheap").avoid == (FLAKY, OLD)
    assert POLICIES.policy("own").forbid == (RESERVED, OLD)
