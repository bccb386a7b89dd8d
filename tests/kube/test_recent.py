"""What two show is read once, and only where it is the same version of the same object."""

import pytest

from extender.kube.recent import BYTES, KEPT, LONGEST, Recent
from extender.model.claim import ResourceClaim
from extender.model.names import ObjectKey, Uid
from extender.model.node import Node, Pod
from extender.model.parse import parse_claim, parse_node
from extender.model.problem import Problem
from tests.kube_objects import claim

CLAIM = {**claim("c"), "metadata": {"name": "c", "namespace": "default", "uid": "u", "resourceVersion": "7"}}


class Reads:
    """Counts how often an object was read."""

    def __init__(self, raw: object) -> None:
        self.raw, self.count = raw, 0

    def __call__(self) -> ResourceClaim | Problem:
        self.count += 1
        return parse_claim(self.raw)


def test_the_second_to_be_told_is_spared_the_reading() -> None:
    recent, reads = Recent(), Reads(CLAIM)
    assert recent.read(ResourceClaim, CLAIM, reads) == recent.read(ResourceClaim, CLAIM, reads) == parse_claim(CLAIM)
    assert reads.count == 1


@pytest.mark.parametrize(
    ("changed", "count"), [({"resourceVersion": "8"}, 2), ({"uid": "v"}, 2), ({"uid": ""}, 2), ({"uid": None}, 2)]
)
def test_another_version_or_object_is_read(changed: dict[str, object], count: int) -> None:
    recent, reads = Recent(), Reads(CLAIM)
    recent.read(ResourceClaim, CLAIM, reads)
    metadata = {"name": "c", "namespace": "default", "uid": "u", "resourceVersion": "7", **changed}
    recent.read(ResourceClaim, {**CLAIM, "metadata": metadata}, reads)
    assert reads.count == count


def test_a_pod_is_no_claim_whatever_its_identity() -> None:
    recent, reads = Recent(), Reads(CLAIM)
    recent.put(Pod(key=ObjectKey("default", "c"), uid=Uid("u"), resource_version="7"))
    assert isinstance(recent.read(ResourceClaim, CLAIM, reads), ResourceClaim)


def test_what_cannot_be_read_and_what_is_told_once_is_not_kept() -> None:
    recent, broken = Recent(), {**CLAIM, "status": 7}
    reads = Reads(broken)
    for _ in range(2):
        assert isinstance(recent.read(ResourceClaim, broken, reads), Problem)
    assert reads.count == 2
    node = {"metadata": {"name": "n", "uid": "u", "resourceVersion": "7"}}
    assert recent.read(Node, node, lambda: parse_node(node)) is not recent.read(Node, node, lambda: parse_node(node))


def test_what_nobody_comes_for_is_forgotten() -> None:
    recent, reads = Recent(), Reads(CLAIM)
    recent.read(ResourceClaim, CLAIM, reads)
    for number in range(KEPT):
        recent.put(Pod(key=ObjectKey("default", "p"), uid=Uid(f"p{number}"), resource_version="1"))
    recent.read(ResourceClaim, CLAIM, reads)
    assert reads.count == 2


@pytest.mark.parametrize(("length", "kept"), [(0, KEPT), (LONGEST, BYTES // LONGEST), (LONGEST + 1, 0)])
def test_no_more_is_kept_than_has_room_however_long_it_is(length: int, kept: int) -> None:
    recent, count = Recent(), KEPT + 1
    raw = [{**CLAIM, "metadata": {"name": "c", "uid": "u", "resourceVersion": str(at)}} for at in range(1, count + 1)]
    for _ in range(2):
        for each in raw:
            recent.read(ResourceClaim, each, Reads(each), length)
    reads = [Reads(each) for each in reversed(raw)]
    for read in reads:
        recent.read(ResourceClaim, read.raw, read, LONGEST + 1)
    assert sum(not read.count for read in reads) == kept


def test_after_a_gap_everything_is_read() -> None:
    recent, reads = Recent(), Reads(CLAIM)
    recent.read(ResourceClaim, CLAIM, reads)
    recent.forget()
    recent.read(ResourceClaim, CLAIM, reads)
    assert reads.count == 2


def test_what_is_forgotten_or_put_again_takes_no_room() -> None:
    recent, reads = Recent(), Reads(CLAIM)
    noun = parse_claim(CLAIM)
    assert isinstance(noun, ResourceClaim)
    for is_forgotten in [True] * (2 * BYTES // LONGEST) + [False] * (2 * BYTES // LONGEST):
        recent.put(noun, LONGEST)
        if is_forgotten:
            recent.forget()
    recent.read(ResourceClaim, CLAIM, reads)
    assert not reads.count
