"""``dra-extender serve``: answer kube-scheduler, own the allocation of devices."""

import asyncio
import gc
import os
import signal
import sys
from argparse import ArgumentParser, Namespace
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, Final

import uvloop

from extender.cli.complaints import complain
from extender.cli.descriptors import raise_limit
from extender.cli.heap import give_back, settle
from extender.config.flags import add_flags, settings_of
from extender.config.load import Invalid
from extender.config.placement_document import document_at
from extender.config.settings import Settings
from extender.kube.credentials import NoCredentials, credentials
from extender.service.assembly import running
from extender.service.inspection import Unsafe
from extender.service.listener_options import options_of
from extender.telemetry.log import configure as configure_log
from extender.web.server import CannotListen, Options

SUMMARY = "answer kube-scheduler and allocate devices"
DESCRIPTION = (
    "Serve the scheduler's calls until a signal ends it. Settings come from a file, the environment and flags. "
    "Exit status: 0 after a signal, or a check that found nothing, 1 where there is no cluster to be found, "
    "2 for settings that cannot be used, 3 for "
    "settings that are not safe on the cluster that was found, 4 where the cluster was set back, as from a backup: "
    "started anew, it reads everything as it is now."
)
# What pods that came and went have left is holes: the longer they are kept, the more of them are in the way of others.
GIVE_BACK_EVERY_S: Final = 5.0
# A start that takes longer waits for somebody.
START_S: Final = 60.0
SERVED, NO_CLUSTER, UNUSABLE, UNSAFE, SET_BACK = 0, 1, 2, 3, 4


def configure(parser: ArgumentParser) -> None:
    """Add the arguments of this subcommand."""
    add_flags(parser)
    parser.add_argument(
        "--check",
        action="store_true",
        help="read the settings of all three sources, the placement document and the files of TLS as at a start, say "
        "what cannot be used, and end: with 0, or with 2. Neither the cluster nor an address is asked",
    )


def run(arguments: Namespace) -> int:
    """Serve, and return the exit status."""
    try:
        settings = settings_of(arguments, os.environ)
        document_at(settings.placement.file)
        options = options_of(settings)
    except Invalid as invalid:
        complain(*invalid.complaints)
        return UNUSABLE
    if arguments.check:
        return SERVED
    configure_log(sys.stderr, settings.logging.level, settings.logging.format)
    raise_limit()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_serve(settings, options))
    except NoCredentials as error:
        place = settings.api.kubeconfig or "the usual places"
        complain(f"no cluster is configured in {place}: {error}")
        return NO_CLUSTER
    except CannotListen as error:
        complain(f"listen.{error.which}: {error}")
        return UNUSABLE
    except Unsafe as unsafe:
        complain(*unsafe.reasons)
        return UNSAFE


async def _serve(settings: Settings, options: Options) -> int:
    ended = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, ended.set)
    finding = asyncio.create_task(credentials(settings.api.kubeconfig or None))
    # A plugin may be waiting for somebody who logs in.
    if not await before(ended, finding):
        return SERVED
    access = finding.result()
    # What is read at the start stays, and has no circles in it: looking through it, even once, takes half a second.
    gc.disable()
    async with aclosing(access), running(settings, access, options) as service:
        service.health.history.end = ended.set
        if await before(ended, asyncio.create_task(service.ready())):
            settle()
            gc.enable()
            await until(ended)
    return SET_BACK if service.health.history.is_over else SERVED


async def before(ended: asyncio.Event, beginning: "asyncio.Task[Any]") -> bool:
    """Tell whether it has begun before the end: without an API server it does not, and a signal still ends it."""
    ending = asyncio.create_task(ended.wait())
    first = partial(asyncio.wait, (beginning, ending), return_when=asyncio.FIRST_COMPLETED)
    try:
        done, _ = await first(timeout=START_S)
        if not done:
            gc.enable()  # each attempt that fails leaves circles, and there is nothing to hurry for
            await first()
        if beginning.done():
            await beginning
        return not ended.is_set()
    finally:
        beginning.cancel()
        ending.cancel()
        await asyncio.gather(beginning, ending, return_exceptions=True)


async def until(ended: asyncio.Event) -> None:
    """Wait for the end, and give back meanwhile what pods that came and went have left."""
    while not ended.is_set():
        give_back()
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), GIVE_BACK_EVERY_S)
