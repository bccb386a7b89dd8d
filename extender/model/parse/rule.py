"""DeviceTaintRules. v1alpha3 of Kubernetes 1.33 and 1.34 could also ask for a class and for attributes."""

from extender.model.names import ClassName, DeviceName, DriverName, PoolName
from extender.model.parse.claim import selector_of
from extender.model.parse.fields import Fields, Malformed
from extender.model.parse.selection import taint_of
from extender.model.taint import DeviceTaintRule, TaintSelector

SELECTOR = frozenset(("driver", "pool", "device", "deviceClassName", "selectors"))


def rule_of(fields: Fields) -> DeviceTaintRule:
    """Read a rule; raise Malformed where it makes no sense."""
    spec = fields.child("spec")
    selector = _selector(spec.child("deviceSelector")) if spec.has("deviceSelector") else None
    return DeviceTaintRule(
        name=fields.child("metadata").required("name"), selector=selector, taint=taint_of(spec.child("taint"))
    )


def _selector(fields: Fields) -> TaintSelector:
    unknown = fields.unknown(SELECTOR)
    if unknown:
        # Tainting more devices than were meant would be as wrong as tainting fewer.
        raise Malformed(fields.at(unknown[0]), "is a field that is not known here")
    return TaintSelector(
        driver=DriverName(fields.text("driver")) if fields.has("driver") else None,
        pool=PoolName(fields.text("pool")) if fields.has("pool") else None,
        device=DeviceName(fields.text("device")) if fields.has("device") else None,
        class_name=ClassName(fields.text("deviceClassName")) if fields.has("deviceClassName") else None,
        expressions=tuple(selector_of(entry).expression for entry in fields.objects("selectors")),
    )
