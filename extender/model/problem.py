"""What is wrong with an object that we could not read."""

from extender.model.frozen import dataclass
from extender.model.names import ObjectKey


@dataclass(frozen=True, slots=True)
class Problem:
    """A malformed object, named so that an operator finds it: *path* is the field, as ``spec.devices[3].name``."""

    kind: str
    key: ObjectKey
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind} {str(self.key) or '(unnamed)'}: {self.path}: {self.message}"
