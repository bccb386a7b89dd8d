"""How far the API server is, asked cheaply."""

from typing import Final

from extender.kube.api import Api
from extender.kube.page import page_of
from extender.kube.resource import Served
from extender.kube.setback import Setback

PROBE_TIMEOUT_S: Final = 5.0


async def probe(api: Api, served: Served) -> str | Setback:
    """Return the version of the cluster: no write of before this call has a later one.

    A view of *served* that has reached it is current. One that has not may be so too: versions are counted for all
    resources together. Asking makes the API server's own view of *served* catch up, so that bookmarks tell.
    """
    page = page_of(await api.call("GET", served.path(), query=(("limit", "1"),), timeout_s=PROBE_TIMEOUT_S))
    return page if isinstance(page, Setback) else page.version
