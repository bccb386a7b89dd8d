"""Where the weight of an edge comes from, for people to see."""

from typing import Final, Literal, NamedTuple

Layer = Literal["none", "levels", "peers", "products"]


class Source(NamedTuple):
    """One origin of weights: its layer, what was read there, and the place in the configuration that asked for it."""

    layer: Layer
    read: str
    rule: str

    def __str__(self) -> str:
        return f"{self.read} ({self.rule})" if self.rule else self.read


NOTHING: Final = Source("none", "nothing is known", "")
