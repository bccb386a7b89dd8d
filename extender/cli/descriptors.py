"""How many files and connections this process may have open."""

import logging
import resource
from contextlib import suppress
from typing import Final

from extender.telemetry import keys

LOG: Final = logging.getLogger(__name__)
WANTED: Final = 65_536
# Fewer do not suffice for a busy scheduler, probes, scrapes and the API server at once.
FEW: Final = 4_096


def raise_limit() -> None:
    """Raise the limit as far as we may, and tell where it stays low.

    Without a descriptor a connection is accepted and closed without a word; programs in Go raise it by themselves.
    """
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = raised(*limits)
    if limit != limits[0]:
        # Some systems have another limit below the hard one, and tell only so.
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limits[1]))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < FEW:
        LOG.warning("few files and connections can be open at once", extra={keys.COUNT: soft})


def raised(soft: int, hard: int) -> int:
    """Return what to raise *soft* to: never lower than it is."""
    if soft == resource.RLIM_INFINITY:
        return soft
    return max(soft, WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED))
