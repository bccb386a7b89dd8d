"""What an expression may cost. Claims are written by strangers: nothing in one may hang or fill the memory."""

from extender.allocation.cel.errors import Exhausted

# Upstream's limits: resource.k8s.io bounds the text, cel-go's parser the nesting, both the cost of one evaluation.
MAX_TEXT = 10 * 1024
MAX_DEPTH = 250
# Of the tree. Each level takes up to three frames of Python's stack, whose limit is 1,000.
MAX_HEIGHT = 255
EVALUATION_STEPS = 1_000_000
# All evaluations of one selector over all devices together.
SWEEP_STEPS = 10_000_000

# What one evaluation may build. Upstream bounds these through the cost alone.
MAX_CHARACTERS = 1 << 18
MAX_ITEMS = 1 << 17

# Walking over this many characters costs one step.
CHARACTERS_PER_STEP = 10


class Budget:
    """Steps that may still be spent; shared by the evaluations of a sweep, and not shareable between threads.

    While an evaluation runs, *floor* is how low it may bring *left*.
    """

    __slots__ = ("floor", "left")

    def __init__(self, steps: int = SWEEP_STEPS) -> None:
        self.left = steps
        self.floor = 0

    def spend(self, steps: int) -> None:
        """Take *steps*, or end the evaluation."""
        self.left -= steps
        if self.left < self.floor:
            raise Exhausted(self.reason())

    def reason(self) -> str:
        """Name the limit that was reached."""
        if self.floor > 0:
            return f"actual cost limit exceeded: more than {EVALUATION_STEPS} steps in one evaluation"
        return "the budget of steps for all devices is exhausted"

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
