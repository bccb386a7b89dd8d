"""Who leads: the rules of one replica, each at the moment at which it decides."""

import pytest

from extender.state.tenure import Act, LeaseTimes, Record, Step, Tenure, Wish, host_of, wish_of

TIMES = LeaseTimes(lease_s=15, trust_s=10, renew_s=2, linger_s=90)
ME, OTHER = "a_1", "b_2"


def tenure(before: str = "") -> Tenure:
    return Tenure(ME, TIMES, before)


def step(it: Tenure, now: float, wish: Wish = Wish.LEAD, *, is_idle: bool = True, is_quiet: bool = True) -> Step:
    return it.next(now, wish, is_idle=is_idle, is_quiet=is_idle and is_quiet)


def leader(asked: float = 0.0) -> Tenure:
    """Return who has led since *asked*, after a predecessor that had released its Lease."""
    it = tenure()
    it.looked(Record("1", ""), asked)
    assert step(it, asked) == Step(Act.TAKE)
    it.wrote(Record("2", ME), asked, asked + 0.5)
    return it


def test_the_first_thing_is_to_look() -> None:
    assert step(tenure(), 5.0) == Step(Act.LOOK)


@pytest.mark.parametrize(
    ("record", "taken_at", "clear_at"),
    [
        pytest.param(Record("1", ""), 100, 100, id="released: at once"),
        pytest.param(Record("1", OTHER), 115, 205, id="held: its lease, and what its holder has sent"),
        pytest.param(Record("1", OTHER, 30), 130, 220, id="held by one with a longer lease"),
        pytest.param(Record("1", OTHER, 3), 115, 205, id="held by one with a shorter lease"),
        pytest.param(None, 100, 205, id="no Lease: somebody may have deleted it under a leader"),
    ],
)
def test_a_lease_is_taken_when_it_is_free_and_used_when_nothing_can_arrive_any_more(
    record: Record | None, taken_at: float, clear_at: float
) -> None:
    it = tenure()
    it.looked(record, 100)
    if taken_at > 100:
        assert step(it, taken_at - 0.1) != Step(Act.TAKE)
    assert step(it, taken_at) == Step(Act.TAKE)
    it.wrote(Record("2", ME), taken_at, taken_at)
    now = taken_at
    while now < clear_at:
        assert it.why_not(now) == "not leading: what an earlier leader wrote may still arrive"
        now = min(now + 1, clear_at)
        it.wrote(Record(f"at {now}", ME), now, now)
    assert it.why_not(clear_at) == ""


@pytest.mark.parametrize(
    ("record", "taken_at", "alone_at"),
    [
        pytest.param(Record("1", ""), 100, 100, id="released: at once"),
        pytest.param(Record("1", OTHER), 115, 115, id="held: its holder has ceased before it is taken"),
        pytest.param(Record("1", OTHER, 30), 130, 130, id="held by one with a longer lease"),
        pytest.param(
            None, 100, 115, id="no Lease: a leader under whom it was deleted may go on for as long as it lasts"
        ),
    ],
)
def test_who_is_alone_may_keep_away_what_was_sent_before_and_need_not_wait_for_it_then(
    record: Record | None, taken_at: float, alone_at: float
) -> None:
    it = tenure()
    it.looked(record, 100)
    assert not it.is_alone(taken_at)
    step(it, taken_at)
    now = taken_at
    it.wrote(Record("2", ME), now, now)
    while now < alone_at:
        assert not it.is_alone(now)
        it.cleared(now)
        assert it.why_not(now)
        now = min(now + 1, alone_at)
        it.wrote(Record(f"at {now}", ME), now, now)
    assert it.is_alone(now)
    it.cleared(now)
    assert (it.why_not(now), it.is_clear(now)) == ("", True)


@pytest.mark.parametrize(
    ("holder", "transitions", "taken_at"),
    [
        pytest.param("a_pod.1", 2, 100, id="a process before in the same pod: at once"),
        pytest.param("a_pod.1", 1, 115, id="one that has created the Lease, and died before others had to cease"),
        pytest.param("a_dop.1", 2, 115, id="one in another pod of that name"),
        pytest.param("a_po.1", 2, 115, id="one in a pod whose UID begins like ours"),
        pytest.param("a_pod.d.1", 2, 115, id="one in a pod whose UID goes on"),
        pytest.param("a_7", 2, 115, id="one there that does not know its pod"),
        pytest.param("b_pod.1", 2, 115, id="one elsewhere that says it is in the same pod"),
    ],
)
def test_who_has_ended_before_we_began_is_followed_at_once_and_what_it_has_sent_may_land(
    holder: str, transitions: int, taken_at: float
) -> None:
    it = tenure(before="a_pod")
    it.looked(Record("1", holder, transitions=transitions), 100)
    if taken_at > 100:
        assert step(it, taken_at - 0.1) != Step(Act.TAKE)
    assert step(it, taken_at) == Step(Act.TAKE)
    it.wrote(Record("2", ME), taken_at, taken_at)
    assert (it.is_alone(taken_at), it.is_clear(taken_at)) == (True, False)
    clear_at = taken_at + TIMES.linger_s
    it.wrote(Record("3", ME), clear_at - 1, clear_at - 1)
    assert (it.is_clear(clear_at - 1), it.is_clear(clear_at)) == (False, True)


def test_who_relies_on_its_lease_no_more_is_not_alone_and_has_cleared_nothing() -> None:
    it = tenure()
    it.looked(Record("1", OTHER), 0)
    assert step(it, 15) == Step(Act.TAKE)
    it.wrote(Record("2", ME), 15, 15)
    assert [it.is_alone(24.9), it.is_alone(25)] == [True, False]
    it.cleared(25)
    it.wrote(Record("3", ME), 26, 26)
    assert it.why_not(26) == "not leading: what an earlier leader wrote may still arrive"


def test_what_was_cleared_once_is_not_when_another_has_led_since() -> None:
    it = tenure()
    it.looked(Record("1", OTHER), 0)
    assert step(it, 15) == Step(Act.TAKE)
    it.wrote(Record("2", ME), 15, 15)
    it.cleared(16)
    it.looked(Record("3", OTHER), 20)
    assert not it.is_alone(20)
    assert step(it, 35) == Step(Act.TAKE)
    it.wrote(Record("4", ME), 35, 35)
    assert it.why_not(35) == "not leading: what an earlier leader wrote may still arrive"


def test_only_what_changes_counts_as_renewed_and_the_time_in_it_does_not() -> None:
    it = tenure()
    it.looked(Record("1", OTHER), 0)
    it.looked(Record("1", OTHER), 14)
    assert step(it, 15) == Step(Act.TAKE)
    it = tenure()
    it.looked(Record("1", OTHER), 0)
    it.looked(Record("2", OTHER), 14)
    assert step(it, 16) == Step(Act.LOOK)
    assert step(it, 29) == Step(Act.TAKE)


def test_who_has_watched_a_dead_leader_for_long_need_not_wait() -> None:
    it = tenure()
    it.looked(Record("1", OTHER), 0)
    assert step(it, 200) == Step(Act.TAKE)
    it.wrote(Record("2", ME), 200, 200)
    assert it.why_not(200) == ""


def test_a_renewal_is_trusted_from_the_moment_it_was_sent_and_for_less_than_the_lease() -> None:
    it = leader(asked=0)
    assert [it.why_not(9.9), it.why_not(10)] == ["", "not leading: the Lease was not renewed in time"]
    it.wrote(Record("3", ME), 9, 9.5)
    assert [it.why_not(18.9), it.why_not(19)] == ["", "not leading: the Lease was not renewed in time"]


def test_an_answer_that_comes_too_late_is_no_permission() -> None:
    it = leader(asked=0)
    it.wrote(Record("3", ME), 2, 13)
    assert it.why_not(13)


def test_a_write_that_changed_nothing_renews_nothing() -> None:
    it = leader(asked=0)
    it.wrote(Record("2", ME), 9, 9.5)
    assert it.why_not(10)


def test_a_leader_renews_in_time() -> None:
    it = leader(asked=0)
    assert step(it, 1.9) == Step(Act.WAIT, 2)
    assert step(it, 2) == Step(Act.RENEW)


def test_a_conflict_is_looked_into_at_once() -> None:
    it = leader(asked=0)
    it.failed(2, is_conflict=True)
    assert step(it, 2) == Step(Act.LOOK)


def test_conflicts_about_a_record_that_nobody_changes_are_tried_again_in_peace() -> None:
    it = tenure()
    it.looked(None, 0)
    it.failed(1, is_conflict=True)
    assert not it.is_stuck
    it.looked(None, 1)
    it.failed(2, is_conflict=True)
    assert it.is_stuck
    assert step(it, 2.5) == Step(Act.WAIT, 3)
    assert step(it, 3) == Step(Act.LOOK)
    it.looked(Record("1", OTHER), 3)
    assert not it.is_stuck


def test_conflicts_from_before_a_write_that_has_landed_count_no_more() -> None:
    it = leader()
    it.failed(1, is_conflict=True)
    it.looked(Record("2", ME), 1)
    it.wrote(Record("3", ME), 2, 2)
    it.failed(3, is_conflict=True)
    assert not it.is_stuck


def test_who_does_not_hold_the_lease_knows_of_nothing_that_it_cannot_arrive() -> None:
    assert not tenure().is_clear(1e9)
    it = leader()
    it.looked(Record("3", OTHER), 1)
    assert not it.is_clear(1e9)


def test_a_leader_whose_lease_another_has_steps_down_at_once() -> None:
    it = leader(asked=0)
    it.looked(Record("3", OTHER), 1)
    assert it.why_not(1) == "not leading: b leads"
    assert step(it, 1.5) == Step(Act.WAIT, 3)


def test_a_leader_without_an_answer_tries_again_and_leads_on_in_a_new_term() -> None:
    it = leader(asked=0)
    assert it.term == 1
    it.failed(5)
    assert step(it, 6) == Step(Act.RENEW)
    it.wrote(Record("3", ME), 6, 7)
    assert it.term == 1
    it.wrote(Record("4", ME), 20, 21)
    assert (it.term, it.why_not(21)) == (2, "")


def test_a_lease_that_came_by_a_write_without_an_answer_is_waited_for_in_full_unless_nobody_was_seen_since() -> None:
    it = tenure()
    it.looked(Record("1", ""), 0)
    assert step(it, 0) == Step(Act.TAKE)
    it.failed(1)
    assert step(it, 2) == Step(Act.LOOK)
    it.looked(Record("2", ME), 2)
    assert it.why_not(2) == "not leading: the Lease was not renewed in time"
    assert step(it, 2) == Step(Act.RENEW)
    it.wrote(Record("3", ME), 2, 3)
    assert it.why_not(3) == ""

    it = tenure()
    it.looked(Record("1", ""), 0)
    assert step(it, 0) == Step(Act.TAKE)
    it.failed(1)
    it.looked(Record("1", ""), 2)
    it.looked(Record("2", ME), 3)
    it.wrote(Record("3", ME), 3, 4)
    assert it.why_not(4) == "not leading: what an earlier leader wrote may still arrive"


def unheard(asked: float = 2.0, now: float = 7.0) -> Tenure:
    """Return who has led since 0, and heard nothing of the renewal with "at 2" in it."""
    it = leader(asked=0)
    assert step(it, asked) == Step(Act.RENEW)
    it.unheard("at 2", asked)
    it.failed(now)
    return it


@pytest.mark.parametrize(
    ("record", "trusted_until"),
    [
        pytest.param(Record("3", ME, written="at 2"), 12, id="landed: from the moment it was sent"),
        pytest.param(Record("4", ME, written="at 2"), 12, id="landed, and others have put something on the Lease"),
        pytest.param(Record("2", ME, written="at 0"), 10, id="not landed"),
        pytest.param(Record("3", ME, written="at 0"), 10, id="not landed, and others have put something on the Lease"),
        pytest.param(Record("3", OTHER, written="at 2"), 0, id="another has the Lease, whatever stands in it"),
        pytest.param(Record("3", "", written="at 2"), 0, id="nobody has the Lease"),
        pytest.param(None, 0, id="the Lease is gone"),
    ],
)
def test_a_renewal_of_which_nobody_heard_counts_where_the_lease_shows_it(
    record: Record | None, trusted_until: float
) -> None:
    it = unheard()
    assert step(it, 7.9) == Step(Act.WAIT, 8)
    assert step(it, 8) == Step(Act.LOOK)
    it.looked(record, 8.5)
    assert not it.why_not(8.5) if trusted_until else it.why_not(8.5)
    assert it.term == 1
    for now in (9.9, 10, 11.9, 12):
        assert bool(it.why_not(now)) == (now >= trusted_until)


def test_a_renewal_that_lands_later_than_it_is_looked_for_counts_when_it_is_seen() -> None:
    it = unheard()
    it.looked(Record("2", ME, written="at 0"), 8)
    assert step(it, 8) == Step(Act.RENEW)
    it.unheard("at 8", 8)
    it.failed(8.5, is_conflict=True)
    assert step(it, 8.5) == Step(Act.LOOK)
    it.looked(Record("3", ME, written="at 2"), 9)
    assert [bool(it.why_not(11.9)), bool(it.why_not(12))] == [False, True]


def test_a_renewal_that_is_seen_too_late_is_no_permission() -> None:
    it = unheard()
    it.looked(Record("3", ME, written="at 2"), 12)
    assert it.why_not(12)
    assert step(it, 12) == Step(Act.RENEW)


def test_a_renewal_that_is_seen_twice_counts_once() -> None:
    it = unheard()
    it.looked(Record("3", ME, written="at 2"), 8)
    it.unheard("at 8", 8)
    it.failed(13)
    it.looked(Record("3", ME, written="at 2"), 14)
    assert it.why_not(14)


def test_a_lease_that_was_taken_unheard_is_relied_upon_and_waited_for_as_if_it_had_been_heard() -> None:
    it = tenure()
    it.looked(Record("1", OTHER), 0)
    assert step(it, 15) == Step(Act.TAKE)
    it.unheard("at 15", 15)
    it.failed(20)
    it.looked(Record("1", OTHER), 21)
    it.looked(Record("2", ME, written="at 15"), 22)
    assert (it.is_alone(22), it.term) == (False, 1)
    assert it.why_not(22) == "not leading: what an earlier leader wrote may still arrive"
    assert it.why_not(25) == "not leading: the Lease was not renewed in time"


def test_what_was_sent_before_a_lease_is_given_up_does_not_count_any_more() -> None:
    it = unheard()
    it.looked(Record("2", ME, written="at 0"), 8)
    assert step(it, 8, Wish.YIELD) == Step(Act.RELEASE)
    it.failed(8.5, is_conflict=True)
    it.looked(Record("3", ME, written="at 2"), 9)
    assert it.why_not(9) == "not leading: the Lease was not renewed in time"


def test_who_yields_and_heard_nothing_of_a_renewal_looks_before_the_lease_is_given_up() -> None:
    it = unheard()
    assert step(it, 8, Wish.YIELD) == Step(Act.LOOK)
    it.looked(Record("3", ME, written="at 2"), 8.5)
    assert step(it, 8.5, Wish.YIELD) == Step(Act.RELEASE)


def test_that_there_was_no_lease_before_does_not_say_that_there_was_none_since() -> None:
    it = tenure()
    it.looked(None, 0)
    it.looked(None, 100)
    assert step(it, 100) == Step(Act.TAKE)
    it.wrote(Record("9", ME), 100, 130)
    it.wrote(Record("10", ME), 234, 234)
    assert [bool(it.why_not(234.9)), bool(it.why_not(235))] == [True, False]


@pytest.mark.parametrize("wish", [Wish.KEEP, Wish.YIELD])
def test_who_is_not_to_lead_does_not_contend(wish: Wish) -> None:
    it = tenure()
    it.looked(Record("1", ""), 0)
    assert step(it, 0, wish) == Step(Act.WAIT, 2)
    assert step(it, 2, wish) == Step(Act.LOOK)


def test_a_leader_keeps_what_it_would_not_contend_for() -> None:
    assert step(leader(asked=0), 2, Wish.KEEP) == Step(Act.RENEW)


def test_who_yields_renews_until_nothing_of_it_is_under_way_and_writes_nothing_once_it_releases() -> None:
    it = leader(asked=0)
    assert step(it, 2, Wish.YIELD, is_idle=False) == Step(Act.RENEW)
    it.wrote(Record("3", ME), 2, 2.5)
    assert it.why_not(4) == ""
    assert step(it, 3, Wish.YIELD) == Step(Act.RELEASE)
    assert it.why_not(3)
    it.wrote(Record("4", ""), 3, 3.5)
    assert it.why_not(4) == "not leading: nobody leads yet"
    assert step(it, 5, Wish.YIELD) == Step(Act.LOOK)


def test_who_yields_and_has_sent_what_may_still_arrive_lets_the_lease_run_out() -> None:
    it = leader(asked=0)
    assert step(it, 1, Wish.YIELD, is_quiet=False) == Step(Act.WAIT, 3)
    assert it.why_not(1)
    for now in (2, 3, 17, 40):
        assert step(it, now, Wish.YIELD, is_quiet=False).act is Act.WAIT
    assert step(it, 60, Wish.YIELD) == Step(Act.RELEASE)


def test_who_has_let_the_lease_run_out_and_is_to_lead_again_begins_a_new_term() -> None:
    it = leader(asked=0)
    assert step(it, 1, Wish.YIELD, is_quiet=False).act is Act.WAIT
    assert step(it, 3, Wish.LEAD, is_quiet=False) == Step(Act.RENEW)
    it.wrote(Record("3", ME), 3, 3.5)
    assert (it.term, it.why_not(4)) == (2, "")


def test_a_release_without_an_answer_is_tried_again_later_and_nothing_is_written_in_between() -> None:
    it = leader(asked=0)
    assert step(it, 1, Wish.YIELD) == Step(Act.RELEASE)
    it.failed(1.5)
    assert step(it, 1.6, Wish.YIELD) == Step(Act.WAIT, 2.5)
    assert it.why_not(1.6)
    assert step(it, 2.5, Wish.YIELD) == Step(Act.RELEASE)


def test_who_was_about_to_yield_and_is_to_lead_again_begins_a_new_term() -> None:
    it = leader(asked=0)
    assert step(it, 1, Wish.YIELD) == Step(Act.RELEASE)
    it.failed(1.5)
    assert step(it, 2.5, Wish.LEAD) == Step(Act.RENEW)
    it.wrote(Record("3", ME), 2.5, 3)
    assert (it.term, it.why_not(3)) == (2, "")


def test_who_yields_while_an_earlier_leaders_writes_may_arrive_does_not_say_that_none_can() -> None:
    it = tenure()
    it.looked(Record("1", OTHER), 0)
    assert step(it, 15) == Step(Act.TAKE)
    it.wrote(Record("2", ME), 15, 15)
    assert step(it, 17, Wish.YIELD) == Step(Act.RENEW)
    it.wrote(Record("3", ME), 104, 104)
    assert step(it, 106, Wish.YIELD) == Step(Act.RELEASE)


@pytest.mark.parametrize(
    ("scheduler", "is_able", "is_ending", "wish"),
    [
        pytest.param("a_9", True, False, Wish.LEAD, id="our scheduler leads"),
        pytest.param("a_9", False, False, Wish.KEEP, id="the cluster is not known yet"),
        pytest.param("b_9", True, False, Wish.YIELD, id="another pod's scheduler leads"),
        pytest.param("", True, False, Wish.KEEP, id="no scheduler leads"),
        pytest.param(None, True, False, Wish.KEEP, id="nobody knows who leads"),
        pytest.param("a_9", True, True, Wish.YIELD, id="we are about to end"),
    ],
)
def test_o1_the_scheduler_that_calls_us_has_to_lead_too(
    scheduler: str | None, wish: Wish, *, is_able: bool, is_ending: bool
) -> None:
    assert wish_of(scheduler, "a", is_able=is_able, is_ending=is_ending) is wish


@pytest.mark.parametrize(
    ("identity", "host"), [("pod-7d9f_0b1c", "pod-7d9f"), ("a_b_c", "a_b"), ("somebody", "somebody"), ("", "")]
)
def test_an_identity_names_a_pod_and_a_process_in_it(identity: str, host: str) -> None:
    assert host_of(identity) == host
