"""Trips are remembered for the pods that were sent anywhere last."""

from extender.model.names import NodeName, Uid
from extender.scheduling import trips
from extender.scheduling.trips import Travellers

N1, N2 = NodeName("n1"), NodeName("n2")


def test_only_where_the_scheduler_was_told_a_pod_comes_back_from_a_node() -> None:
    known = Travellers()
    known.of(Uid("p")).begin(N1, is_answer=False)
    known.end(Uid("p"))
    assert not known.of(Uid("p")).came_back
    assert known.of(Uid("p")).vain == {N1}
    known.of(Uid("p")).begin(N2, is_answer=True)
    assert known.of(Uid("p")).vain == set()
    known.end(Uid("p"))
    known.end(Uid("p"))
    assert known.of(Uid("p")).vain == {N2}


def test_of_too_many_pods_the_first_are_forgotten() -> None:
    known = Travellers()
    for number in range(trips.REMEMBERED + 1):
        known.of(Uid(f"p{number}")).steered_at = 1.0
    assert known.steered_at(Uid("p0")) is None
    assert known.steered_at(Uid("p1")) == 1.0
