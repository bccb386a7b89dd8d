"""The memory of this process: what is read at the start stays, and is not looked through for garbage."""

import ctypes
import gc
from collections.abc import Mapping
from typing import Final

# Objects that have come and not gone before the youngest are looked through, and how often the older ones are then.
# Hardly anything here needs the collector: with the interpreter's own numbers it took a fourteenth of all time.
THRESHOLDS: Final = (20_000, 5, 10)
OLDEST: Final = 2
# glibc's M_TRIM_THRESHOLD and M_MMAP_THRESHOLD, in bytes: columns of a fleet's devices still come from the heap.
LIMITS: Final = ((-1, 2 << 20), (-3, 1 << 20))


def settle() -> None:
    """Take all that is there for what stays, and give the system back what reading it has left."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    if _keep not in gc.callbacks:
        gc.callbacks.append(_keep)
    _tune()
    give_back()


def _keep(phase: str, info: Mapping[str, int]) -> None:
    """Leave alone for good what a look through everything has left: the next look would stall verbs for all of it.

    Circles that are in use then, as connections have them, are not freed when they end. It is as rare as memory grows.
    """
    if phase == "stop" and info["generation"] == OLDEST:
        gc.freeze()


def give_back() -> None:
    """Give the system back what nobody uses any more, where the C library can: what goes leaves holes.

    It takes half a millisecond, or two where much has gone.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _tune() -> None:
    """Have the C library keep little: glibc takes ever larger blocks from the heap, and keeps ever more of its end."""
    tune = getattr(ctypes.CDLL(None), "mallopt", None)
    if tune is not None:
        for parameter, number in LIMITS:
            tune(parameter, number)
