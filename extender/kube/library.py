"""Kubeconfigs that take more than reading, left to ``kubernetes``: programs that are run, tokens that are asked for.

Importing it takes a third of a second and 23 MB: nobody imports this who has a plain kubeconfig, or runs in a pod.
Configuration is all that is used of it: its requests, watches and models are not.
"""

import os
import ssl
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, load_kube_config

from extender.kube.access import Access, Loaded
from extender.kube.kubeconfig import lenient, refuse_impersonation
from extender.model.parse.fields import Fields

# The library has no types for what it loads with.
LOAD_KUBECONFIG: Final[Callable[..., Awaitable[Any]]] = load_kube_config
TOKEN: Final = "BearerToken"  # noqa: S105 - the name under which the library keeps it


async def load(paths: str, context: str | None) -> Loaded:
    """Read a kubeconfig, or several merged as in the environment variable; raise ValueError where that cannot be."""
    configuration = Configuration()
    try:
        loader = await LOAD_KUBECONFIG(paths, context, configuration, persist_config=False)
    except (ConfigException, yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        # It takes what it reads for what it should be, and calls a part by all that is in it, tokens included.
        raise ValueError(f"{paths}: {str(error).partition('{')[0]}") from None
    refuse_impersonation(_user(loader))
    return loaded_from(configuration, (*map(os.path.expanduser, paths.split(os.pathsep)), *_token_file(loader)))


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
    context = lenient(ssl.create_default_context(cafile=configuration.ssl_ca_cert))
    if configuration.cert_file:
        # A key that needs a password is an error; by default somebody would be asked for it.
        context.load_cert_chain(configuration.cert_file, configuration.key_file, password="")
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _user(loader: Any) -> Fields:  # noqa: ANN401 - the library has no types
    user = loader._user  # noqa: SLF001 - the library passes over what it does not understand
    # The library's name of it would tell the token.
    return Fields.of(user.value if user else None, "user")


def _token_file(loader: Any) -> tuple[str, ...]:  # noqa: ANN401 - the library has no types
    user = loader._user  # noqa: SLF001 - the library keeps to itself which file the token is from
    name = user.safe_get("tokenFile") if user else None
    return (str(Path(user.path or "").parent / name),) if name else ()
