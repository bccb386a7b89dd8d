"""Steps carried out at the API server."""

from collections.abc import Generator
from typing import Any

import pytest

from extender.model.names import ObjectKey
from extender.scheduling.steps import Outcome, ReadClaim, Step
from extender.service.carrier import Carrier

CLAIM = ObjectKey("default", "c")


class Broken:
    """Writes with a bug."""

    async def read_claim(self, key: ObjectKey) -> Any:
        raise RuntimeError(str(key))


async def test_work_that_a_bug_ends_in_the_middle_is_closed_at_once() -> None:
    ended: list[str] = []

    def work() -> Generator[Step, Outcome, None]:
        try:
            yield ReadClaim(CLAIM)
        finally:
            ended.append("closed")

    writes: Any = Broken()
    feed: Any = None
    begun = work()
    with pytest.raises(RuntimeError):
        await Carrier(writes, feed, lambda: 0.0).carry(begun, deadline=1.0)
    assert ended == ["closed"]
