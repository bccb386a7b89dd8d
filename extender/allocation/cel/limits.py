"""What an expression may cost. Claims are written by strangers: nothing in one may hang or fill the memory."""

from typing import Any

from extender.allocation.cel.errors import Exhausted

# Upstream's limits: resource.k8s.io bounds the text, cel-go's parser the nesting, both the cost of one evaluation.
MAX_TEXT = 10 * 1024
MAX_DEPTH = 250
# Of the tree. Each level takes up to three frames of Python's stack, whose limit is 1,000.
MAX_HEIGHT = 255
EVALUATION_STEPS = 1_000_000
COST_LIMIT = f"actual cost limit exceeded: more than {EVALUATION_STEPS} steps in one evaluation"

# What one evaluation may build. Upstream bounds these through the cost alone.
MAX_CHARACTERS = 1 << 18
MAX_ITEMS = 1 << 17
# Characters of an error that are told and remembered.
MAX_ERROR = 256

# Walking over this many characters costs one step.
CHARACTERS_PER_STEP = 10
# Longer texts are walked over to be compared, or looked up; what devices publish is shorter.
LONG = 256


class Budget:
    """Steps that one evaluation may still spend; not shareable between threads.

    Every evaluation begins with all of them: what it finds must not depend on what was evaluated before.
    """

    __slots__ = ("expressions", "left")

    def __init__(self, steps: int = EVALUATION_STEPS) -> None:
        self.left = steps
        # The regular expressions that are paid for.
        self.expressions: dict[str, Any] = {}

    @property
    def spent(self) -> int:
        """What the last evaluation took; what it could not pay for it has not done."""
        return EVALUATION_STEPS - max(self.left, -1)

    def spend(self, steps: int) -> None:
        """Take *steps*, or end the evaluation."""
        self.left -= steps
        if self.left < 0:
            raise Exhausted(COST_LIMIT)

    def characters(self, count: int) -> None:
        """Account for a string of *count* characters before it is built."""
        if count > MAX_CHARACTERS:
            raise Exhausted(f"a string of {count} characters is longer than {MAX_CHARACTERS}")
        self.spend(1 + count // CHARACTERS_PER_STEP)

    def items(self, count: int) -> None:
        """Account for a list or a map of *count* items before it is built."""
        if count > MAX_ITEMS:
            raise Exhausted(f"a collection of {count} items is longer than {MAX_ITEMS}")
        self.spend(1 + count)

    def walk(self, text: str | bytes) -> None:
        """Account for reading *text* from end to end."""
        if len(text) > CHARACTERS_PER_STEP:
            self.spend(len(text) // CHARACTERS_PER_STEP)

    def meet(self, one: object, other: object) -> None:
        """Account for comparing two values, which takes long where both are long texts."""
        if isinstance(one, str | bytes) and isinstance(other, str | bytes):
            least = min(len(one), len(other))
            if least > LONG:
                self.spend(least // CHARACTERS_PER_STEP)
