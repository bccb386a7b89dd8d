"""How many files and connections the process may have open."""

import logging
import resource
from collections.abc import Iterator

import pytest

from extender.cli import descriptors
from extender.cli.descriptors import raise_limit, raised

NONE = resource.RLIM_INFINITY


@pytest.fixture
def _as_before() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize(
    ("soft", "hard", "limit"),
    [
        pytest.param(1024, 524288, 65536, id="as systemd sets it"),
        pytest.param(1024, 4096, 4096, id="as far as we may"),
        pytest.param(1024, NONE, 65536, id="without an end"),
        pytest.param(100_000, 524288, 100_000, id="never lower"),
        pytest.param(NONE, NONE, NONE, id="never lower than no limit"),
    ],
)
def test_the_limit_is_raised_as_far_as_we_may(soft: int, hard: int, limit: int) -> None:
    assert raised(soft, hard) == limit


@pytest.mark.usefixtures("_as_before")
def test_a_low_limit_is_raised(caplog: pytest.LogCaptureFixture) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    raise_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (raised(256, hard), hard)
    assert bool(caplog.records) == (0 <= hard < descriptors.FEW)


def test_a_limit_that_stays_low_is_told(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, NONE))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    with caplog.at_level(logging.WARNING):
        raise_limit()
    (line,) = [vars(record) for record in caplog.records]
    assert (line["msg"], line["count"]) == ("few files and connections can be open at once", 256)
