"""What a pod asks of its node, out of its spec."""

from collections.abc import Iterator

from extender.model.node_selector import NodeSelector
from extender.model.parse.alike import written_length
from extender.model.parse.fields import Fields
from extender.model.parse.footprint import amounts_in
from extender.model.parse.selection import selector_of, toleration_of
from extender.model.terms import Terms

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
# Volumes that are there wherever the pod is.
EVERYWHERE = frozenset(("name", "configMap", "secret", "projected", "emptyDir", "downwardAPI", "hostPath"))

PLACING = "nodeSelector", "affinity", "tolerations"
# So many bytes are terms of a thousand parts, and a hundred times what is usual.
LONGEST = 1 << 16


def terms_of(spec: Fields) -> Terms:
    """Read the terms of a pod; raise Malformed where they make no sense."""
    if written_length([spec.raw.get(name) for name in PLACING]) > LONGEST:
        return Terms(amounts=amounts_in(spec), is_all=False, is_long=True)
    return Terms(
        amounts=amounts_in(spec),
        labels=spec.strings("nodeSelector"),
        affinity=_affinity(spec.child("affinity").child("nodeAffinity")),
        tolerations=tuple(toleration_of(entry) for entry in spec.objects("tolerations")),
        is_all=not _is_more(spec),
    )


def _affinity(fields: Fields) -> NodeSelector | None:
    return selector_of(fields.child(REQUIRED)) if fields.has(REQUIRED) else None


def _is_more(spec: Fields) -> bool:
    """Tell whether wishes, other pods, volumes or ports have a say in where the pod is to be."""
    affinity = spec.child("affinity")
    others = (affinity.child(name) for name in ("podAffinity", "podAntiAffinity"))
    return (
        affinity.child("nodeAffinity").has(PREFERRED)
        or any(each.has(REQUIRED) or each.has(PREFERRED) for each in others)
        or any(True for _ in spec.objects("topologySpreadConstraints"))
        or any(not volume.raw.keys() <= EVERYWHERE for volume in spec.objects("volumes"))
        or any(port.has("hostPort") for entry in _containers(spec) for port in entry.objects("ports"))
    )


def _containers(spec: Fields) -> Iterator[Fields]:
    """Yield sidecars, too, which are init containers."""
    yield from spec.objects("initContainers")
    yield from spec.objects("containers")
