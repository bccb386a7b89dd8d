"""A Lease that is not reached is told once, and what keeps us from leading is named for as long as it lasts."""

import asyncio
from dataclasses import dataclass, field

import pytest

from extender.kube.leases import Failure, Lease
from extender.kube.outcome import Refused
from extender.kube.pace import Pace
from extender.model.names import ObjectKey
from extender.scheduling.steps import Refusal
from extender.service.leading import Leading
from extender.state.tenure import LeaseTimes, Record, Tenure

OURS = ObjectKey("ns", "ours")
NO_RIGHT = Refused(kind=Refusal.FORBIDDEN, status=403, reason="Forbidden", message="may not")


class Ended(Exception):  # noqa: N818 - the end of a play, not an error
    """Enough time has passed."""


@dataclass
class Stage:
    """Time that passes while somebody waits for it, and a Lease that can be read, and written where that is allowed."""

    now: float = 0.0
    until: float = 0.0
    found: Lease | Failure = field(default_factory=lambda: Lease(Record("1", "other_1", 15)))
    written: Lease | Failure = NO_RIGHT
    asked: list[str] = field(default_factory=list)

    async def read(self, _key: ObjectKey) -> Lease | Failure:
        self.asked.append("read")
        return self.found

    async def hold(self, *_told: object) -> Lease | Failure:
        self.asked.append("write")
        return self.written

    async def sleep(self, seconds: float) -> None:
        if self.now >= self.until:
            raise Ended
        self.now += max(seconds, 0.01)

    def play(self, leading: Leading, seconds: float) -> int:
        """Contend for some time, and return how often it was tried to write."""
        self.asked, self.until = [], self.now + seconds
        with pytest.raises(ExceptionGroup) as ended:
            asyncio.run(leading.run())
        assert ended.group_contains(Ended)
        return self.asked.count("write")


def leading_on(stage: Stage) -> Leading:
    tenure = Tenure("me_1", LeaseTimes())
    return Leading(
        tenure,
        stage,  # type: ignore[arg-type]  # only what is used
        OURS,
        None,
        lambda: True,
        now=lambda: stage.now,
        pace=Pace(now=lambda: stage.now, sleep=stage.sleep),
    )


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.__dict__["reason"] for record in caplog.records if record.msg == "the Lease was not reached"]


def test_a_lease_that_is_read_but_cannot_be_written_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    leading = leading_on(stage)
    assert stage.play(leading, 60) > 10
    assert told(caplog) == ["take"]
    assert leading.obstacle() == f"Leases cannot be read or written: ns/ours: {NO_RIGHT}"


def test_it_is_told_again_where_somebody_has_written_it_meanwhile(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    leading = leading_on(stage)
    stage.play(leading, 60)
    stage.found = Lease(Record("2", "other_1", 15))
    stage.play(leading, 5)
    assert leading.obstacle() == ""
    assert stage.play(leading, 60) > 10
    assert told(caplog) == ["take", "take"]


def test_of_a_lease_that_can_be_neither_read_nor_written_each_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    leading = leading_on(stage)
    stage.play(leading, 60)
    for _ in range(3):
        stage.found = NO_RIGHT
        stage.play(leading, 5)
    assert told(caplog) == ["take", "look"]


def test_a_lease_that_is_written_after_all_hinders_nobody(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    leading = leading_on(stage)
    stage.play(leading, 60)
    stage.written = stage.found = Lease(Record("2", "me_1", 15))
    stage.play(leading, 5)
    assert leading.obstacle() == ""
    assert told(caplog) == ["take"]
