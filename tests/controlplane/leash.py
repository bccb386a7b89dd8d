"""Becomes a program that the kernel kills when its starter ends, however that ends: leash.py STARTER PROGRAM ARGUMENTS.

The starter is a thread to the kernel, so programs are started from threads that last: the main one.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(starter: str, program: str, *arguments: str) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # A starter that ended before the call is not noticed by the kernel.
    if os.getppid() == int(starter):
        os.execv(program, [program, *arguments])  # noqa: S606 - to become the program is the point


if __name__ == "__main__":
    main(*sys.argv[1:])
