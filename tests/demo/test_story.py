"""What the demonstration tells."""

from types import SimpleNamespace
from typing import Any, cast

from extender.demo.cluster import NAMESPACE
from extender.demo.story import Story


async def test_nothing_is_told_after_the_end() -> None:
    told: list[str] = []
    service = cast("Any", SimpleNamespace(journal=SimpleNamespace(heard=None)))
    pod = SimpleNamespace(name="late", namespace=NAMESPACE)
    late = cast("Any", SimpleNamespace(pod=pod, outcome=None, reason="late", node=""))
    story = Story(cast("Any", None), service, told.append)
    await story.play(0, 0)
    before = list(told)
    service.journal.heard(late)
    assert told == before
