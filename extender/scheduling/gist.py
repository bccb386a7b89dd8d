"""What is wrong with a pod, whichever device, number or new name tells it this time: what is told once goes by that."""

import re
from typing import Final

from extender.scheduling.decision import Decision
from extender.scheduling.endings import Ending
from extender.scheduling.vocabulary import Word

# Reasons with many causes: once one is mended the next is met. What else is told changes by itself, as what is free.
OF_CLAIMS: Final = frozenset((Word.QUESTION, Word.UNKNOWN_FIELD, Word.POLICY_REFUSED, Word.NOT_OURS))
OF_OTHERS: Final = frozenset((Word.NODE_ERROR, Ending.FAILED))
# Whichever device or pool comes first, the same is wrong with it.
PLACE: Final = re.compile(r"\b(?:device|pool) \S+")
# The API server quotes names.
QUOTED: Final = re.compile('"[^"]*"')
# What a claim is called that is made anew for each attempt, or has come before, is another each time.
CLAIM: Final = re.compile(r"\bclaim \S+")
# Numbers and devices. Words are looked at from their beginning alone: they may be long.
PASSING: Final = re.compile(r"(?<!\S)(?:\S*\d\S*|\S+/\S+/\S+)")


def gist(decision: Decision) -> str:
    """Return what a decision says without what may be different each time."""
    said = decision.detail
    for fleeting in (QUOTED, CLAIM, PLACE, PASSING):
        said = fleeting.sub("", said)
    return said.replace(decision.node or "", "")


def cause_of(decision: Decision) -> str:
    """Return the cause where the reason has many. What claims and classes say stays, with the numbers in it."""
    if decision.reason in OF_CLAIMS:
        return PLACE.sub("", decision.detail)
    return gist(decision) if decision.reason in OF_OTHERS else ""
