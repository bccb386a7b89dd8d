"""What is said of a bug: to whoever called, an id; to the log, everything."""

import hashlib
import logging
import traceback
from typing import Final

from extender.telemetry.keys import ERROR_ID, PATH

LOG: Final = logging.getLogger(__name__)


def reported(error: Exception, path: str) -> str:
    """Log *error*, met while *path* was answered, and return what the caller is told.

    The id names the place of the bug: one bug gives one text, or the scheduler would patch the pod at each try.
    """
    place = traceback.extract_tb(error.__traceback__)[-1]
    named = f"{type(error).__qualname__} {place.filename}:{place.lineno}"
    error_id = hashlib.sha256(named.encode()).hexdigest()[:8]
    LOG.error("a call crashed", exc_info=error, extra={PATH: path, ERROR_ID: error_id})
    return f"internal error {error_id}, see the extender's log"
