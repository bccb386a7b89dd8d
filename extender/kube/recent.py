"""Objects that are told of twice, by the answer to a write and by the watch: the first to read spares the second."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from extender.model.change import Noun
from extender.model.claim import ResourceClaim
from extender.model.node import Pod
from extender.model.problem import Problem

# Objects that are kept for their second reader; many are of writes that are not ours, and have none.
KEPT: Final = 256


class Recent:
    """What was read of claims and pods last. One version of an object is the same wherever it is shown."""

    def __init__(self) -> None:
        self._nouns: OrderedDict[tuple[type, str, str], Noun] = OrderedDict()

    def read(self, kind: type, raw: object, parse: Callable[[], Noun | Problem]) -> Noun | Problem:
        """Return what *raw*, an object of *kind*, was read as before; else *parse* it, for whoever comes next."""
        uid, version = _identity(raw)
        known = self._nouns.pop((kind, uid, version), None)
        if known is not None:
            return known
        found = parse()
        if isinstance(found, ResourceClaim | Pod):
            self.put(found)
        return found

    def forget(self) -> None:
        """Forget everything: after a gap, as a restored etcd makes one, a version may be that of something else."""
        self._nouns.clear()

    def put(self, noun: ResourceClaim | Pod) -> None:
        """Keep *noun*, which an answer has shown."""
        if noun.uid and noun.resource_version:
            self._nouns[type(noun), noun.uid, noun.resource_version] = noun
            if len(self._nouns) > KEPT:
                self._nouns.popitem(last=False)


def _identity(raw: object) -> tuple[str, str]:
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    if not isinstance(metadata, dict):
        return "", ""
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    return (uid, version) if isinstance(uid, str) and isinstance(version, str) else ("", "")
