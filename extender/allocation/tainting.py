"""Which devices an administrator's taint rules concern."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from extender.allocation.cel import Budget, CompileError, Program, Verdict, compile_selector
from extender.allocation.sight import sight_of
from extender.model.claim import DeviceClass
from extender.model.device import Device
from extender.model.frozen import dataclass
from extender.model.names import ClassName, DeviceKey, DriverName, PoolKey
from extender.model.taint import DeviceTaintRule, Taint, TaintSelector, selects


@dataclass(frozen=True, slots=True)
class Tainting:
    """Rules, and the classes that rules of Kubernetes 1.33 and 1.34 could name."""

    rules: tuple[DeviceTaintRule, ...]
    classes: Mapping[ClassName, DeviceClass]

    def taints(self, key: DeviceKey, device: Device) -> tuple[Taint, ...]:
        """Return what the rules add to the taints that the driver published."""
        return tuple(rule.taint for rule in self.rules if self._concerns(rule, key, device))

    def about(self, pool: PoolKey) -> "Tainting":
        """Leave out the rules that are about none of the devices of *pool*: of thousands most are about one."""
        return replace(self, rules=tuple(rule for rule in self.rules if _may_concern(rule.selector, pool)))

    def _concerns(self, rule: DeviceTaintRule, key: DeviceKey, device: Device) -> bool:
        if rule.selector is None or not selects(rule.selector, key):
            return False
        texts = texts_of(rule.selector, self.classes)
        return texts is not None and all(may_match(text, key.driver, device) for text in texts)


def _may_concern(selector: TaintSelector | None, pool: PoolKey) -> bool:
    return selector is not None and selector.driver in (None, pool.driver) and selector.pool in (None, pool.pool)


def texts_of(selector: TaintSelector, classes: Mapping[ClassName, DeviceClass]) -> tuple[str | None, ...] | None:
    """Return the expressions that must hold beside the names; None where the class that is named does not exist."""
    if selector.class_name is None:
        return selector.expressions
    named = classes.get(selector.class_name)
    return None if named is None else (*(item.expression for item in named.selectors), *selector.expressions)


def may_match(text: str | None, driver: DriverName, device: Device) -> bool:
    """Tell whether an expression matches, or cannot be told not to: in doubt a device stays tainted."""
    program = None if text is None else program_of(text)
    return program is None or program.evaluate(sight_of(device, driver), Budget()).verdict is not Verdict.NO


@lru_cache(maxsize=256)
def program_of(text: str) -> Program | None:
    """Compile an expression; None where that cannot be done."""
    try:
        return compile_selector(text)
    except CompileError:
        return None
