"""What a command cannot answer, told on standard error, and the exit statuses that say so."""

import sys

ANSWERED, UNREADABLE, WRONG_USAGE = 0, 1, 2


def complain(*messages: str) -> None:
    """Write each of *messages* on a line."""
    sys.stderr.writelines(f"dra-extender: {message}\n" for message in messages)


def refuse(*messages: str) -> int:
    """Say what is wrong with what was asked, and return the status of that."""
    complain(*messages)
    return WRONG_USAGE
