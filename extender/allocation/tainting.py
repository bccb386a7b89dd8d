"""Which devices an administrator's taint rules concern."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from extender.allocation.cel import Budget, CompileError, Verdict, compile_selector
from extender.allocation.sight import sight_of
from extender.model.claim import DeviceClass
from extender.model.device import Device
from extender.model.names import ClassName, DeviceKey
from extender.model.taint import DeviceTaintRule, Taint, selects


@dataclass(frozen=True, slots=True)
class Tainting:
    """Rules, and the classes that rules of Kubernetes 1.33 and 1.34 could name."""

    rules: tuple[DeviceTaintRule, ...] = ()
    classes: Mapping[ClassName, DeviceClass] | None = None

    def taints(self, key: DeviceKey, device: Device) -> tuple[Taint, ...]:
        """Return what the rules add to the taints that the driver published."""
        return tuple(rule.taint for rule in self.rules if self._concerns(rule, key, device))

    def _concerns(self, rule: DeviceTaintRule, key: DeviceKey, device: Device) -> bool:
        if rule.selector is None or not selects(rule.selector, key):
            return False
        texts: Iterable[str | None] = rule.selector.expressions
        if rule.selector.class_name is not None:
            named = (self.classes or {}).get(rule.selector.class_name)
            if named is None:
                return False
            texts = (*(selector.expression for selector in named.selectors), *texts)
        return all(_may_match(text, key, device) for text in texts)


def _may_match(text: str | None, key: DeviceKey, device: Device) -> bool:
    """Tell whether an expression matches, or cannot be told not to: in doubt a device stays tainted."""
    if text is None:
        return True
    try:
        program = compile_selector(text)
    except CompileError:
        return True
    return program.evaluate(sight_of(device, key.driver), Budget()).verdict is not Verdict.NO
