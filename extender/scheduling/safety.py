"""Starting is refused where what is configured would not be safe on the cluster that was found."""

from collections.abc import Iterator

from extender.model.frozen import dataclass
from extender.scheduling.rights import CLAIMS_BINDING, Right


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What the settings say: *accepts* that nothing seems to keep others away."""

    is_owner: bool
    keeps_taint: bool
    names_drivers: bool
    accepts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the cluster is like: *minor* is its version, None where it does not tell."""

    serves_claims: bool
    serves_rules: bool
    has_owner_rule: bool
    minor: int | None = None
    denied: tuple[Right, ...] = ()


def unsafe(intent: Intent, found: Found) -> Iterator[str]:
    """Say why starting is refused: the setting, what was found, and what can be done."""
    if not found.serves_claims:
        yield (
            "ownership.mode: the API server does not serve resourceclaims of resource.k8s.io in any version that is "
            "known here (v1, v1beta2, v1beta1), so there are no devices to allocate or to advise about"
        )
    if not intent.is_owner:
        return
    for right in found.denied:
        yield (
            f"ownership.mode: owner takes the right to {right}, which this account does not have{_consequence(right)}; "
            "grant it (scheduler-config/base/rbac/extender.yaml), or set ownership.mode to advisor"
        )
    if not (intent.accepts or intent.names_drivers or found.has_owner_rule):
        yield from _unpartitioned(intent, found)


def _unpartitioned(intent: Intent, found: Found) -> Iterator[str]:
    ways = (
        "name the drivers that are ours alone in ownership.drivers, set "
        "ownership.acceptUnpartitioned to true, or set ownership.mode to advisor"
    )
    if intent.keeps_taint and not found.serves_rules:
        yield (
            "ownership.keepTaint: the API server does not serve devicetaintrules, so nothing keeps other allocators "
            f"from our devices; have it serve them, {ways}"
        )
    elif intent.keeps_taint:
        yield (
            "ownership.drivers: none are named, so the owner taint is put on none, and no rule on the cluster puts it "
            "on a whole driver, so nothing keeps other allocators from our devices; apply such a rule for each driver "
            f"of ours, {ways}"
        )
    else:
        yield (
            "ownership.keepTaint: the owner taint is not kept by us, and no rule on the cluster puts it on a whole "
            f"driver, so nothing keeps other allocators from our devices; keep it, {ways}"
        )


def _consequence(right: Right) -> str:
    return ": each bind would be refused with 422" if right is CLAIMS_BINDING else ""
