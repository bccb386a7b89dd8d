"""TLS of the scheduler's calls, from files that are replaced while we run."""

import ssl
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Files:
    """Our certificate with its key, and the authorities of clients; without those, any client may call."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


class Certificates:
    """A TLS context that follows its files."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        if files.client_ca:
            self.context.verify_mode = ssl.CERT_REQUIRED
        self._load()
        self._loaded = self._state()

    def refresh(self) -> bool:
        """Load the files again where they have changed; tell whether they had."""
        state = self._state()
        if state == self._loaded:
            return False
        self._load()
        self._loaded = state
        return True

    def _load(self) -> None:
        self.context.load_cert_chain(self._files.certificate, self._files.key)
        if self._files.client_ca:
            self.context.load_verify_locations(self._files.client_ca)

    def _state(self) -> tuple[tuple[int, int, int], ...]:
        """Tell the files' contents apart: a mounted secret is replaced by a link to another file."""
        paths = (self._files.certificate, self._files.key, self._files.client_ca)
        found = (path.stat() for path in paths if path)
        return tuple((status.st_ino, status.st_mtime_ns, status.st_size) for status in found)
