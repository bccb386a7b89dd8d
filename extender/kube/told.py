"""What following a resource tells beside its objects."""

from collections.abc import Callable

from extender.kube.resource import Resource
from extender.model.change import Changed, Gone, Listed
from extender.model.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Seen:
    """All that happened to *resource* up to *version* has been told; *at* is when it was read, by our clock."""

    resource: Resource
    version: str
    at: float


@dataclass(frozen=True, slots=True)
class Unserved:
    """The API server, asked at *at*, does not have *resource* in any version that we read."""

    resource: Resource
    at: float


@dataclass(frozen=True, slots=True)
class Trouble:
    """Reading *resource* did not go on; it is tried again.

    Where the cluster *is_behind* what was known of it, that may never have been so, until something is ``Seen`` again.
    What *is_absent* was served before, and is listed by no API server that has answered since.
    """

    resource: Resource
    why: str
    is_behind: bool = False
    is_absent: bool = False


@dataclass(frozen=True, slots=True)
class Reverted:
    """The cluster is at *version*, before *known*: it was set back, and what was told since was never so in it."""

    resource: Resource
    known: str
    version: str


Told = Changed | Gone | Listed | Seen | Unserved | Trouble | Reverted
Sink = Callable[[Told], None]
