"""Kubeconfigs that take more than reading, left to ``kubernetes``: programs that are run, tokens that are asked for.

Importing it takes a third of a second and 23 MB: nobody imports this who has a plain kubeconfig, or runs in a pod.
Configuration is all that is used of it: its requests, watches and models are not.
"""

import asyncio
import os
import signal
import ssl
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, load_kube_config

from extender.kube.access import Access, Loaded, sendable, server_of
from extender.kube.contents import Reading, contents_of
from extender.kube.kubeconfig import PLUGINS, context_of, present, refuse_impersonation, token_of, unverified, wrong_in
from extender.model.parse.fields import Fields

# The library has no types for what it loads with.
LOAD_KUBECONFIG: Final[Callable[..., Awaitable[Any]]] = load_kube_config
TOKEN: Final = "BearerToken"  # noqa: S105 - the name under which the library keeps it


async def load(paths: str, context: str | None) -> Loaded:
    """Read a kubeconfig, or several merged as in the environment variable; raise ValueError where that cannot be."""
    configuration = Configuration()
    # Looked at before: what is replaced while a program runs is seen by the next look.
    files = Reading(contents_of(map(os.path.expanduser, filter(None, paths.split(os.pathsep)))))
    others = _children()
    try:
        loader = await LOAD_KUBECONFIG(paths, context, configuration, persist_config=False)
    except asyncio.CancelledError:
        _end(_children() - others)
        raise
    except yaml.YAMLError as error:
        raise ValueError(f"{paths}: {wrong_in(error)}") from None
    except (ValueError, LookupError, RecursionError):
        # As with one file: a value with a type of its own is told with the value in it.
        raise ValueError(
            f"{paths}: a value is not what it is said to be, or is not there, or stands too deep"
        ) from None
    except (ConfigException, AttributeError, TypeError) as error:
        # It takes what it reads for what it should be, and calls a part by all that is in it, tokens included.
        raise ValueError(f"{paths}: {str(error).partition('{')[0]}") from None
    refuse_impersonation(_user(loader))
    token, lacks = token_of(_user(loader), _kubeconfig(loader), files)
    if token:
        # The library takes a token before that of a file, and a plugin's before either.
        configuration.api_key[TOKEN] = f"Bearer {token}"
    if not (configuration.api_key.get(TOKEN) or configuration.cert_file):
        _refuse_nobody(_user(loader), paths)
    return Loaded(_access(configuration, files), files.seen, lacks, loader.current_context["name"])


def _children() -> set[int]:
    """Return the processes that this thread has begun, as far as the system tells."""
    try:
        return set(map(int, Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()))
    except OSError:
        return set()


def _end(plugins: set[int]) -> None:
    """End programs that nobody waits for any more: the library keeps to itself which it has begun."""
    for plugin in plugins:
        with suppress(ProcessLookupError):
            os.kill(plugin, signal.SIGTERM)


def _refuse_nobody(user: Fields, paths: str) -> None:
    """Raise ValueError where a plugin was to say who we are: as nobody we would go on, and not ask it again.

    The library says in the log alone that one has failed.
    """
    for plugin in PLUGINS:
        if user.has(plugin):
            raise ValueError(f"{paths}: {user.at(plugin)}: no credentials came of it; the line before says why")


def _access(configuration: Any, files: Reading) -> Access:  # noqa: ANN401 - the library has no types
    """Take what we need out of the library's configuration."""
    scheme, _, token = (configuration.api_key.get(TOKEN) or "").strip().partition(" ")
    return Access(
        server=server_of(configuration.host, "cluster.server"),
        authorization=f"{scheme.capitalize()} {sendable(token.strip(), 'user')}" if token else "",
        tls=_context(configuration, files) if configuration.host.startswith("https") else None,
        server_name=configuration.tls_server_name,
        proxy=configuration.proxy,
    )


def _context(configuration: Any, files: Reading) -> ssl.SSLContext:  # noqa: ANN401 - the library has no types
    authority, certificate, key = (
        files.read(Path(path)) if path else None
        for path in (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    )
    context = context_of(authority, "certificate-authority")
    if certificate is not None:
        present(context, certificate, key, "client-certificate")
    return context if configuration.verify_ssl else unverified(context)


def _user(loader: Any) -> Fields:  # noqa: ANN401 - the library has no types
    user = loader._user  # noqa: SLF001 - the library passes over what it does not understand
    # The library's name of it would tell the token.
    return Fields.of(user.value if user else None, "user")


def _kubeconfig(loader: Any) -> Path:  # noqa: ANN401 - the library has no types
    user = loader._user  # noqa: SLF001 - the library keeps to itself which of several files the user is from
    return Path(user.path if user and user.path else "")
