"""Who decides does so as the settings have it."""

from dataclasses import replace

from extender.config.settings import Settings
from extender.service.minds import minds_of


def test_drivers_have_as_long_to_make_devices_ready_as_is_set() -> None:
    known = Settings()
    allocation = replace(known.allocation, ready_within_seconds=7.0)
    assert minds_of(replace(known, allocation=allocation)).belief.ready_within_s == 7.0
