"""Which nodes a pod was offered, remembered within bounds."""

import orjson
import pytest

from extender.model.names import NodeName, Uid
from extender.service import offered as module
from extender.service.offered import OfferedNodes
from extender.web.names import Names, plain_names

P, Q, R = map(Uid, "pqr")


def plain(*names: str) -> Names:
    found = plain_names(orjson.dumps(names))
    assert found is not None
    return found


@pytest.mark.parametrize("kind", [plain, lambda *names: names], ids=["json", "strings"])
def test_a_pod_was_offered_what_it_was_offered_last(kind: type) -> None:
    offered = OfferedNodes()
    offered.put(P, kind("n1", "n10"))
    assert [offered.has(P, NodeName(name)) for name in ("n1", "n10", "n", "0", "", "n1,n10")] == [True, True] + [
        False
    ] * 4
    assert not offered.has(Q, NodeName("n1"))
    offered.put(P, kind("n2"))
    assert not offered.has(P, NodeName("n1"))
    assert offered.has(P, NodeName("n2"))


def test_a_pod_that_was_offered_nothing_has_no_offer_any_more() -> None:
    offered = OfferedNodes()
    offered.put(P, ("n1",))
    offered.put(P, ())
    assert not offered.has(P, NodeName("n1"))
    assert len(offered) == 0


@pytest.mark.parametrize(
    ("offered", "kept"),
    [
        (OfferedNodes(most_pods=2), [False, True, True]),
        (OfferedNodes(most_bytes=2), [False, True, True]),
        (OfferedNodes(most_bytes=0), [False, False, False]),
    ],
    ids=["pods", "bytes", "none"],
)
def test_what_was_offered_longest_ago_is_forgotten_first(offered: OfferedNodes, kept: list[bool]) -> None:
    for pod in (P, Q, R):
        offered.put(pod, plain("n1", "n2"))
    assert [offered.has(pod, NodeName("n1")) for pod in (P, Q, R)] == kept


@pytest.mark.parametrize("kind", [plain, lambda *names: names], ids=["json", "strings"])
def test_what_many_pods_were_offered_of_many_nodes_is_remembered_of_each(kind: type) -> None:
    offered = OfferedNodes(most_bytes=1 << 12)
    nodes, pods = [NodeName(f"n{number}") for number in range(300)], [Uid(f"u{number}") for number in range(60)]
    for number, pod in enumerate(pods):
        offered.put(pod, kind(*nodes[number + 1 :], *nodes[:number]))
    for number, pod in enumerate(pods):
        assert [node for node in nodes if not offered.has(pod, node)] == [nodes[number]]
        assert not offered.has(pod, NodeName("another"))


def test_few_nodes_of_a_large_fleet_take_as_little_room_as_they_come_with() -> None:
    offered = OfferedNodes(most_bytes=2000)
    offered.put(P, plain(*(f"n{number}" for number in range(8000))))
    for number in range(50):
        offered.put(Uid(f"u{number}"), ("n7999",))
    assert [offered.has(pod, NodeName("n7999")) for pod in (P, Uid("u0"), Uid("u49"))] == [True] * 3


def test_to_make_room_for_a_large_offer_thousands_of_small_ones_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = list[Uid]()
    pack = OfferedNodes._pack

    def packing(offered: OfferedNodes, pod: Uid) -> None:
        packed.append(pod)
        pack(offered, pod)

    monkeypatch.setattr(OfferedNodes, "_pack", packing)
    offered = OfferedNodes(most_pods=1000, most_bytes=20_000)
    for number in range(900):
        offered.put(Uid(f"u{number}"), plain("n1"))
    for pod in (P, Q):
        offered.put(pod, plain(*(f"n{number}" for number in range(2000))))
    assert packed == [P, Q]
    assert all(offered.has(pod, NodeName("n1")) for pod in (P, Q, Uid("u0"), Uid("u899")))


def test_names_that_nobody_has_take_no_room_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NAMES", 4)
    offered = OfferedNodes(most_bytes=5)
    for pod, names in ((P, ("n1", "n2")), (Q, ("x1", "x2", "x3")), (R, ("n1", "n2"))):
        offered.put(pod, plain(*names))
    assert [offered.has(pod, NodeName("n1")) for pod in (P, R)] == [False, True]
    assert not offered.has(Q, NodeName("x1"))


def test_what_is_forgotten_takes_no_room() -> None:
    offered = OfferedNodes(most_bytes=30)
    for _ in range(10):
        offered.put(P, plain("n1", "n2"))
    offered.put(Q, plain("n1", "n2"))
    assert len(offered) == 2


def test_an_offer_that_is_forgotten_is_none() -> None:
    offered = OfferedNodes(most_bytes=15)
    offered.put(Uid("p"), ["n1"])
    offered.forget(Uid("p"))
    offered.forget(Uid("p"))
    assert not offered.has(Uid("p"), NodeName("n1"))
    assert len(offered) == 0
