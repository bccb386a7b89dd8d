"""How a process is configured: whoever is started anew may be so otherwise than the one before."""

from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final, NamedTuple

from extender.scheduling.ranking import Answer
from extender.topology.document import Document, document_of
from tests.interleavings.law import DRIVER
from tests.interleavings.policies import PEERS

Json = dict[str, Any]
# What is offered: the best node alone, or several, of which the scheduler may take another than the best.
OFFERS: Final = (Answer.AUTO, Answer.SHORTLIST)
MODEL_A: Final = {"attribute": "model", "values": ["a"]}
MODEL_B: Final = {"attribute": "model", "values": ["b"]}


class Preferred(NamedTuple):
    """A placement document as it is written and as it is read; nothing is preferred where there is none."""

    written: Json | None = None
    document: Document | None = None


def _mild(**policies: object) -> Preferred:
    written: Json = {"policies": policies}
    return Preferred(written, document_of(written))


def _strict(**policies: object) -> Preferred:
    links = [{"match": {"driver": DRIVER}, "peers": {"attribute": f"{DRIVER}/{PEERS}", "linkWeight": 25}}]
    written: Json = {"deviceTopology": links, "policies": policies}
    return Preferred(written, document_of(written))


NOTHING: Final = Preferred()
# What placement documents prefer that forbid nothing, so that who fits somewhere has to be bound there.
MILD: Final = (
    NOTHING,
    _mild(),
    _mild(default="pack"),
    _mild(default="spread", classes={"picked": "pack"}),
    _mild(default="choosy", named={"choosy": {"place": "pack", "prefer": [MODEL_B]}}, avoid=[MODEL_A]),
)
# What they say that is to be so or not at all; claims name policies of their own, where they may.
FREE: Final = _strict()
STRICT: Final = (
    FREE,
    _strict(default="pack"),
    _strict(default="one-numa"),
    _strict(classes={"gpu": "one-numa"}),
    _strict(default="roomy", named={"roomy": {"place": "spread", "numa": "strict", "links": "ignored"}}),
    _strict(forbid=[{"attribute": "group", "values": ["y"]}]),
    _strict(default="x-less", named={"x-less": {"forbid": [{"attribute": f"{DRIVER}/group", "values": ["x*"]}]}}),
    _strict(default="spread", allowed=["linked"]),
    _strict(allowed=[]),
)
LINKED: Final = (_strict(default="linked"), _strict(default="pack", classes={"gpu": "linked"}))


@dataclass(frozen=True, slots=True)
class Manner:
    """What all processes of a play have in common, and what is drawn for each: its answers and its placement document.

    *choice*: the documents that there are.
    """

    nominates: bool = False
    choice: tuple[Preferred, ...] = MILD
    answer: Answer = Answer.AUTO
    preferred: Preferred = NOTHING

    def drawn(self, random: Random) -> "Manner":
        """Configure a process."""
        return replace(self, answer=random.choice(OFFERS), preferred=self.another(random))

    def another(self, random: Random) -> Preferred:
        """Draw what else may be preferred."""
        return random.choice(self.choice)
