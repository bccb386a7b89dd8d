"""One resource, listed and then watched, for ever."""

from dataclasses import field, replace
from typing import Final, NoReturn

from extender.kube.api import Api, Stream
from extender.kube.delivery import Delivery
from extender.kube.listing import Listing, PageSize, Recall, itself
from extender.kube.pace import Backoff, Pace, Turns
from extender.kube.probe import probe
from extender.kube.reached import Reached
from extender.kube.recent import Recent
from extender.kube.request import Query
from extender.kube.resource import Glance, Resource, Served, nothing
from extender.kube.setback import Remedy, Setback, setback_of
from extender.kube.stream import Lines, is_newer
from extender.kube.told import Reverted, Seen, Sink, Trouble, Unserved
from extender.kube.versions import Versions
from extender.kube.watches import Watches
from extender.model.change import Listed
from extender.model.frozen import dataclass

# What is not served may come with others, which mean nothing without it: devices look free as long as no claims do.
LOOK_AGAIN_S: Final = 15.0
# A watch that ends sooner than this, and has brought nothing, is one that may end again and again.
SHORT_LIFE_S: Final = 5.0
WATCH_S: Final = 300.0
# The API server sends a bookmark two seconds before a watch ends: what is asked for so briefly gets one after a second.
CHECK_S: Final = 3.0
# The API server counts the seconds of a watch from a little before we do, and in whole ones.
EARLY_S: Final = 1.5
# Between two looks at a cluster that is behind what was known of it.
LOOK_S: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """How following goes about it. All follows of a process share all of it, one after the other too.

    *reached* says how far each resource was known: whoever follows it anew may meet a cluster that was set back.
    *recall* is asked of each object that is listed for the one that is told: one that is known already and says the
    same is taken over at once, where thousands are listed again. What *glance* says of an object is told in its place.
    """

    pace: Pace = field(default_factory=Pace)
    turns: Turns = field(default_factory=Turns)
    recent: Recent = field(default_factory=Recent)
    watches: Watches = field(default_factory=Watches)
    recall: Recall = itself
    glance: Glance = nothing
    reached: Reached = field(default_factory=Reached)
    page_items: int = 250
    quiet_s: float = 75.0  # bookmarks come once a minute, and not at all where nothing happens: then it is asked


async def follow(api: Api, versions: Versions, resource: Resource, sink: Sink, rhythm: Rhythm) -> NoReturn:
    """Keep a list and then a watch of *resource* going until cancelled, and tell *sink* in order.

    ``Listed`` comes first, and again after every gap that a watch cannot close; ``Changed`` and ``Gone`` follow in the
    order of their resourceVersions, none twice and none backwards; ``Seen`` says up to which version all has been told.
    A resource that is not served is told as an empty ``Listed`` and ``Unserved``, and looked for again. One that was
    served is not told so before it has been absent for long: until then nothing is told but ``Trouble``.
    """
    following = _Following(api, resource, sink, rhythm)
    # What an earlier follow did not find may have come since, and whoever has all listed anew is to know that.
    versions.forget_absence(resource)
    while True:
        served = await versions.find(resource)
        remedy = await following.once(served and replace(served, glance=rhythm.glance))
        if remedy is Remedy.REDISCOVER:
            versions.forget(resource)


class _Following:
    """Where one follow is: *position* is the version up to which all was told; without one, a list is next.

    *heard* is when there was news last, or it was found that there is none; *opened*, when the last watch was. *listed*
    is the version of the last list. Where a watch from that finds it too old already, the list has taken too long, and
    the next one has larger pages.

    One that is *shaken* asks how far the cluster is before it goes on: a store is restored while API servers are away,
    and a watch from a version that the cluster no longer has brings nothing until it has come there again. A cluster
    that is behind is looked at again and again: it was set back where that lasts.
    """

    def __init__(self, api: Api, resource: Resource, sink: Sink, rhythm: Rhythm) -> None:
        self._api = api
        self._resource = resource
        self._sink = sink
        self._rhythm = rhythm
        self._pace = rhythm.pace
        self._backoff = Backoff(rhythm.pace)
        self._position = self._listed = ""
        self._page_size = PageSize(rhythm.page_items)
        self._barren, self._heard = 0, self._pace.now()
        self._opened = self._heard
        self._is_in_doubt = self._is_shaken = self._is_absent = False

    async def once(self, served: Served | None) -> Remedy:
        """List, or watch until that ends; say what is to be done before the next time."""
        if served is None:
            return await self._unserved()
        self._is_absent = False
        setback = await (self._watch(served) if self._position else self._list(served))
        if setback is None:
            return Remedy.AGAIN
        self._is_shaken = True
        self._trouble(setback)
        if setback.is_expired and self._position == self._listed:
            self._page_size.grow()
        if setback.remedy is not Remedy.AGAIN:
            self._position = ""
        if setback.is_behind:
            await self._pace.sleep(LOOK_S * (1 + self._pace.chance()))
        else:
            await self._backoff.wait(setback.pause_s)
        return setback.remedy

    def _trouble(self, setback: Setback) -> None:
        self._sink(Trouble(self._resource, setback.why, setback.is_behind))

    async def _unserved(self) -> Remedy:
        self._position = ""
        if not self._is_absent:
            self._sink(Listed(self._resource.kind, (), is_served=False))
        self._is_absent = True
        # Each time: what kept us from looking before is over.
        self._sink(Unserved(self._resource, self._pace.now()))
        await self._pace.sleep(LOOK_AGAIN_S * (1 + self._pace.chance()))
        return Remedy.REDISCOVER

    async def _list(self, served: Served) -> Setback | None:
        reached, known = self._rhythm.reached, self._rhythm.reached.known(self._resource)
        # One question is cheaper than a list; the one that decides is a list.
        is_for_now = reached.is_for_now(self._resource, self._pace.now())
        if is_for_now and isinstance(found := await self._probed(served), Setback):
            return found
        listing = Listing(self._api, served, self._rhythm.turns, self._page_size, self._rhythm.recall)
        self._rhythm.recent.forget()
        asked = self._pace.now()
        version = await listing.read(self._pace, self._trouble)
        if isinstance(version, Setback):
            return version
        if reached.is_behind(self._resource, version, asked, self._pace.now()):
            if reached.is_for_now(self._resource, asked):
                return self._behind(version)
            self._sink(Reverted(self._resource, known, version))
        self._sink(Listed(self._resource.kind, tuple(listing.items)))
        self._advance(version, asked)
        self._listed = version
        return None

    async def _watch(self, served: Served) -> Setback | None:
        if self._is_shaken and isinstance(setback := await self._resumed(served), Setback):
            return setback
        began, before, was_in_doubt = self._pace.now(), self._position, self._is_in_doubt
        seconds = self._seconds()
        opened = await self._api.open(served.path(), self._query(seconds))
        if not isinstance(opened, Stream):
            return setback_of(opened)
        self._opened = began
        delivery = Delivery(served, self._sink, before, self._rhythm.recent)
        with self._rhythm.watches.reading(self._resource, opened, began):
            setback = await self._drain(opened, delivery)
        if self._position != self._listed:
            self._page_size.reset()
        is_ours, lived_s = self._is_in_doubt and not was_in_doubt, self._pace.now() - began
        is_fruitful = self._position != before or is_ours or lived_s >= SHORT_LIFE_S
        self._is_shaken = not is_ours and lived_s < seconds - EARLY_S
        self._barren = 0 if is_fruitful else self._barren + 1
        if is_fruitful:
            self._backoff.reset()
        if setback is None and self._barren > 1:
            return Setback("the watch ends again and again without an event")
        return setback

    async def _drain(self, stream: Stream, delivery: Delivery) -> Setback | None:
        """Take events as they come; None where the stream just ended, as the API server ends that of a slow client."""
        lines = Lines()
        while chunk := await self._read(stream, delivery.served):
            if isinstance(chunk, Setback):
                return chunk
            at, before = self._pace.now(), delivery.count
            await self._rhythm.turns.take(delivery.steps(lines.feed(chunk)))
            if delivery.count != before:
                self._advance(delivery.position, at)
            if delivery.setback:
                return delivery.setback
            if self._resource.rest_s:
                await self._pace.sleep(self._resource.rest_s)
        return None

    async def _read(self, stream: Stream, served: Served) -> bytes | Setback:
        """Return what the stream brings next, empty at its end; a stream without news is asked about."""
        # A brief watch is left the time to end by itself.
        patience_s = max(self._rhythm.quiet_s, 2 * CHECK_S) if self._is_in_doubt else self._rhythm.quiet_s
        while True:
            since = self._opened if self._is_in_doubt else self._heard
            chunk = await stream.read(max(0.0, since + patience_s - self._pace.now()))
            if isinstance(chunk, bytes):
                return chunk
            setback = await self._ask(served) if chunk is None else setback_of(chunk)
            if setback or self._is_in_doubt:
                return setback or b""

    async def _ask(self, served: Served) -> Setback | None:
        """Find out whether anything can have happened while the stream was quiet.

        Where the version of the whole cluster has moved on we are in doubt: brief watches follow, until one brings
        either an event that the quiet one has lost, or a bookmark which says that there was none.
        """
        asked = self._pace.now()
        version = await self._probed(served)
        if isinstance(version, Setback):
            return version
        self._is_in_doubt = is_newer(version, self._position)
        if not self._is_in_doubt:
            self._advance(self._position, asked)
        return None

    async def _resumed(self, served: Served) -> Setback | None:
        """Find out how far the cluster is before another watch, and what that means where nothing was heard for long.

        Watches may be cut again and again before anybody asks about them, as by a proxy that ends what is quiet.
        """
        if self._pace.now() - self._heard >= self._rhythm.quiet_s:
            return await self._ask(served)
        version = await self._probed(served)
        return version if isinstance(version, Setback) else None

    async def _probed(self, served: Served) -> str | Setback:
        """Return how far the cluster is; that it is not even where we are is a setback."""
        asked = self._pace.now()
        version = await probe(self._api, served)
        if isinstance(version, Setback):
            return version
        is_behind = self._rhythm.reached.is_behind(self._resource, version, asked, self._pace.now())
        return self._behind(version) if is_behind else version

    def _behind(self, version: str) -> Setback:
        known = self._rhythm.reached.known(self._resource)
        return Setback(f"the cluster is at {version}, after {known}", Remedy.RELIST, is_behind=True)

    def _advance(self, version: str, at: float) -> None:
        self._position, self._heard = version, self._pace.now()
        self._rhythm.reached.put(self._resource, version)
        self._is_in_doubt = self._is_shaken = False
        self._sink(Seen(self._resource, version, at))

    def _seconds(self) -> float:
        """Return after how long a watch is to end by itself, which differs from client to client."""
        return CHECK_S if self._is_in_doubt else WATCH_S * (1 + self._pace.chance())

    def _query(self, seconds: float) -> Query:
        return (
            *self._resource.query,
            ("watch", "true"),
            ("resourceVersion", self._position),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", f"{seconds:.0f}"),
        )
