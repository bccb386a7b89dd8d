"""One replica's part in the election: what it makes of each answer, and of its own state, without a server."""

from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

import pytest

from extender.kube.fence import Fence
from extender.kube.leases import Failure, Lease
from extender.kube.outcome import Unknown
from extender.kube.pace import Pace
from extender.model.names import ObjectKey
from extender.scheduling.steps import Refusal, Refused
from extender.service.leading import Leading
from extender.state.tenure import Act, LeaseTimes, Record, Step, Tenure, Wish

ME = "a_1"
LEASE = ObjectKey("ns", "lease")
TERMS = LeaseTimes(lease_s=15, trust_s=10, renew_s=2, linger_s=90)
CONFLICT = Refused(Refusal.CONFLICT, "moved on")


class Leases:
    """Stands in for the API server: each answer takes *lasts_s*; *holders* are those who were written."""

    def __init__(self) -> None:
        self.now, self.lasts_s, self.written = 0.0, 0.0, "first"
        self.answers = list[Lease | Failure]()
        self.holders = list[str]()

    async def read(self, _key: ObjectKey) -> Lease | Failure:
        self.now += self.lasts_s
        return self.answers.pop(0)

    async def hold(self, key: ObjectKey, _known: Lease, holder: str, _lease_s: float) -> Lease | Failure:
        self.holders.append(holder)
        return await self.read(key)


def leader(leases: Leases) -> Leading:
    """Return who has led since 0, after a predecessor that had released the Lease."""
    leading = contender(leases)
    leading.tenure.wrote(Record("2", ME, written="first"), 0, 0)
    return leading


def contender(leases: Leases, before: str = "") -> Leading:
    """Return who is about to take the Lease, which *before* has not renewed since 0, or nobody has."""
    tenure = Tenure(ME, TERMS)
    tenure.looked(Record("1", before), 0)
    assert tenure.next(TERMS.lease_s if before else 0, Wish.LEAD, is_idle=True, is_quiet=True).act is Act.TAKE
    told: Any = leases
    return Leading(tenure, told, LEASE, None, lambda: True, now=lambda: leases.now)


async def done(leading: Leading, leases: Leases, act: Act, answer: Lease | Failure, at: float) -> None:
    leases.now = at
    leases.answers.append(answer)
    await leading._do(Step(act))


def test_the_scheduler_is_answered_in_the_term_that_has_begun_and_as_long_as_nobody_else_is_to_lead() -> None:
    leases = Leases()
    leading = leader(leases)
    assert leading.hindrance() == "not leading: about to take over"
    leading.served = leading.tenure.term
    assert leading.hindrance() == ""
    leading.is_ending = True
    assert leading.hindrance() == "not leading: about to hand over"
    leading.is_ending = False
    # A lapse that nobody saw: another may have led meanwhile.
    leading.tenure.wrote(Record("3", ME), 20, 20)
    leases.now = 21
    assert leading.hindrance() == "not leading: about to take over"


async def test_a_renewal_is_trusted_from_when_it_was_sent_however_long_its_answer_took() -> None:
    leases = Leases()
    leading, leases.lasts_s = leader(leases), 3.0
    await done(leading, leases, Act.RENEW, Lease(Record("3", ME, written="second")), 2.0)
    leases.now = 11.9
    assert leading.why_not() == ""
    leases.now = 12.0
    assert leading.why_not() == "not leading: the Lease was not renewed in time"


@pytest.mark.parametrize("answer", [Unknown("no answer"), CONFLICT])
async def test_a_renewal_that_has_landed_unheard_counts_from_when_it_was_sent(answer: Failure) -> None:
    """In a conflict, too: a connection that ends has some requests sent twice."""
    leases = Leases()
    leading, leases.lasts_s = leader(leases), 2.0
    leases.written = "second"
    await done(leading, leases, Act.RENEW, answer, 5.0)
    await done(leading, leases, Act.LOOK, Lease(Record("3", ME, written="second")), 9.0)
    leases.now = 14.9
    assert leading.why_not() == ""
    leases.now = 15.0
    assert leading.why_not() == "not leading: the Lease was not renewed in time"


async def test_a_look_without_an_answer_renews_nothing() -> None:
    leases = Leases()
    leading = leader(leases)
    await done(leading, leases, Act.LOOK, Unknown("no answer"), 8.0)
    await done(leading, leases, Act.LOOK, Lease(Record("2", ME, written="first")), 9.0)
    leases.now = 10.0
    assert leading.why_not() == "not leading: the Lease was not renewed in time"


@pytest.mark.parametrize("answer", [Unknown("no answer"), CONFLICT])
async def test_to_have_taken_it_unheard_counts_from_when_that_was_sent(answer: Failure) -> None:
    leases = Leases()
    leading = contender(leases)
    leases.lasts_s = 2.0
    await done(leading, leases, Act.TAKE, answer, 0.0)
    await done(leading, leases, Act.LOOK, Lease(Record("2", ME, written="first")), 5.0)
    leases.now = 9.9
    assert leading.why_not() == ""
    leases.now = 10.0
    assert leading.why_not() == "not leading: the Lease was not renewed in time"


async def test_after_a_conflict_it_is_looked_at_once_who_holds_the_lease() -> None:
    leases = Leases()
    leading = leader(leases)
    await done(leading, leases, Act.RENEW, CONFLICT, 2.0)
    assert leading.tenure.next(2.0, Wish.LEAD, is_idle=True, is_quiet=True).act is Act.LOOK


async def test_one_conflict_is_no_trouble_and_more_about_the_same_record_are(caplog: pytest.LogCaptureFixture) -> None:
    leases = Leases()
    leading = leader(leases)
    for number in (1, 2, 3):
        await done(leading, leases, Act.RENEW, CONFLICT, 2.0 * number)
        told = [record for record in caplog.records if record.msg == "the Lease was not reached"]
        assert len(told) == (number > 1)


async def test_what_is_ours_no_more_is_not_hindered_by_what_was_sent_before_us_and_moves_nothing() -> None:
    leases = Leases()
    leading = contender(leases, before="b_2")
    await done(leading, leases, Act.TAKE, Lease(Record("2", ME, written="first")), 15.0)
    assert (leading.is_hindered, leading.why_not_move()) == (True, "")
    await done(leading, leases, Act.LOOK, Lease(Record("3", "b_2")), 17.0)
    assert (leading.is_hindered, leading.why_not_move()) == (False, "not leading: b leads")


async def test_allocations_are_judged_by_whoever_answers_the_scheduler() -> None:
    """Before, what an earlier leader has allocated is not known to be its own."""
    leases = Leases()
    leading = leader(leases)
    assert (leading.why_not(), leading.judges()) == ("", False)
    leading.served = leading.tenure.term
    assert leading.judges()


class Ended(Exception):  # noqa: N818 - the end of a play, not an error
    """Enough time has passed."""


class Granting(Leases):
    """Grants whatever is written; time passes while somebody waits for it, up to *until*."""

    def __init__(self) -> None:
        super().__init__()
        self.until, self.record = 0.0, Record("", "")

    async def read(self, _key: ObjectKey) -> Lease | Failure:
        return Lease(self.record)

    async def hold(self, _key: ObjectKey, _known: Lease, holder: str, _lease_s: float) -> Lease | Failure:
        self.holders.append(holder)
        self.record = Record(f"{self.now:.2f}", holder)
        return Lease(self.record)

    async def sleep(self, seconds: float) -> None:
        if self.now >= self.until:
            raise Ended
        self.now += max(seconds, 0.01)

    async def play(self, work: Awaitable[None], seconds: float) -> list[str]:
        """Let *work* go on for some time; return who was written."""
        self.holders, self.until = [], self.now + seconds
        with suppress(Ended):
            await work
        return self.holders


def granted() -> tuple[Leading, Granting]:
    leases = Granting()
    leading = leader(leases)
    leading.pace = Pace(now=lambda: leases.now, sleep=leases.sleep)
    return leading, leases


@pytest.mark.parametrize("busy", ["bindings", "writes"])
async def test_who_is_to_hand_over_goes_on_until_nothing_of_ours_is_under_way(busy: str) -> None:
    leading, leases = granted()
    leading.is_ending, leading.is_idle = True, lambda: busy != "bindings"
    leading.fence._under_way = int(busy == "writes")
    assert set(await leases.play(leading._elect(), 10)) == {ME}
    leading.is_idle, leading.fence._under_way = lambda: True, 0
    assert await leases.play(leading._elect(), 1) == [""]


async def test_who_hands_over_gives_nothing_up_while_what_was_sent_may_arrive_and_writes_nothing_any_more() -> None:
    leading, leases = granted()
    leading.is_ending, leading.fence = True, Fence(now=lambda: leases.now)
    leading.fence._in_doubt_until = 5.0
    assert await leases.play(leading._elect(), 4.5) == []
    assert leading.why_not() == "not leading: the Lease was not renewed in time"
    assert await leases.play(leading._elect(), 3) == [""]


async def test_who_ends_waits_for_the_lease_to_be_given_up_as_long_as_it_may() -> None:
    leading, leases = granted()
    assert await leases.play(leading.end(3.0), 60) == []
    assert (leading.wish, leading.tenure.is_held, 3 <= leases.now < 4) == (Wish.YIELD, True, True)
    assert await leases.play(leading._elect(), 1) == [""]
    before = leases.now
    await leases.play(leading.end(3.0), 60)
    assert leases.now == before


async def test_the_schedulers_lease_is_left_over_once_it_was_not_renewed_for_as_long_as_it_lasts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    leading, leases = granted()
    for at, record, is_over in (
        (-40.0, None, False),
        (-25.0, None, False),
        (-24.9, None, True),
        (-24.8, None, True),
        (0.0, Record("1", "a_9", 30), False),
        (30.0, Record("1", "a_9", 30), False),
        (30.1, Record("1", "a_9", 30), True),
        (31.0, Record("2", "a_9", 30), False),
        (61.1, Record("2", "a_9", 30), True),
        (62.0, None, False),
        (77.0, None, False),
        (77.1, None, True),
    ):
        leases.now = at
        leading._seen_beside(record)
        assert bool(leading.obstacle()) == is_over, at
    assert [record.levelname for record in caplog.records].count("WARNING") == 4
