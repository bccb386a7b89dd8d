import pytest

from extender.allocation.preference import Tightest
from extender.topology.partitioned import Partitioned
from extender.topology.together import Together
from loadtests.quality.hopper import grounds
from loadtests.quality.together import ASKED, NICS, Run, Site, State, Tally, fullest, jointly


def test_what_a_pod_could_have_had_on_one_root_is_counted_by_what_was_free() -> None:
    tally = Tally()
    tally.count([], State(gpus=0b0111, nics=0b1110), 2, State(0b0101, 0b1100, (8, 0)))
    assert (tally.gpus, tally.on_root, tally.could_be_on_root, tally.on_numa, tally.beside_cpus) == (2, 1, 2, 2, 2)


def test_a_nic_is_taken_needlessly_where_on_some_node_another_has_no_free_gpu() -> None:
    whole, spare, tally = State(), State(gpus=0b10), Tally()
    tally.count([whole], whole, NICS, State(0, 1, (0, 0)))
    assert (tally.stranded, tally.needlessly) == (1, 0)
    tally.count([whole, spare], whole, NICS, State(0, 1, (0, 0)))
    assert (tally.stranded, tally.needlessly) == (2, 1)


@pytest.mark.parametrize("what", ASKED)
def test_every_pod_fits_on_an_empty_node(what: int | str) -> None:
    offer = Site(None).offer(State(), what)
    assert offer
    assert State().without(offer.given).beside(offer.given) == State()


def test_choosing_together_is_better_than_one_request_after_another() -> None:
    ours, plain = Site(Together(grounds(), Tightest(), Partitioned())), Site(Tightest())
    run = Run(nodes=2, load=0.9, warm_up=50, arrivals=500)
    together, apart = run.tally(jointly(ours), seeds=(3,)), run.tally(fullest(plain), seeds=(3,))
    assert together.on_root >= 0.95 * together.could_be_on_root
    assert together.on_numa >= 0.95 * together.gpus
    assert together.needlessly == 0
    assert apart.on_root / apart.could_be_on_root < together.on_root / together.could_be_on_root
