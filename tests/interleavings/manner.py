"""How a process is configured: whoever is started anew may be so otherwise than the one before."""

from dataclasses import dataclass, replace
from random import Random
from typing import Final

from extender.scheduling.ranking import Answer
from extender.topology.document import Document, document_of

# What is offered: the best node alone, or several, of which the scheduler may take another than the best.
OFFERS: Final = (Answer.AUTO, Answer.SHORTLIST)
MODEL_A: Final = {"attribute": "model", "values": ["a"]}
MODEL_B: Final = {"attribute": "model", "values": ["b"]}
# What placement documents prefer; none forbids anything, so that who fits somewhere has to be bound there.
DOCUMENTS: Final = tuple(
    document_of({"policies": policies})
    for policies in (
        {},
        {"default": "pack"},
        {"default": "spread", "classes": {"picked": "pack"}},
        {"default": "choosy", "named": {"choosy": {"place": "pack", "prefer": [MODEL_B]}}, "avoid": [MODEL_A]},
    )
)


@dataclass(frozen=True, slots=True)
class Manner:
    """What all processes of a play have in common, and what is drawn for each: its answers and its placement document.

    Where devices are taken as they come, there is no *document*.
    """

    nominates: bool = False
    answer: Answer = Answer.AUTO
    document: Document | None = None

    def drawn(self, random: Random) -> "Manner":
        """Configure a process."""
        return replace(self, answer=random.choice(OFFERS), document=self.another(random))

    def another(self, random: Random) -> Document | None:
        """Draw what else may be preferred."""
        return random.choice((None, *DOCUMENTS))
