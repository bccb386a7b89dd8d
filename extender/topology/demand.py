"""Which sizes are asked for, where an administrator says so instead of leaving it to be learnt."""

from typing import Final

from extender.model.frozen import dataclass
from extender.topology.residual import Mix

# What is expected before anything was configured or learnt: small sets more often than large ones.
EXPECTED: Final = Mix.of({1: 40, 2: 30, 4: 25, 8: 5})


@dataclass(frozen=True, slots=True)
class Demand:
    """The mix of each class of devices, and that of all others; None where it is to be learnt."""

    classes: tuple[tuple[str, Mix], ...] = ()
    others: Mix | None = None

    def mix_for(self, class_name: str) -> Mix | None:
        return dict(self.classes).get(class_name, self.others)
