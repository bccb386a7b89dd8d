"""Credentials as kubectl finds them: a kubeconfig, or what a pod is given. Rotated files are re-read.

Configuration is all that is used of ``kubernetes``: its requests, watches and models are not.
"""

import asyncio
import os
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kubernetes.aio.client import Configuration
from kubernetes.aio.config import KUBE_CONFIG_DEFAULT_LOCATION, ConfigException, load_kube_config
from kubernetes.aio.config.incluster_config import (
    SERVICE_CERT_FILENAME,
    SERVICE_TOKEN_FILENAME,
    InClusterConfigLoader,
)

from extender.kube.access import Access

LOOK_EVERY_S: Final = 10.0
# The library has no types for what it loads with.
LOAD_KUBECONFIG: Final[Callable[..., Awaitable[Any]]] = load_kube_config
IN_CLUSTER: Final[Callable[..., Any]] = InClusterConfigLoader
TOKEN: Final = "BearerToken"  # noqa: S105 - the name under which the library keeps it

Stamp = tuple[tuple[str, int, int], ...]


class NoCredentials(Exception):  # noqa: N818 - says what is missing, and is caught by that name
    """There is no configuration of a cluster, or it cannot be read."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Access, and the files that it was read from."""

    access: Access
    files: tuple[str, ...]


class FileCredentials:
    """Access read by *load*, and again when one of its files has changed. Where that fails, what there was is kept."""

    def __init__(self, load: Callable[[], Awaitable[Loaded]], now: Callable[[], float] = time.monotonic) -> None:
        self._load = load
        self._now = now
        self._lock = asyncio.Lock()
        self._loaded: Loaded | None = None
        self._stamp: Stamp = ()
        self._looked = 0.0

    async def access(self) -> Access:
        if self._loaded is None:
            await self.renew()
        elif self._now() - self._looked >= LOOK_EVERY_S:
            self._looked = self._now()
            if stamp_of(self._loaded.files) != self._stamp:
                await self.renew()
        if self._loaded is None:
            raise NoCredentials("no credentials were loaded")
        return self._loaded.access

    async def renew(self) -> None:
        async with self._lock:
            self._looked = self._now()
            try:
                self._loaded = await self._load()
            except (ConfigException, OSError, ssl.SSLError, ValueError) as error:
                if self._loaded is None:
                    raise NoCredentials(str(error)) from error
                return
            self._stamp = stamp_of(self._loaded.files)


async def credentials(kubeconfig: str | None = None, context: str | None = None) -> FileCredentials:
    """Return the credentials of *kubeconfig*; without one those of the pod, or of the default kubeconfig."""
    if kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        found = FileCredentials(in_cluster)
    else:
        found = FileCredentials(lambda: from_kubeconfig(kubeconfig, context))
    await found.renew()
    return found


async def in_cluster(token_file: str = SERVICE_TOKEN_FILENAME, ca_file: str = SERVICE_CERT_FILENAME) -> Loaded:
    """Read what a pod is given: the environment, a bound token and the cluster's authority."""
    configuration = Configuration()
    IN_CLUSTER(token_file, ca_file, try_refresh_token=False).load_and_set(configuration)
    return loaded_from(configuration, (token_file,))


async def from_kubeconfig(path: str | None, context: str | None) -> Loaded:
    """Read a kubeconfig, or several merged as in the environment variable."""
    configuration = Configuration()
    loader = await LOAD_KUBECONFIG(path, context, configuration, persist_config=False)
    named = (path or KUBE_CONFIG_DEFAULT_LOCATION).split(os.pathsep)
    return loaded_from(configuration, (*map(os.path.expanduser, named), *_token_file(loader)))


def loaded_from(configuration: Any, files: Iterable[str]) -> Loaded:  # noqa: ANN401 - the library has no types
    """Take what we need out of the library's configuration."""
    scheme, _, token = (configuration.api_key.get(TOKEN) or "").strip().partition(" ")
    access = Access(
        server=configuration.host.rstrip("/"),
        authorization=f"{scheme.capitalize()} {token.strip()}" if token else "",
        tls=_context(configuration) if configuration.host.startswith("https") else None,
        server_name=configuration.tls_server_name,
        proxy=configuration.proxy,
    )
    used = (*files, configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    return Loaded(access, tuple(str(path) for path in used if path))


def _context(configuration: Any) -> ssl.SSLContext:  # noqa: ANN401 - the library has no types
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    # Clusters have authorities that Go accepts and that the strict flag of newer Pythons does not.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _token_file(loader: Any) -> tuple[str, ...]:  # noqa: ANN401 - the library has no types
    user = loader._user  # noqa: SLF001 - the library keeps to itself which file the token is from
    name = user.safe_get("tokenFile") if user else None
    return (str(Path(user.path or "").parent / name),) if name else ()


def stamp_of(files: Iterable[str]) -> Stamp:
    """Return what tells whether one of *files* has changed. The links of a mounted secret are followed."""
    return tuple((path, *_state(path)) for path in files)


def _state(path: str) -> tuple[int, int]:
    try:
        state = Path(path).stat()
    except OSError:
        return (0, 0)
    return (state.st_mtime_ns, state.st_ino)
