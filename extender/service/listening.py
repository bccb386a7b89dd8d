"""Where and how to listen, out of the settings."""

from pathlib import Path

from extender.config.address import address_of
from extender.config.settings import Settings
from extender.web.listener import MEBIBYTE, Terms
from extender.web.server import Address, Options
from extender.web.tls import Files


def options_of(settings: Settings) -> Options:
    """Return the options of the server."""
    listen, tls = settings.listen, settings.tls
    files = Files(
        Path(tls.certificate), Path(tls.key), Path(tls.client_authorities) if tls.client_authorities else None
    )
    return Options(
        verbs=Address(*address_of(listen.verbs)),
        probes=Address(*address_of(listen.probes)) if listen.probes else None,
        terms=Terms(
            keep_alive_seconds=listen.keep_alive_seconds,
            max_body_bytes=listen.max_body_mebibytes * MEBIBYTE,
            shutdown_seconds=listen.shutdown_seconds,
        ),
        tls=files if tls.certificate else None,
        is_fast=settings.fast_paths,
    )
