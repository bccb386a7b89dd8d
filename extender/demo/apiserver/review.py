"""Who may do what, as far as an API server in memory knows: everybody everything, but for what it was told to deny."""

from collections.abc import Collection
from typing import Final

from extender.demo.apiserver.kinds import Json

REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
VERSION: Final = {"major": "1", "minor": "37", "gitVersion": "v1.37.0"}


def reviewed(asked: Json, denied: Collection[str]) -> Json:
    """Answer a review: *denied* names a verb and a resource, as "patch resourceclaims/binding"."""
    wanted = (asked.get("spec") or {}).get("resourceAttributes") or {}
    parts = (wanted.get("resource", ""), wanted.get("subresource", ""))
    name = "/".join(part for part in parts if part)
    return {**asked, "status": {"allowed": f"{wanted.get('verb', '')} {name}" not in denied}}
