"""R2, R3: of two claims that hold one device the one that was shown first keeps it."""

from extender.model.change import Listed
from extender.model.claim import ResourceClaim
from extender.scheduling.binding import Bound, NotBound
from extender.scheduling.planner import Offer, Rejection
from extender.scheduling.remedy import freed, unusable
from extender.scheduling.steps import AwaitShown, BindPod, Step, Unknown
from extender.scheduling.vocabulary import Word
from tests.scheduling.cast import claim, device, held, planner_of, pod
from tests.scheduling.server import Server, allocation_of
from tests.scheduling.stage import N1, N2, POD, bind, world_of


def intruded(server: Server, _step: Step) -> None:
    """Have somebody else allocate the same device just before us."""
    server.put(held(claim("x"), device("n1", 0), device("n1", 1)))


def test_r2_the_claim_that_the_watch_shows_second_is_rolled_back_before_its_pod_is_bound() -> None:
    world = world_of(claim("a"))
    world.fault, world.at = intruded, 0
    result = bind(world)
    assert isinstance(result, NotBound)
    assert "an earlier claim holds gpu.example.com/n1/d" in result.message
    assert BindPod not in [type(step) for step in world.taken]
    assert allocation_of(world.server, "a") is None
    assert allocation_of(world.server, "x") is not None


def test_r2_the_claim_that_the_watch_shows_first_keeps_its_device() -> None:
    world = world_of(claim("a"))

    def fault(server: Server, _step: Step) -> None:
        server.put(held(claim("x"), device("n1", 0), device("n1", 1)))

    world.fault, world.at = fault, 1
    assert isinstance(bind(world), Bound)


def test_r2_nothing_is_bound_before_the_watch_has_shown_the_write() -> None:
    world = world_of(claim("a"))
    world.fault, world.at = (lambda _server, _step: Unknown("late")), 1
    assert isinstance(bind(world), NotBound)
    assert isinstance(world.taken[1], AwaitShown)
    assert allocation_of(world.server, "a") is None


def test_r3_an_allocated_claim_whose_devices_an_earlier_one_holds_is_refused_by_filter_and_by_bind() -> None:
    first, second = held(claim("x"), device("n1", 0)), held(claim("a", version=2), device("n1", 0))
    world = world_of(first, second)
    plan = planner_of(world.belief).plan(POD, [N1, N2], 0.0)
    assert isinstance(plan, Rejection)
    assert plan.word is Word.CLAIM_CONTESTED
    assert isinstance(bind(world), NotBound)
    assert world.taken == []


def test_r3_of_those_that_were_listed_together_the_older_version_counts_as_earlier() -> None:
    world = world_of(held(claim("a"), device("n1", 0)), held(claim("x"), device("n1", 0)))
    claims = tuple(reversed(world.server.claims.values()))
    world.belief.apply(Listed(ResourceClaim, claims))
    assert isinstance(planner_of(world.belief).plan(POD, [N1, N2], 0.0), Offer)


def test_r3_only_what_is_contested_is_freed() -> None:
    both = pod("p", "a", "c")
    kept = held(claim("c"), device("n1", 1), by=both)
    world = world_of(held(claim("x"), device("n1", 0)), held(claim("a"), device("n1", 0), by=both), kept, subject=both)
    assert [item.key.name for item in unusable(both, world.belief)] == ["a"]
    assert world.carry(freed(both, world.belief))
    assert allocation_of(world.server, "a") is None
    assert allocation_of(world.server, "c") is not None
    assert isinstance(bind(world, subject=both), NotBound | Bound)
