"""What the extender has to be allowed: what no pod gets its devices without, and what only some of it needs."""

from typing import Final, NamedTuple

GROUP: Final = "resource.k8s.io"
# From here on the API server asks for a right of its own before a claim is allocated or reserved.
BINDING_MINOR: Final = 36


class Right(NamedTuple):
    """To do something with a resource, or with a part of it."""

    verb: str
    group: str
    resource: str
    part: str = ""

    def __str__(self) -> str:
        name = f"{self.resource}/{self.part}" if self.part else self.resource
        return f"{self.verb} {name}{f' of {self.group}' if self.group else ''}"


CLAIMS_BINDING: Final = Right("patch", GROUP, "resourceclaims", "binding")
# What no pod can be given its devices without.
OWNER_RIGHTS: Final = (
    Right("patch", GROUP, "resourceclaims"),
    Right("patch", GROUP, "resourceclaims", "status"),
    CLAIMS_BINDING,
    Right("create", "", "pods", "binding"),
)


class Need(NamedTuple):
    """A right that only a part of what we do takes, and how it is *without*."""

    right: Right
    without: str


SPACED: Final = "claims whose parameters were stored with spaces, as Python's clients send them, are not given to pods"
WHOLE: Final = f"{SPACED}, nor those whose parameters a patch makes too long: six letters for each <, > and &"
NEEDS: Final = (
    Need(
        Right("patch", "", "pods"),
        "pods that wait are not woken by an annotation, and devices of a binding that nobody answered are not let go",
    ),
    Need(
        Right("patch", "", "pods", "status"),
        "no pod is woken or sent ahead by nominating its node, and none gets devices by an extended resource",
    ),
    Need(Right("create", GROUP, "resourceclaims"), "no pod gets devices by an extended resource"),
    Need(Right("delete", GROUP, "resourceclaims"), "claims that were made for an extended resource in vain stay"),
    Need(
        Right("update", "", "pods", "finalizers"),
        "no pod gets devices by an extended resource where OwnerReferencesPermissionEnforcement is on",
    ),
    Need(Right("update", GROUP, "resourceclaims"), SPACED),
    Need(Right("update", GROUP, "resourceclaims", "status"), WHOLE),
    Need(Right("update", GROUP, "resourceclaims", "binding"), WHOLE),
)


def rights_of(minor: int | None) -> tuple[Right, ...]:
    """Name the rights that owning takes on a cluster of version *minor*."""
    return tuple(right for right in OWNER_RIGHTS if _is_known(right, minor))


def further_needs(minor: int | None) -> tuple[Need, ...]:
    """Name what else of owning takes a right on a cluster of version *minor*."""
    return tuple(need for need in NEEDS if _is_known(need.right, minor))


def _is_known(right: Right, minor: int | None) -> bool:
    return minor is None or minor >= BINDING_MINOR or right[1:] != CLAIMS_BINDING[1:]
