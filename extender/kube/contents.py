"""Files that credentials are read from, and what stood in each: times do not tell, as two writes may have the same."""

from collections.abc import Iterable
from dataclasses import field
from hashlib import sha256
from pathlib import Path
from typing import Final

from extender.model.frozen import dataclass

# Of what is not there, or can be read but once: a pipe.
NOTHING: Final = b""


@dataclass(frozen=True, slots=True)
class Reading:
    """What stood in each file when it was *seen* first, by its path: replaced later, it is not what stands there."""

    seen: dict[str, bytes] = field(default_factory=dict)

    def read(self, path: Path) -> bytes:
        """Return what stands in a file; raise OSError where it cannot be read, and remember it all the same."""
        try:
            content = path.read_bytes()
        except OSError:
            self.seen.setdefault(str(path), NOTHING)
            raise
        self.seen.setdefault(str(path), sha256(content).digest() if path.is_file() else NOTHING)
        return content


def contents_of(files: Iterable[str]) -> dict[str, bytes]:
    """Return what stands in each of *files* now, as a digest. The links of a mounted secret are followed."""
    return {path: _content(Path(path)) for path in files}


def _content(path: Path) -> bytes:
    try:
        return sha256(path.read_bytes()).digest() if path.is_file() else NOTHING
    except OSError:
        return NOTHING
