"""One replica's part in the election: what it makes of each answer, and of its own state, without a server."""

from typing import Any

import pytest

from extender.kube.leases import Failure, Lease
from extender.kube.outcome import Unknown
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
    tenure = Tenure(ME, TERMS)
    tenure.looked(Record("1", ""), 0)
    assert tenure.next(0, Wish.LEAD, is_idle=True, is_quiet=True).act is Act.TAKE
    tenure.wrote(Record("2", ME, written="first"), 0, 0)
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
    leading = leader(leases)
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
