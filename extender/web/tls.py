"""TLS of the scheduler's calls, from files that are replaced while we run, and whom a client's certificate names."""

import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NoReturn

from extender.model.frozen import dataclass
from extender.telemetry.expiry import expiry_in

# Parts of a certificate's subjectAltName that are names of somebody.
NAMES: Final = frozenset(("DNS", "URI", "email", "IP Address"))
# What OpenSSL calls a client without a certificate.
UNCERTIFIED: Final = "PEER_DID_NOT_RETURN_A_CERTIFICATE"


@dataclass(frozen=True, slots=True)
class Files:
    """Our certificate with its key, and the authorities of clients; without those, any client may call."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


class Certificates:
    """A TLS context out of files; another one when these have changed.

    *has_other_clients*: whether the authorities are others than those of the context that was taken last.
    *expiries*: when the first certificate of each file runs out, by the name that it has in the settings.
    """

    def __init__(self, files: Files) -> None:
        """Read the files for the first time; raise OSError where they cannot be used."""
        self._files = files
        self._seen = self._judged = self._taken = self._state()
        self.context, self.expiries = self._built(), self._expiries()
        self.has_other_clients = False

    def refresh(self) -> bool:
        """Build a new context where the files have changed; tell whether they had, until that context is *taken*.

        Raise OSError where it cannot be built: once for each state of the files that is at fault. Two looks in a row
        have to find the same: what is being replaced is half of itself.
        """
        state = self._state()
        is_settled, self._seen = state == self._seen, state
        if not is_settled or state == self._judged:
            return False
        try:
            self.context, self.expiries = self._built(), self._expiries()
        except OSError as error:
            # What keeps files from being read that could be read just before passes by itself.
            if isinstance(error.__cause__, ssl.SSLError) or not all(isinstance(each, bytes) for each in state):
                self._judged = state
            raise
        self.has_other_clients = state[2:] != self._taken[2:]
        return True

    def taken(self) -> None:
        """Note that the context is in use."""
        self._judged = self._taken = self._seen

    def not_taken(self) -> None:
        """Note that the context could not be used, for a reason that passes: whatever the files are, they are tried."""
        self._judged = ()

    def _built(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        files = self._files
        with _naming("certificate", files.certificate):
            # What goes wrong with both does not tell with which.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(files.certificate)
        with _naming("key", files.key, files.certificate):
            context.load_cert_chain(files.certificate, files.key, password=pass_phrase)
        if files.client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
            with _naming("clientAuthorities", files.client_ca):
                context.load_verify_locations(files.client_ca)
        return context

    def _expiries(self) -> Mapping[str, float | None]:
        files = {"certificate": self._files.certificate, "clientAuthorities": self._files.client_ca}
        return {name: expiry_in(path.read_bytes()) for name, path in files.items() if path}

    def _state(self) -> tuple[bytes | str, ...]:
        paths = (self._files.certificate, self._files.key, self._files.client_ca)
        return tuple(_digest(path) for path in paths if path)


def refusing(told: Callable[[str], None]) -> type[ssl.SSLObject]:
    """Return how the server's side shakes hands: *told* is why a client's certificate is refused, "" if there is none.

    The loop tells nobody, and ends a connection before what OpenSSL has to say to the client has left: kube-scheduler
    would tell of no more than EOF.
    """

    class Handshake(ssl.SSLObject):
        _error: ssl.SSLError | None = None

        def do_handshake(self) -> None:
            if self._error:
                raise self._error
            try:
                super().do_handshake()
            except ssl.SSLError as error:
                if isinstance(error, ssl.SSLCertVerificationError):
                    told(error.verify_message)
                elif error.reason == UNCERTIFIED:
                    told("")
                else:
                    raise
                self._error = ssl.SSLError(*error.args)
                # What the loop answers by sending what there is. It comes back once the client has said more, or gone.
                raise ssl.SSLWantReadError from None

    return Handshake


@contextmanager
def _naming(setting: str, *paths: Path) -> Iterator[None]:
    """Name the setting and the files in what goes wrong: OpenSSL says but what it stumbled over."""
    try:
        yield
    except OSError as error:
        raise OSError(f"tls.{setting}: {' with '.join(map(str, paths))}: {error.strerror or error}") from error


def pass_phrase() -> NoReturn:
    """Say that a key has a pass phrase, where OpenSSL asks for it; by default somebody would be asked."""
    raise ssl.SSLError(ssl.SSLErrorNumber.SSL_ERROR_SSL, "the key has a pass phrase, and one without it is needed")


def _digest(path: Path) -> bytes | str:
    try:
        return sha256(path.read_bytes()).digest()
    except OSError as error:
        return str(error)


def names_in(certificate: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield whom a verified *certificate*, as ssl describes it, names: its common name and its alternative names."""
    described = certificate or {}
    for part in described.get("subject", ()):
        yield from (value for key, value in part if key == "commonName")
    yield from (value for kind, value in described.get("subjectAltName", ()) if kind in NAMES)
