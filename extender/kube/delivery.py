"""From the lines of a watch to the sink: in order, nothing twice, nothing backwards."""

from collections.abc import Iterator

from extender.kube.recent import TOLD_TWICE, Recent
from extender.kube.resource import Served
from extender.kube.setback import Remedy, Setback
from extender.kube.stream import Event, event_of, is_newer
from extender.kube.told import Sink
from extender.model.change import Changed, Gone, Noun
from extender.model.parse import key_in
from extender.model.problem import Problem


class Delivery:
    """What one watch delivers. *position* is the version up to which all was told, *setback* why it must end.

    *count* is how often there was news.
    """

    def __init__(self, served: Served, sink: Sink, position: str, recent: Recent) -> None:
        self.served = served
        self._sink = sink
        self._recent = recent
        self.position = position
        self.setback: Setback | None = None
        self.count = 0

    def steps(self, lines: list[bytes]) -> Iterator[None]:
        """Deliver *lines*, one at each step, up to the first that ends the watch."""
        for line in lines:
            event = event_of(line, self.served.resource.reading)
            if isinstance(event, Event):
                self._take(event)
            else:
                self.setback = event
            if self.setback:
                return
            yield

    def _take(self, event: Event) -> None:
        is_news = is_newer(event.version, self.position)
        if event.type == "BOOKMARK":
            self._mark(event, is_news=is_news)
        elif is_news:
            self._tell(event)
        # A bookmark of the same version is sent by one that hears no more from the store, too.
        self.count += is_news

    def _mark(self, event: Event, *, is_news: bool) -> None:
        """Take a bookmark. One of the past means that the cluster was set back: what we know is of another future."""
        if is_news:
            self.position = event.version
        elif is_newer(self.position, event.version):
            self.setback = Setback(f"a bookmark at {event.version}, after {self.position}", Remedy.RELIST)

    def _tell(self, event: Event) -> None:
        if event.type == "DELETED":
            self._sink(Gone(self.served.resource.kind, key_in(event.object)))
        else:
            self._sink(Changed(self.served.brief(event.object) or self._read(event)))
        self.position = event.version

    def _read(self, event: Event) -> Noun | Problem:
        resource, version, raw = self.served.resource, self.served.version, event.object
        if resource.kind not in TOLD_TWICE:
            return resource.parse(raw, version)
        return self._recent.read(resource.kind, raw, lambda: resource.parse(raw, version), event.length)
