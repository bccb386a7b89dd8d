"""Credentials as kubectl finds them: a kubeconfig, or what a pod is given. Rotated files are re-read."""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from extender.kube.access import Access, Loaded, sendable, server_of
from extender.kube.contents import Reading, contents_of
from extender.kube.kubeconfig import context_of, kubeconfig_of
from extender.model.parse.fields import Fields, Malformed
from extender.telemetry import keys

LOG: Final = logging.getLogger(__name__)
LOOK_EVERY_S: Final = 10.0
# A plugin that takes longer will not answer any more: the next request runs it anew.
LONGEST_LOAD_S: Final = 120.0
MOUNTED: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST: Final = "KUBERNETES_SERVICE_HOST"
PORT: Final = "KUBERNETES_SERVICE_PORT"
NAMED: Final = "KUBECONFIG"


class NoCredentials(Exception):  # noqa: N818 - says what is missing, and is caught by that name
    """There is no configuration of a cluster, or it cannot be read."""


class FileCredentials:
    """Access read by *load*, and again when one of its files has changed. Where that fails, what there was is kept.

    So it is where another server is named: whatever we know is of the cluster at which we began, and another one would
    be written to by that.

    It is read once at a time, and to the end, however long whoever asked first may wait: a plugin can take longer than
    a request, and whoever comes next waits for the same. Close it when done.
    """

    def __init__(self, load: Callable[[], Awaitable[Loaded]], now: Callable[[], float] = time.monotonic) -> None:
        self._load = load
        self._now = now
        self._loading: asyncio.Task[None] | None = None
        self._loaded: Loaded | None = None
        self._refused: Access | None = None
        self._why = ""  # what was read last was not taken
        self._is_other = False  # the files were others than those in use
        self._looked = 0.0

    async def access(self) -> Access:
        if self._loaded is None:
            await self.renew()
        elif self._now() - self._looked >= LOOK_EVERY_S:
            self._looked = self._now()
            was_other, self._is_other = self._is_other, contents_of(self._loaded.files) != self._loaded.files
            # What was refused may be taken back: then all is as before, and that is told.
            if self._is_other or (was_other and self._why):
                await self.renew()
        if self._loaded is None:
            raise NoCredentials("no credentials were loaded")
        return self._loaded.access

    async def renew(self, refused: Access | None = None) -> None:
        if refused is not None and self._loaded is not None:
            # Of many requests that are refused at once the first asks a plugin, and all others use what that has given.
            if self._loaded.access is not refused:
                return
            self._refused = refused
        loading = self._begun()
        try:
            await asyncio.shield(loading)
        finally:
            if loading.done() and self._loading is loading:
                self._loading = None

    async def aclose(self) -> None:
        """Give up what is being read."""
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)

    def _begun(self) -> asyncio.Task[None]:
        if self._loading is None:
            self._looked = self._now()
            self._loading = asyncio.create_task(self._read())
            self._loading.add_done_callback(self._ended)
        return self._loading

    def _ended(self, loading: asyncio.Task[None]) -> None:
        # Where nobody waits any more, whoever comes next is told what went wrong.
        if loading.cancelled() or loading.exception() is None:
            self._loading = None

    async def _read(self) -> None:
        try:
            # At the start a plugin may be waiting for somebody who logs in.
            async with asyncio.timeout(LONGEST_LOAD_S if self._loaded else None):
                loaded = await self._load()
        except (OSError, ValueError) as error:
            if self._loaded is None:
                raise NoCredentials(str(error)) from error
            self._tell(str(error) or f"nothing came within {LONGEST_LOAD_S:g} s")
            return
        self._take(loaded)

    def _take(self, loaded: Loaded) -> None:
        known = self._loaded
        if known is not None and loaded.access.server != known.access.server:
            self._tell(f"{loaded.access.server} is another server than {known.access.server}; a restart goes there")
            return
        self._tell(loaded.flaw)
        # As in client-go, what was read last from a file of tokens counts until it is refused.
        was_read = known is not None and known.files.get(loaded.lacks)
        if not was_read or (known and known.access is self._refused):
            self._loaded = loaded

    def _tell(self, why: str) -> None:
        """Say why what there was is in use still, if it is: once, though the files are read again every few seconds."""
        if why and why != self._why:
            LOG.warning("credentials refused, the earlier ones stay in use", extra={keys.ERROR: why})
        if self._why and not why:
            LOG.info("credentials taken")
        self._why = why


async def credentials(kubeconfig: str | None = None) -> FileCredentials:
    """Return the credentials of *kubeconfig*; without one those that $KUBECONFIG names, of the pod, or by default.

    Who names another cluster in a pod, as in a pipeline, does not mean the one that the pod is part of.
    """
    if kubeconfig is None and HOST in os.environ and not os.environ.get(NAMED):
        found = FileCredentials(_of_this_pod())
    else:
        found = FileCredentials(_of_one_context(kubeconfig))
    try:
        await found.renew()
    except asyncio.CancelledError:
        await found.aclose()
        raise
    return found


def _of_one_context(kubeconfig: str | None) -> Callable[[], Awaitable[Loaded]]:
    """Return what reads the context that is current at first time and again: later people change which is current."""
    chosen: str | None = None

    async def load() -> Loaded:
        nonlocal chosen
        loaded = await from_kubeconfig(kubeconfig, chosen)
        chosen = loaded.context
        return loaded

    return load


def _of_this_pod() -> Callable[[], Awaitable[Loaded]]:
    """Return what reads what this pod is given, time and again."""
    earlier: Loaded | None = None

    async def load() -> Loaded:
        nonlocal earlier
        earlier = await in_cluster(earlier=earlier)
        return earlier

    return load


async def in_cluster(
    token_file: str = str(MOUNTED / "token"), ca_file: str = str(MOUNTED / "ca.crt"), earlier: Loaded | None = None
) -> Loaded:
    """Read what a pod is given: the environment, a bound token and the cluster's authority.

    One that cannot be used, as by half a copy, keeps no token out: there is an *earlier* one, and tokens run out.
    """
    fields, files = Fields(dict(os.environ), ""), Reading()
    host, port = fields.required(HOST), fields.required(PORT)
    server = server_of(f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}", f"{HOST}, {PORT}")
    authorization = f"Bearer {sendable(_written_in(token_file, files), token_file)}"
    tls, flaw = earlier.access.tls if earlier else None, ""
    try:
        tls = context_of(_written_in(ca_file, files).encode(), ca_file)
    except (OSError, ValueError) as error:
        if earlier is None:
            raise
        flaw = str(error)
    return Loaded(Access(server=server, authorization=authorization, tls=tls), files.seen, flaw=flaw)


async def from_kubeconfig(paths: str | None, context: str | None) -> Loaded:
    """Read a kubeconfig, or several merged as in the environment variable."""
    named = paths or os.environ.get(NAMED) or "~/.kube/config"
    files = [path for path in named.split(os.pathsep) if path]
    if len(files) == 1:
        read = kubeconfig_of(files[0], context)
        if read.is_plain:
            return read.loaded()
    from extender.kube import library  # noqa: PLC0415 - only whom it serves pays for it

    return await library.load(named, context)


def _written_in(path: str, files: Reading) -> str:
    try:
        text = files.read(Path(path)).decode().strip()
    except UnicodeDecodeError as error:
        raise Malformed(path, f"is no text: {error}") from error
    if not text:
        raise Malformed(path, "is an empty file")
    return text
