"""Whatever comes in between: no device in two claims, nothing lost, nothing for ever; and bugs would be noticed."""

from typing import Final

import pytest

from tests.interleavings import cluster, play
from tests.interleavings.planted import (
    AHEAD,
    BUGS,
    CONTENDED,
    EVICTING,
    FOLLOWED,
    LEFT,
    LINGERING,
    PARTED,
    RESTARTED,
    RULED,
    STRICT,
    TIED,
    VARIED,
    Bug,
    planted,
)
from tests.interleavings.play import Broken, played

STEPS = 10_000
# So many runs are looked through for a bug, at most: 400,000 steps. What takes coincidences shows in one of seven, and
# what one policy is given of another's in one of some twenty.
RUNS = 40
# In which kind of play which bugs show.
PLACES: Final[tuple[tuple[dict[str, bool], dict[str, Bug]], ...]] = (
    ({}, BUGS),
    ({}, RESTARTED),
    ({"nominates": True}, AHEAD),
    ({"is_varied": True}, VARIED),
    ({"is_varied": True}, LEFT),
    ({"is_contended": True}, CONTENDED),
    ({"is_contended": True, "is_varied": True}, FOLLOWED),
    ({"is_ruled": True}, RULED),
    ({"is_tied": True}, TIED),
    ({"is_strict": True}, STRICT),
    ({"is_evicting": True}, EVICTING),
    ({"is_lingering": True}, LINGERING),
)


def long_test(
    first: int = 1,
    *,
    nominates: bool = False,
    is_varied: bool = False,
    is_contended: bool = False,
    is_ruled: bool = False,
    is_tied: bool = False,
    is_strict: bool = False,
    is_evicting: bool = False,
    is_lingering: bool = False,
) -> None:
    kinds = {"nominates": nominates, "is_varied": is_varied, "is_contended": is_contended}
    kinds |= {"is_ruled": is_ruled, "is_tied": is_tied, "is_strict": is_strict}
    kinds |= {"is_evicting": is_evicting, "is_lingering": is_lingering}
    for seed in (*range(first, RUNS + 1), *range(1, first)):
        played(seed, STEPS, **kinds)


@pytest.mark.parametrize(("seed", "nominates"), [(1, False), (2, False), (3, True)])
def test_nothing_is_lost_whatever_comes_in_between(seed: int, *, nominates: bool) -> None:
    happened = played(seed, STEPS, nominates=nominates)
    assert happened["bindings ended"] > 100
    names = "crash", "ambush", "hand over", "cleared", "outlived", "land", "stumble", "scheduler restarts", "placement"
    assert min(happened[name] for name in names) > 0
    # Those that have waited in vain are nominated in either case.
    assert happened["nominated"] > (100 if nominates else 0)


def test_nothing_is_lost_where_devices_are_shared_cut_up_or_made_ready_and_nodes_come_and_go() -> None:
    happened = played(4, STEPS, nominates=True, is_varied=True)
    assert happened["bindings ended"] > 100
    assert min(happened[name] for name in ("report", "garble", "node", "evict", "long wait", "waits for volumes")) > 0
    assert happened["makes room knowingly"] > 0


def test_of_two_replicas_one_leads_whichever_is_stopped_cut_off_or_ended() -> None:
    happened = played(5, STEPS, is_contended=True)
    assert happened["bindings ended"] > 100
    assert happened["taken over"] > 10
    names = "stop", "go on", "cut off", "scheduler moves", "hand over", "crash", "ambush", "cleared", "from its own pod"
    assert min(happened[name] for name in names) > 0


def test_nothing_is_lost_where_rules_taints_and_classes_come_and_go_and_some_only_look_at_devices() -> None:
    happened = played(6, STEPS, is_ruled=True)
    assert happened["bindings ended"] > 100
    assert min(happened[name] for name in ("rule", "mark", "class", "repeal", "placement")) > 20


def test_nothing_is_lost_where_claims_tie_devices_that_say_now_this_and_now_that_of_themselves() -> None:
    happened = played(7, STEPS, is_tied=True)
    assert happened["bindings ended"] > 100
    assert happened["regroup"] > 100


def test_nothing_is_lost_where_placement_documents_have_some_sets_of_devices_not_at_all() -> None:
    # One play ends about a hundred, now more, now fewer.
    happened = played(2, STEPS, is_strict=True) + played(8, STEPS, is_strict=True)
    assert happened["bindings ended"] > 150
    assert min(happened[name] for name in ("regroup", "placement")) > 100


@pytest.mark.parametrize("seed", [1, 4])
def test_nothing_is_lost_where_such_documents_are_of_devices_that_are_shared_cut_up_or_made_ready(seed: int) -> None:
    happened = played(seed, STEPS, is_strict=True, is_varied=True)
    assert happened["bindings ended"] > 100
    assert min(happened[name] for name in ("report", "node", "placement")) > 20


def test_nothing_is_lost_where_pods_are_evicted_for_taints_of_their_devices() -> None:
    happened = played(10, STEPS, is_evicting=True)
    assert happened["bindings ended"] > 100
    assert happened["evicted for a taint"] > 20


def test_nothing_is_lost_where_pods_and_claims_are_deleted_and_do_not_go() -> None:
    happened = played(11, STEPS, is_lingering=True)
    assert happened["bindings ended"] > 100
    assert min(happened[name] for name in ("keep", "let go")) > 50


@pytest.mark.parametrize(
    ("kinds", "bug"), [pytest.param(kinds, bug, id=name) for kinds, bugs in PLACES for name, bug in bugs.items()]
)
def test_a_planted_bug_is_found_where_it_shows(kinds: dict[str, bool], bug: Bug) -> None:
    with planted(bug), pytest.raises(Broken):
        long_test(bug.first, **kinds)


@pytest.mark.parametrize(("taste", "bug"), PARTED.items(), ids=PARTED)
def test_that_a_part_is_bound_though_a_stranger_has_left_too_little_is_found(
    taste: str, bug: Bug, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "TASTES", (taste,))
    monkeypatch.setattr(play, "INTRUSIONS", 3 * play.INTRUSIONS)
    with planted(bug), pytest.raises(Broken):
        long_test(is_varied=True)


def test_the_same_seed_plays_the_same() -> None:
    assert played(3, 1000) == played(3, 1000)
    assert played(3, 1000, nominates=True) == played(3, 1000, nominates=True)
    assert played(3, 1000, is_varied=True) == played(3, 1000, is_varied=True)
    assert played(3, 1000, is_contended=True) == played(3, 1000, is_contended=True)
    assert played(3, 1000, is_ruled=True) == played(3, 1000, is_ruled=True)
    assert played(3, 1000, is_tied=True) == played(3, 1000, is_tied=True)
    assert played(3, 1000, is_strict=True) == played(3, 1000, is_strict=True)
    assert played(3, 1000, is_evicting=True) == played(3, 1000, is_evicting=True)
    assert played(3, 1000, is_lingering=True) == played(3, 1000, is_lingering=True)
