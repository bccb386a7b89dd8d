"""How those who wait are looked after, as it is configured."""

from extender.model.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Habits:
    """Times in seconds and limits; what each means, its setting says (holds, waking)."""

    offer_s: float = 30.0
    wait_s: float = 660.0
    attempts: int = 3
    nominates: bool = True
    wakes_per_second: float = 50.0
