"""Who watches over a scene sees what is wrong, and does not go blind unnoticed."""

import asyncio
from pathlib import Path

import pytest

from tests.controlplane.client import Object
from tests.controlplane.plane import Plane
from tests.faults import scene
from tests.invariants.checker import Moment


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> scene.Scene:
    monkeypatch.setattr(scene, "LOOK_EVERY_S", 0.0)
    return scene.Scene(Plane(tmp_path, tmp_path), None, None, None, (), 0)  # type: ignore[arg-type]  # nobody is asked


def shows(monkeypatch: pytest.MonkeyPatch, *answers: Moment | Exception) -> None:
    """Let moments be *answers*, the last of them again and again."""
    left = [*answers]

    async def moment_of(_: object) -> Moment:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(scene, "moment_of", moment_of)


async def watched(here: scene.Scene, fails: Exception | None = None) -> None:
    async with here.watched_over():
        for _ in range(20):
            await asyncio.sleep(0)
        if fails is not None:
            raise fails


def without_devices() -> Object:
    pod: Object = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "status": {}}
    claims = [{"name": "c", "resourceClaimName": "c"}]
    return {**pod, "spec": {"nodeName": "n", "resourceClaims": claims, "containers": []}}


async def test_what_was_wrong_for_a_moment_is_told_at_the_end(
    here: scene.Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    shows(monkeypatch, Moment(), Moment(pods=[without_devices()]), Moment())
    with pytest.raises(AssertionError, match="default/p on n: claim default/c is not there"):
        await watched(here)


async def test_an_api_server_that_is_away_for_a_while_is_asked_again(
    here: scene.Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    shows(monkeypatch, OSError("away"), TimeoutError(), Moment())
    await watched(here)


async def test_who_never_saw_anything_has_not_watched(here: scene.Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    shows(monkeypatch, OSError("away"))
    with pytest.raises(AssertionError, match="nothing was looked at"):
        await watched(here)


async def test_who_breaks_while_looking_fails_the_test(here: scene.Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    shows(monkeypatch, Moment(), KeyError("metadata"))
    with pytest.raises(KeyError, match="metadata"):
        await watched(here)


async def test_what_fails_inside_is_told_before_who_broke_while_looking(
    here: scene.Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    shows(monkeypatch, KeyError("metadata"))
    with pytest.raises(ValueError, match="inside"):
        await watched(here, ValueError("inside"))


async def test_the_last_calm_is_looked_at_too(here: scene.Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    async def calm() -> Moment:
        return Moment(pods=[without_devices()])

    monkeypatch.setattr(scene.Scene, "calm", lambda _: calm())
    with pytest.raises(AssertionError, match="default/p on n"):
        await here.served()
