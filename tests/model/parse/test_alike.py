"""What is written alike is read once, and nothing is taken for what it is not."""

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.model.footprint import Footprint
from extender.model.node import Pod
from extender.model.parse import parse_claim, parse_footprint, parse_object, parse_pod
from extender.model.parse.alike import LONGEST, alike
from extender.model.parse.fields import Fields, Malformed
from tests.allocation.cel.expressions import seeded
from tests.model.parse.damage import damaged
from tests.model.parse.exemplars import CLAIM, EVERY, POD
from tests.model.parse.reading import changed, read_claim


@pytest.fixture(autouse=True, scope="module")
def _long_numbers() -> Iterator[None]:
    """Have any number written: what is damaged may have one of thousands of digits where anything is let in."""
    digits = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    yield
    sys.set_int_max_str_digits(digits)


class NoMemory:
    """Writes nothing, so that nothing is remembered."""

    @staticmethod
    def dumps(*_: object) -> bytes:
        raise ValueError


def counted(most: int = 8) -> tuple[list[Any], Any]:
    """Return what was read of a reader that remembers, and the reader."""
    read: list[Any] = []

    def reader(fields: Fields, version: str) -> str:
        read.append(fields.raw)
        return fields.required("name") + version

    return read, alike(reader, most)


@settings(max_examples=500)
@given(st.integers(0, 1 << 40))
def test_what_was_read_before_makes_no_difference(seed: int) -> None:
    raw = damaged(seeded(seed))
    for whole in EVERY.values():
        parse_object(whole)
    remembered = parse_object(raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("extender.model.parse.alike.marshal", NoMemory)
        assert repr(parse_object(raw)) == repr(remembered)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"volumes": [{"name": "v", "csi": {}}]}, {"volumes": [["name", "csi"]]}),
        ({"volumes": [{"n": {}}]}, {"volumes": ["n"]}),
        ({"containers": []}, {"containers": {}}),
        ({"containers": []}, {"containers": ""}),
        ({"containers": [{"name": "c", "ports": [{"hostPort": 1}]}]}, {"containers": [{"name": "c", "ports": [1]}]}),
        ({"tolerations": [{"tolerationSeconds": 1}]}, {"tolerations": [{"tolerationSeconds": True}]}),
        ({"tolerations": [{"tolerationSeconds": 1}]}, {"tolerations": [{"tolerationSeconds": 1.0}]}),
    ],
)
def test_what_looks_alike_and_is_not_is_read_anew(before: Any, after: Any) -> None:
    read, then = (parse_object({**POD, "spec": {**POD["spec"], **spec}}) for spec in (before, after))
    assert (type(read).__name__, type(then).__name__) == ("Pod", "Problem")


def test_what_is_written_alike_is_the_same_object() -> None:
    first, second = (read_claim(changed(CLAIM, "metadata", "resourceVersion", value=value)) for value in "12")
    assert first.resource_version != second.resource_version
    assert first.spec is second.spec
    assert first.allocation is second.allocation
    assert first.owners is second.owners


def test_the_version_of_the_api_makes_a_difference() -> None:
    _, reader = counted()
    assert (reader(Fields({"name": "x"}, ""), "v1"), reader(Fields({"name": "x"}, ""), "v2")) == ("xv1", "xv2")


def test_no_more_than_the_most_is_remembered() -> None:
    read, reader = counted(most=2)
    for name in "aabbca":
        reader(Fields({"name": name}, ""))
    assert [raw["name"] for raw in read] == ["a", "b", "c", "a"]


def test_what_is_very_long_is_not_remembered() -> None:
    read, reader = counted()
    for _ in range(2):
        reader(Fields({"name": "x" * LONGEST}, ""))
    assert len(read) == 2


def test_what_cannot_be_read_is_complained_about_each_time_where_it_stands() -> None:
    _, reader = counted()
    for path in ("here", "there"):
        with pytest.raises(Malformed, match=f"{path}.name: is required"):
            reader(Fields({}, path))


def _affinity(name: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": f"{name}-{number}", "operator": "Exists"}]} for number in range(200)]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"containers": [], "affinity": {"nodeAffinity": required}}


def _containers(name: str) -> dict[str, Any]:
    resources = {"requests": {name: "1"}}
    return {"containers": [{"name": f"c{number}", "resources": resources} for number in range(1000)]}


def _requests(name: str) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": {"requests": {f"{name}-{at}": "1" for at in range(1000)}}}]}


def _names(name: str) -> dict[str, Any]:
    requests = {f"{name}-{at}".ljust(300, "x"): "1" for at in range(40)}
    return {"containers": [{"name": "c", "resources": {"requests": requests}}]}


@pytest.mark.parametrize("spec_of", [_affinity, _containers, _requests, _names])
def test_of_large_pods_that_are_gone_nothing_is_left(spec_of: Callable[[str], dict[str, Any]]) -> None:
    def read_from(first: int) -> None:
        for number in range(first, first + 50):
            metadata = {"namespace": "ns", "name": f"p{number}", "uid": f"u{number}"}
            raw = {"metadata": metadata, "spec": {"nodeName": "n1", **spec_of(f"x{number}")}}
            assert isinstance(parse_pod(raw), Pod)
            assert isinstance(parse_footprint(raw), Footprint)

    read_from(0)
    gc.collect()
    tracemalloc.start()
    read_from(50)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 50 * 4000


LONG: dict[str, Callable[[str], dict[str, Any]]] = {
    "kind of an owner": lambda text: {"metadata": _owned(kind=text, uid="u")},
    "uid of an owner": lambda text: {"metadata": _owned(kind="Pod", uid=text)},
    "resource of a user": lambda text: {"status": {"reservedFor": [{"resource": text, "name": "n", "uid": "u"}]}},
    "scheduler": lambda text: {"spec": {"schedulerName": text, "resourceClaims": [{"resourceClaimName": "c"}]}},
    "values of an affinity": lambda text: {"spec": {"affinity": {"nodeAffinity": _required(text)}}},
}


def _owned(**owner: str) -> dict[str, Any]:
    return {"ownerReferences": [{**owner, "controller": True}]}


def _required(text: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "k", "operator": "NotIn", "values": [text]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}


@pytest.mark.parametrize("what", LONG)
def test_of_long_names_that_are_gone_nothing_is_left(what: str) -> None:
    def read_from(first: int) -> None:
        for number in range(first, first + 20):
            part = LONG[what](f"{number} {what}".ljust(50_000, "x"))
            metadata = {"namespace": "ns", "name": "p", "uid": "u", **part.get("metadata", {})}
            pod = {"metadata": metadata, "spec": {"nodeName": "n1", **part.get("spec", {})}}
            parse_pod(pod)
            parse_footprint(pod)
            parse_claim({"metadata": metadata, "status": part.get("status")})

    read_from(0)
    gc.collect()
    tracemalloc.start()
    read_from(20)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 50_000
