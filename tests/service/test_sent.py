"""What is promised of nodes is that of those who are on their way, once each."""

from dataclasses import replace

from extender.model.names import Uid
from extender.model.node import Pod
from extender.model.terms import Terms
from extender.service.sent import Sent, Travelling
from extender.state.belief import Belief
from tests.scheduling.cast import belief_of, chooser_of, claim, gpus, node, pod
from tests.scheduling.stage import N1

PODS = tuple(replace(pod(name, name), terms=Terms(amounts=(("cpu", 1000),))) for name in "abc")


def believing() -> Belief:
    return belief_of(node("n1", {"cpu": 8}), gpus("n1", 3), *(claim(name) for name in "abc"), *PODS)


def sent_of(belief: Belief, subject: Pod) -> Sent:
    return Sent(subject, N1, chooser_of(belief).world(N1))


def cpu(travelling: Travelling, belief: Belief) -> int:
    return int(travelling.promised.of("cpu", belief.cluster.snapshot.layout)[0])


def test_whoever_is_sent_again_or_answered_again_counts_once_until_that_is_over() -> None:
    belief, travelling = believing(), Travelling()
    for _ in range(2):
        travelling.put(sent_of(belief, PODS[0]))
        travelling.answered(PODS[1], N1)
        assert cpu(travelling, belief) == 2000
    for _ in range(2):
        travelling.drop(PODS[0].uid)
        assert cpu(travelling, belief) == 1000
        travelling.over(PODS[2].uid)
    travelling.over(PODS[1].uid)
    assert cpu(travelling, belief) == 0


def test_of_those_who_were_answered_each_is_looked_at_in_its_turn() -> None:
    belief, travelling, looked = believing(), Travelling(), list[Uid]()
    for each in PODS:
        travelling.answered(each, N1)

    def is_on_its_way(uid: Uid) -> bool:
        looked.append(uid)
        return uid != PODS[1].uid

    for _ in range(5):
        travelling.look(1, is_on_its_way)
    assert looked == [PODS[number].uid for number in (0, 1, 2, 0, 2)]
    assert cpu(travelling, belief) == 2000


def test_who_shows_a_pod_without_its_version_has_not_heard_of_its_node() -> None:
    sent, nameless = sent_of(believing(), PODS[0]), replace(PODS[0], resource_version="")
    assert not sent.is_known_by(nameless)
    assert replace(sent, version="7").is_known_by(replace(nameless, resource_version="7"))
    assert sent.is_known_by(replace(nameless, nominated_node=N1))
