"""For whom others go is remembered as long as it is certain, and no longer than they may take."""

from dataclasses import replace

import pytest

from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.service.evictions import LASTING_S, PATIENCE_S, SHOWN_S, Evictions
from tests.scheduling.cast import pod

N1, N2 = NodeName("n1"), NodeName("n2")
P, A, B = pod("p", priority=5), Uid("a"), Uid("b")


class Scene:
    """Others go for P, on n1 or n2."""

    def __init__(self, *nodes: NodeName) -> None:
        self.now = 0.0
        self.evictions = Evictions(lambda: self.now)
        self.evictions.put(P.uid, {node: (victim,) for node, victim in ((N1, A), (N2, B)) if node in (nodes or (N1,))})

    def ahead(self, of: Pod, shown: Pod = P) -> list[NodeName]:
        return list(self.evictions.ahead(of, {P.uid: shown}.get))


def test_who_fits_on_some_of_the_nodes_was_not_refused_on_all() -> None:
    scene = Scene(N1, N2)
    scene.evictions.refused(P.uid, ("n1",))
    assert scene.evictions.was_refused(P.uid, (N1,))
    assert not scene.evictions.was_refused(P.uid, (N1, N2))


def test_of_the_thousands_of_nodes_of_a_request_those_are_remembered_where_others_could_go() -> None:
    scene = Scene(N1, N2)
    scene.evictions.refused(P.uid, ("n1", "n3", "n4"))
    assert scene.evictions._known[P.uid].refused == {N1}


def test_a_pod_is_not_ahead_of_itself_and_of_no_more_important_one() -> None:
    scene = Scene()
    assert scene.ahead(P) == []
    assert scene.ahead(pod("equal", priority=5)) == [N1]
    assert scene.ahead(pod("lesser", priority=4)) == [N1]
    assert scene.ahead(pod("higher", priority=6)) == []


def test_where_others_go_is_certain_for_a_moment_or_while_it_is_nominated() -> None:
    other, both, scene = pod("other"), Scene(N1, N2), Scene()
    assert both.ahead(other) == []
    assert both.ahead(other, replace(P, nominated_node=N2)) == [N2]
    scene.now = SHOWN_S
    assert scene.ahead(other) == [N1]
    scene.now = SHOWN_S + 0.1
    assert scene.ahead(other) == []
    assert scene.ahead(other, replace(P, nominated_node=N1)) == [N1]


@pytest.mark.parametrize(
    ("at", "there", "nominated", "found"),
    [
        pytest.param(LASTING_S, (A, N1), N1, N1, id="there still"),
        pytest.param(LASTING_S + 1, (A, N1), N1, None, id="stuck"),
        pytest.param(0.0, (A, N2), N1, None, id="elsewhere"),
        pytest.param(0.0, (B, N1), N1, None, id="somebody else"),
        pytest.param(0.0, (A, N1), None, None, id="on either node"),
        pytest.param(0.0, (A, N1), NodeName("n3"), None, id="for another node"),
    ],
)
def test_those_are_going_who_are_there_still_and_may_yet_end(
    at: float, there: tuple[Uid, NodeName], nominated: NodeName | None, found: NodeName | None
) -> None:
    scene = Scene(N1, N2)
    scene.now = at
    subject = replace(P, nominated_node=nominated)
    assert scene.evictions.ending(subject, lambda uid, node: (uid, node) == there) == found


def test_devices_are_waited_for_from_the_first_time_on() -> None:
    scene = Scene()
    assert scene.evictions.waits(P.uid) == PATIENCE_S
    scene.now = PATIENCE_S - 0.1
    assert scene.evictions.waits(P.uid) == PATIENCE_S
    scene.now = PATIENCE_S
    assert scene.evictions.waits(P.uid) is None


def test_of_who_waits_no_longer_nothing_is_remembered() -> None:
    scene = Scene()
    scene.evictions.forget(P.uid)
    assert scene.evictions.victims(P.uid, N1) is None
    assert scene.ahead(pod("other")) == []


def test_who_is_nominated_elsewhere_than_others_go_for_it_has_nobody_gone() -> None:
    scene, elsewhere = Scene(N1, N2), replace(P, nominated_node=NodeName("n3"))
    assert scene.evictions.done(elsewhere, ()) == {}
    assert scene.evictions.over(elsewhere, ("n3",), lambda _uid: None) == []
