"""What is said of a bug: to whoever called, an id; to the log, everything. What is no HTTP is no bug."""

import hashlib
import logging
import traceback
from typing import TYPE_CHECKING, Any, Final

from aiohttp.http_exceptions import HttpProcessingError

from extender.telemetry.keys import ERROR_ID, PATH

if TYPE_CHECKING:
    Adapter = logging.LoggerAdapter[logging.Logger]
else:
    Adapter = logging.LoggerAdapter

LOG: Final = logging.getLogger(__name__)


class Reported(Exception):  # noqa: N818 - says what was done about it
    """A bug of which the log was told already; its text is what the caller is told."""


def reported(error: Exception, path: str) -> str:
    """Log *error*, met while *path* was answered, and return what the caller is told.

    The id names the place of the bug: one bug gives one text, or the scheduler would patch the pod at each try.
    """
    if isinstance(error, Reported):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    named = f"{type(error).__qualname__} {place.filename}:{place.lineno}"
    error_id = hashlib.sha256(named.encode()).hexdigest()[:8]
    LOG.error("a call crashed", exc_info=error, extra={PATH: path, ERROR_ID: error_id})
    return f"internal error {error_id}, see the extender's log"


class HttpLog(Adapter):
    """The log of the HTTP library, which tells a page of every call that is no HTTP: anybody could fill the log so."""

    def exception(self, msg: object, *args: object, exc_info: Any = True, **kwargs: Any) -> None:  # noqa: ANN401 - as there
        if not isinstance(exc_info, HttpProcessingError):
            super().exception(msg, *args, exc_info=exc_info, **kwargs)
