"""Becomes a program that the kernel kills when its starter ends, however that ends: leash.py STARTER PROGRAM ARGUMENTS.

With --host=NAME before PROGRAM, that is what the program takes the machine's name for.

The starter is a thread to the kernel, so programs are started from threads that last: the main one.
"""

import ctypes
import os
import signal
import socket
import sys

PR_SET_PDEATHSIG = 1
NEW_NAMES, NEW_USERS = 0x04000000, 0x10000000
HOST = "--host="


def main(starter: str, program: str, *arguments: str) -> None:
    if program.startswith(HOST):
        # First of all: what makes us somebody else makes the kernel forget to kill us.
        rename(program.removeprefix(HOST))
        program, *rest = arguments
        arguments = tuple(rest)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # A starter that ended before the call is not noticed by the kernel.
    if os.getppid() == int(starter):
        os.execv(program, [program, *arguments])  # noqa: S606 - to become the program is the point


def rename(host: str) -> None:
    """Live on a machine of that name: as its administrator, or as anybody's own."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_NAMES) and libc.unshare(NEW_NAMES | NEW_USERS):
        sys.exit(f"no name of our own: {os.strerror(ctypes.get_errno())}")
    socket.sethostname(host)


if __name__ == "__main__":
    main(*sys.argv[1:])
