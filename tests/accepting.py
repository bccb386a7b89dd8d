"""Settings for tests in which nobody else allocates."""

from dataclasses import replace

from extender.config.settings import Settings


def accepting(settings: Settings) -> Settings:
    """Return *settings* that do not ask for anything that keeps others from our devices."""
    return replace(settings, ownership=replace(settings.ownership, accept_unpartitioned=True))
