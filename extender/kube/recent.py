"""Objects that are told of twice, by the answer to a write and by the watch: the first to read spares the second."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from extender.model.change import Noun
from extender.model.claim import ResourceClaim
from extender.model.node import Pod
from extender.model.problem import Problem

# Of what kinds objects are that we write.
TOLD_TWICE: Final = (ResourceClaim, Pod)
# Objects that are kept for their second reader; many are of writes that are not ours, and have none.
KEPT: Final = 256
# So long in JSON, all of them together and each of them: an object may be of more than a million bytes.
BYTES: Final = 1 << 22
LONGEST: Final = BYTES // 8

Key = tuple[type, str, str]


class Recent:
    """What was read of claims and pods last. One version of an object is the same wherever it is shown."""

    def __init__(self) -> None:
        self._nouns: OrderedDict[Key, tuple[Noun, int]] = OrderedDict()
        self._bytes = 0

    def read(self, kind: type, raw: object, parse: Callable[[], Noun | Problem], length: int = 0) -> Noun | Problem:
        """Return what *raw*, an object of *kind*, was read as before; else *parse* it, for whoever comes next.

        What the API server answers the watch comes for; *length*, in bytes, counts where it may be nobody.
        """
        uid, version = _identity(raw)
        known = self._taken((kind, uid, version))
        if known is not None:
            return known
        found = parse()
        if isinstance(found, ResourceClaim | Pod):
            self.put(found, length)
        return found

    def forget(self) -> None:
        """Forget everything: after a gap, as a restored etcd makes one, a version may be that of something else."""
        self._nouns.clear()
        self._bytes = 0

    def put(self, noun: ResourceClaim | Pod, length: int = 0) -> None:
        """Keep *noun*, which was shown."""
        key = type(noun), noun.uid, noun.resource_version
        if noun.uid and noun.resource_version and length <= LONGEST:
            self._taken(key)
            self._nouns[key] = noun, length
            self._bytes += length
            while len(self._nouns) > KEPT or self._bytes > BYTES:
                self._taken(next(iter(self._nouns)))

    def _taken(self, key: Key) -> Noun | None:
        noun, length = self._nouns.pop(key, (None, 0))
        self._bytes -= length
        return noun


def _identity(raw: object) -> tuple[str, str]:
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    if not isinstance(metadata, dict):
        return "", ""
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    return (uid, version) if isinstance(uid, str) and isinstance(version, str) else ("", "")
