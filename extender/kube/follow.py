"""One resource, listed and then watched, for ever."""

from dataclasses import dataclass, field
from typing import NoReturn

from extender.kube.api import Api
from extender.kube.pace import Pace, Turns
from extender.kube.resource import Resource
from extender.kube.told import Sink
from extender.kube.versions import Versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """How following goes about it. All follows of a process share one *turns*."""

    pace: Pace = field(default_factory=Pace)
    turns: Turns = field(default_factory=Turns)
    page_items: int = 250
    silence_s: float = 150.0  # bookmarks come once a minute: after two of them missing, the connection is dead
    bookmark_s: float | None = None  # a limit tighter than a minute makes bookmarks come as often as that


async def follow(api: Api, versions: Versions, resource: Resource, sink: Sink, rhythm: Rhythm) -> NoReturn:
    """Keep a list and then a watch of *resource* going until cancelled, and tell *sink* in order.

    ``Listed`` comes first, and again after every gap that a watch cannot close; ``Changed`` and ``Gone`` follow in the
    order of their resourceVersions, none twice and none backwards; ``Seen`` says up to which version all has been told.
    A resource that is not served is told as an empty ``Listed`` and ``Unserved``, and looked for again.
    """
    raise NotImplementedError(api, versions, resource, sink, rhythm)
