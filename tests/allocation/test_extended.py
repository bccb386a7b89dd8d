"""The claim behind extended resources: what it asks for, and which container uses which request."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.extended import (
    IMPLICIT,
    Use,
    hidden_claim,
    in_words,
    served_by_classes,
    through_devices,
    unmade_name,
    wanted,
)
from extender.allocation.question import RESULTS
from extender.model.claim import DeviceClass
from extender.model.names import ClassName, NodeName, ObjectKey, Uid
from extender.model.node import Container, Node, Pod
from extender.model.quantity import parse_quantity

GPU, NIC = "ex.com/gpu", "ex.com/nic"
CLASSES = {GPU: ClassName("gpu"), NIC: ClassName("nic"), IMPLICIT + "gpu": ClassName("gpu")}
Asked = dict[str, int | str]


def container(name: str, **requests: int | str) -> Container:
    """Return a container; the first letter of its name says of which kind it is: init, sidecar or regular."""
    named = {"gpu": GPU, "nic": NIC, "implicit": IMPLICIT + "gpu"}
    amounts = sorted((named.get(key, key), parse_quantity(str(amount))) for key, amount in requests.items())
    return Container(name=name, requests=tuple(amounts), is_init=name[0] in "is", is_sidecar=name[0] == "s")


class Thousands(tuple[Container, ...]):
    """Containers of which there are too many to be looked at one after the other."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Container]:
        raise AssertionError("all containers are looked at")


def pod(*containers: Container) -> Pod:
    return Pod(key=ObjectKey("ns", "p"), uid=Uid("p"), containers=containers)


def asked_for(*containers: Container) -> dict[str, tuple[str, int]]:
    subject = pod(*containers)
    spec = hidden_claim(subject, wanted(subject, CLASSES), CLASSES).spec
    exact = [slot.exactly for slot in spec.requests if slot.exactly]
    assert [slot.name for slot in spec.requests] == sorted(item.name for item in exact)
    assert all(item.mode == "ExactCount" for item in exact)
    return {item.name: (item.class_name, item.count) for item in exact}


def used_by(*containers: Container) -> set[tuple[str, str, str]]:
    subject = pod(*containers)
    uses = hidden_claim(subject, wanted(subject, CLASSES), CLASSES).mappings
    assert len(set(uses)) == len(uses)
    return {(use.container, use.resource, use.request) for use in uses}


def name(container: int, request: int = 0) -> str:
    return f"container-{container}-request-{request}"


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ((), {}),
        ((container("r"),), {}),
        ((container("r", gpu=0),), {}),
        ((container("r", gpu=2),), {name(0): ("gpu", 2)}),
        ((container("r", cpu=1, gpu=2, memory="1Gi"),), {name(0, 1): ("gpu", 2)}),
        ((container("r", gpu=1, nic=2),), {name(0): ("gpu", 1), name(0, 1): ("nic", 2)}),
        ((container("r", gpu=1, implicit=2),), {name(0, 1): ("gpu", 1), name(0, 0): ("gpu", 2)}),
        ((container("r", gpu=1), container("r2", gpu=3)), {name(0): ("gpu", 1), name(1): ("gpu", 3)}),
        # An init container borrows from those that come later and last, and asks for what is missing.
        ((container("i", gpu=2), container("r", gpu=2)), {name(1): ("gpu", 2)}),
        ((container("i", gpu=5), container("r", gpu=2)), {name(0): ("gpu", 3), name(1): ("gpu", 2)}),
        (
            (container("i", gpu=5), container("r", gpu=2), container("r2", gpu=3)),
            {name(1): ("gpu", 2), name(2): ("gpu", 3)},
        ),
        ((container("i", gpu=1), container("r", nic=1)), {name(0): ("gpu", 1), name(1): ("nic", 1)}),
        # Of several, the largest need serves them all; the first of equals gives its name.
        (
            (container("i", gpu=2), container("i2", gpu=5), container("r", gpu=1)),
            {name(1): ("gpu", 4), name(2): ("gpu", 1)},
        ),
        ((container("i", gpu=3), container("i2", gpu=3)), {name(0): ("gpu", 3)}),
        # A sidecar lasts: it asks for itself, and lends to init containers before it alone.
        (
            (container("i", gpu=2), container("s", gpu=2), container("r", gpu=1)),
            {name(1): ("gpu", 2), name(2): ("gpu", 1)},
        ),
        ((container("s", gpu=2), container("i", gpu=2)), {name(0): ("gpu", 2), name(1): ("gpu", 2)}),
    ],
)
def test_what_containers_ask_for(containers: tuple[Container, ...], expected: dict[str, tuple[str, int]]) -> None:
    assert asked_for(*containers) == expected


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ((container("r", gpu=1, nic=2),), {("r", GPU, name(0)), ("r", NIC, name(0, 1))}),
        ((container("i", gpu=2), container("r", gpu=2)), {("i", GPU, name(1)), ("r", GPU, name(1))}),
        (
            (container("i", gpu=5), container("r", gpu=2)),
            {("i", GPU, name(1)), ("i", GPU, name(0)), ("r", GPU, name(1))},
        ),
        (
            (container("i", gpu=2), container("i2", gpu=5), container("r", gpu=1)),
            {("i", GPU, name(2)), ("i", GPU, name(1)), ("i2", GPU, name(2)), ("i2", GPU, name(1)), ("r", GPU, name(2))},
        ),
        (
            (container("i", gpu=1), container("r", gpu=1), container("r2", gpu=1)),
            {
                ("i", GPU, name(1)),
                ("r", GPU, name(1)),
                ("r2", GPU, name(2)),
            },
        ),
    ],
)
def test_who_uses_what(containers: tuple[Container, ...], expected: set[tuple[str, str, str]]) -> None:
    assert used_by(*containers) == expected


@pytest.mark.parametrize(("count", "asked"), [(RESULTS + 1, ("gpu",)), (RESULTS, ("gpu", "nic"))])
def test_of_more_than_a_claim_can_be_given_no_init_container_borrows(count: int, asked: tuple[str, ...]) -> None:
    lasting = [container(f"r{index}", **dict.fromkeys(asked, 1)) for index in range(count)]
    passing = [container(f"i{index}", **dict.fromkeys(asked, count)) for index in range(9)]
    users = {name for name, resource, _ in used_by(*passing, *lasting) if resource == f"ex.com/{asked[-1]}"}
    assert users == {item.name for item in lasting}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("claim p-extended-resources, request container-0-request-1 needs 2", "ex.com/nic of container r needs 2"),
        ("claim p-extended-resources, request container-1-request-0: field", "ex.com/gpu of container r2: field"),
        (
            "claim p-extended-resources, requests container-0-request-0 and container-1-request-0 need 2",
            "ex.com/gpu of container r and ex.com/gpu of container r2 need 2",
        ),
        (
            "claim p-extended-resources, requests container-0-request-0, container-0-request-1 and other need 3",
            "ex.com/gpu of container r, ex.com/nic of container r and other need 3",
        ),
        (
            "claims a and p-extended-resources: no set of",
            "claims a and the claim for extended resources: no set of",
        ),
        (
            "other errors, such as claim p-extended-resources is",
            "other errors, such as the claim for extended resources is",
        ),
        (
            "claim p-extended-resources, request other needs 2",
            "the claim for extended resources, request other needs 2",
        ),
        (
            "claim p-extended-resources, request container-9-request-0 needs 2",
            "the claim for extended resources needs 2",
        ),
        (
            f"claim p-extended-resources, request container-{'1' * 5000}-request-0 needs 2",
            f"the claim for extended resources, request container-{'1' * 5000}-request-0 needs 2",
        ),
        ("claim p-extended-resources-x2f4k is gone", "claim p-extended-resources-x2f4k is gone"),
        ("claim p-extended-resources.a, request r needs 2", "claim p-extended-resources.a, request r needs 2"),
        ("claim the-p-extended-resources, request r needs 2", "claim the-p-extended-resources, request r needs 2"),
        ("claim a, request container-0-request-1 needs 2", "claim a, request container-0-request-1 needs 2"),
    ],
)
def test_a_claim_that_nobody_wrote_is_told_as_what_the_pod_asks_for(text: str, expected: str) -> None:
    assert in_words(text, pod(container("r", gpu=1, nic=2), container("r2", gpu=1))) == expected


def test_of_thousands_of_containers_only_those_are_looked_at_that_are_told_of() -> None:
    subject = replace(pod(), containers=Thousands(container(f"i{place}", gpu=1) for place in range(9)))
    text = "claim p-extended-resources, request container-7-request-0 needs 2"
    assert in_words(text, subject) == "ex.com/gpu of container i7 needs 2"


kinds = st.sampled_from(["i", "s", "r"])
drawn = st.lists(st.tuples(kinds, st.integers(0, 4), st.integers(0, 3)), max_size=6)


@given(drawn)
def test_every_container_can_use_as_much_as_it_asks_for(told: list[tuple[str, int, int]]) -> None:
    told = sorted(told, key=lambda item: item[0] == "r")
    containers = [container(f"{kind}{place}", gpu=gpu, nic=nic) for place, (kind, gpu, nic) in enumerate(told)]
    subject = pod(*containers)
    hidden = hidden_claim(subject, wanted(subject, CLASSES), CLASSES)
    counts = {slot.name: slot.exactly.count for slot in hidden.spec.requests if slot.exactly}
    for item in containers:
        for resource, amount in item.requests:
            used = [use.request for use in hidden.mappings if (use.container, use.resource) == (item.name, resource)]
            assert sum(counts[request] for request in set(used)) >= amount.nanos // 10**9
            assert bool(used) is (amount.nanos > 0)
    asking = {use.request: set[str]() for use in hidden.mappings}
    for use in hidden.mappings:
        asking[use.request].add(f"{use.resource} of container {use.container}")
    for request, words in asking.items():
        assert in_words(f"claim {unmade_name(subject)}, request {request}", subject) in words
    lasting = [use for use in hidden.mappings if use.container[0] != "i"]
    assert len({use.request for use in lasting}) == len(lasting), "containers that run together share nothing"


def device_class(name: str, resource: str | None, created: str) -> DeviceClass:
    return DeviceClass(name=ClassName(name), extended_resource=resource, created=created)


@given(st.permutations([("b", "2026-01-01"), ("a", "2026-01-01"), ("c", "2025-01-01")]))
def test_the_newest_class_serves_a_resource_and_of_equals_the_first_by_name(told: list[tuple[str, str]]) -> None:
    served = served_by_classes(device_class(name, GPU, created) for name, created in told)
    assert served == {GPU: "a", IMPLICIT + "a": "a", IMPLICIT + "b": "b", IMPLICIT + "c": "c"}


def test_a_class_without_a_resource_is_asked_for_by_its_own_name() -> None:
    assert served_by_classes([device_class("a", None, "")]) == {IMPLICIT + "a": "a"}


def test_only_what_classes_stand_behind_is_wanted() -> None:
    subject = pod(container("r", gpu=1, nic=0, cpu=4), container("i", implicit=1))
    assert wanted(subject, CLASSES) == (IMPLICIT + "gpu", GPU)
    assert wanted(subject, {}) == ()


@pytest.mark.parametrize(("allocatable", "expected"), [(None, (GPU,)), ("0", (GPU,)), ("1", ()), ("500m", ())])
def test_a_device_plugin_serves_all_of_a_resource_or_nothing(
    allocatable: str | None, expected: tuple[str, ...]
) -> None:
    amounts = ((GPU, parse_quantity(allocatable)),) if allocatable else ()
    assert through_devices((GPU,), Node(name=NodeName("n"), allocatable=amounts)) == expected


def test_only_the_resources_of_the_node_are_in_its_claim() -> None:
    subject = pod(container("r", gpu=1, nic=2))
    hidden = hidden_claim(subject, [NIC], CLASSES)
    assert [slot.name for slot in hidden.spec.requests] == [name(0, 1)]
    assert hidden.mappings == (Use("r", NIC, name(0, 1)),)
