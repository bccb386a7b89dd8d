"""Device taints: who sets them, who tolerates them, and which of them keep a device from being allocated."""

from collections.abc import Iterable
from typing import Final

from extender.model.frozen import dataclass
from extender.model.names import ClassName, DeviceKey, DeviceName, DriverName, PoolName

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
# How the names of rules begin by which an owner keeps others from its devices.
OWNED: Final = "dra-extender-owned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A mark on a device. Effects other than the two above, known or not, mean nothing to allocation."""

    key: str
    value: str = ""
    effect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """What a request puts up with. *seconds* matters to eviction only, but is copied into the allocation."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintSelector:
    """Which devices a rule taints: those that fulfil all of what is set.

    *class_name* and *expressions* exist in v1alpha3 of 1.33 and 1.34 only; an expression is None where the selector
    is of a kind that we do not know.
    """

    driver: DriverName | None = None
    pool: PoolName | None = None
    device: DeviceName | None = None
    class_name: ClassName | None = None
    expressions: tuple[str | None, ...] = ()

    @property
    def asks_attributes(self) -> bool:
        """Whether names alone do not decide: the class's selectors or the expressions must hold as well."""
        return self.class_name is not None or bool(self.expressions)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTaintRule:
    """A taint that an administrator sets on devices from outside."""

    name: str
    selector: TaintSelector | None
    taint: Taint


def is_about(toleration: Toleration, taint: Taint) -> bool:
    """Tell whether *toleration* names effect and key of *taint*: where these are empty it names all of them."""
    return toleration.effect in ("", taint.effect) and toleration.key in ("", taint.key)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Tell whether *toleration* covers *taint*."""
    if not is_about(toleration, taint):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def blocking(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> tuple[Taint, ...]:
    """Return the taints that keep a device from being allocated; each needs a toleration of its own."""
    accepted = tuple(tolerations)
    return tuple(
        taint
        for taint in taints
        if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any(tolerates(entry, taint) for entry in accepted)
    )


def evicts(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> bool:
    """Tell whether pods with *tolerations* are evicted for one of *taints*, sooner or later.

    Kubernetes does so where no toleration that names this effect puts up with a taint for ever.
    """
    lasting = tuple(entry for entry in tolerations if entry.effect == NO_EXECUTE and entry.seconds is None)
    return any(taint.effect == NO_EXECUTE and not any(tolerates(entry, taint) for entry in lasting) for taint in taints)


def selects(selector: TaintSelector | None, device: DeviceKey) -> bool:
    """Tell whether *selector* accepts the names of *device*; what ``asks_attributes`` remains to be asked.

    Without a selector a rule taints nothing.
    """
    return (
        selector is not None
        and selector.driver in (None, device.driver)
        and selector.pool in (None, device.pool)
        and selector.device in (None, device.device)
    )
