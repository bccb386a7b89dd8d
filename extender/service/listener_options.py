"""Where and how to listen, out of the settings."""

from pathlib import Path

from extender.config.address import address_of, without_lookup
from extender.config.load import Invalid
from extender.config.settings import Settings
from extender.web.listener import MEBIBYTE, ListenerLimits
from extender.web.server import Address, Options
from extender.web.tls import Certificates, Files


def options_of(settings: Settings) -> Options:
    """Return the options of the server; raise Invalid where the files of TLS cannot be used."""
    listen, tls = settings.listen, settings.tls
    files = Files(
        Path(tls.certificate), Path(tls.key), Path(tls.client_authorities) if tls.client_authorities else None
    )
    if tls.certificate:
        try:
            Certificates(files)
        except OSError as error:
            raise Invalid([str(error)]) from error
    return Options(
        verbs=Address(*without_lookup(address_of(listen.verbs))),
        probes=Address(*address_of(listen.probes)) if listen.probes else None,
        limits=ListenerLimits(
            keep_alive_seconds=listen.keep_alive_seconds,
            max_body_bytes=listen.max_body_mebibytes * MEBIBYTE,
            shutdown_seconds=listen.shutdown_seconds,
        ),
        tls=files if tls.certificate else None,
        client_names=frozenset(tls.client_names),
        is_fast=settings.fast_paths,
    )
