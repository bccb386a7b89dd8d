"""The placement document in use: what its file said last that could be used."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from extender.config.load import Invalid
from extender.config.placement_document import content_of, document_in
from extender.kube.pace import Pace
from extender.telemetry.keys import COUNT, FILE, PROBLEM
from extender.telemetry.metrics import Metrics
from extender.topology.document import Document

LOG: Final = logging.getLogger(__name__)
INTERVAL_S: Final = 5.0
Hear = Callable[[Document], None]


class PlacementFile:
    """Holds the *document*; a version of the file that cannot be used changes nothing and is complained about."""

    def __init__(self, file: str, metrics: Metrics, hear: Hear = lambda _: None) -> None:
        """Read the file for the first time; raise Invalid with all that is wrong."""
        self._file, self._metrics, self._hear = file, metrics, hear
        self._judged = self._seen = content_of(file) if file else b""
        self.document = document_in(self._judged, file) if file else Document()
        self._tell_idle(self.document)

    async def run(self, pace: Pace) -> None:
        """Look at the file again and again."""
        while True:
            await pace.sleep(INTERVAL_S)
            if self._file:
                await self._look()

    async def _look(self) -> None:
        """Judge a new content that two looks in a row have found: a file that is being written is half of itself."""
        content = await asyncio.to_thread(content_of, self._file)
        is_settled, self._seen = content == self._seen, content
        if is_settled and content != self._judged:
            self._judged = content
            # In a thread: the verbs do not wait for YAML.
            judged = await asyncio.to_thread(_judged, content, self._file)
            if isinstance(judged, Invalid):
                self._refuse(judged)
            else:
                self._take(judged)

    def _refuse(self, invalid: Invalid) -> None:
        fields = {FILE: self._file, COUNT: len(invalid.complaints), PROBLEM: "; ".join(invalid.complaints)}
        LOG.error("placement document refused, the earlier one stays in use", extra=fields)
        self._metrics.placement(is_valid=False)

    def _take(self, document: Document) -> None:
        LOG.info("placement document taken", extra={FILE: self._file})
        self._metrics.placement(is_valid=True)
        self._tell_idle(document)
        if document != self.document:
            self.document = document
            self._hear(document)

    def _tell_idle(self, document: Document) -> None:
        for said in document.idle:
            LOG.warning("a key of the placement document has no effect", extra={FILE: self._file, PROBLEM: said})


def _judged(content: bytes | str, file: str) -> Document | Invalid:
    try:
        return document_in(content, file)
    except Invalid as invalid:
        return invalid
