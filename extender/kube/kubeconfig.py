"""A plain kubeconfig: one file with a server, an authority, and a token, a password or a client's certificate."""

import base64
import os
import re
import ssl
import tempfile
from binascii import Error
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from extender.kube.access import Access, Loaded, sendable, server_of
from extender.kube.contents import NOTHING, Reading
from extender.model.frozen import dataclass
from extender.model.parse.fields import Fields, Malformed
from extender.telemetry.expiry import expiry_in

# What takes more than reading: programs that are run, and tokens that are asked for.
PLUGINS: Final = ("exec", "auth-provider")
TOKENS: Final = ("token", "tokenFile")
# We would act with other rights than those that were meant.
IMPERSONATION: Final = ("as", "as-uid", "as-groups", "as-user-extra")
AUTHORITY: Final = "certificate-authority"
PROXIES: Final = ("http://", "https://")
# What a parser quotes of what it reads. A single character tells no more than what it stumbled over.
QUOTED: Final = re.compile(r"""('\\?.')|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""")


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The file at *path*: *cluster* and *user* of a *context*, and the *files* that were read for that, which grow."""

    path: Path
    context: str
    cluster: Fields
    user: Fields
    files: Reading

    @property
    def is_plain(self) -> bool:
        """Tell whether nothing has to be run or asked: as in client-go, not for who is given a token."""
        return any(map(self.user.text, TOKENS)) or not any(map(self.user.has, PLUGINS))

    def loaded(self) -> Loaded:
        """Read everything; raise Malformed, which names the field, where that cannot be done."""
        server = server_of(self.cluster.required("server"), self.cluster.at("server"))
        proxy = self.cluster.text("proxy-url")
        if proxy and not proxy.startswith(PROXIES):
            raise Malformed(self.cluster.at("proxy-url"), "begins with neither http:// nor https://")
        refuse_impersonation(self.user)
        token, lacks = token_of(self.user, self.path, self.files)
        tls, until = self._tls() if server.startswith("https") else (None, None)
        access = Access(
            server=server,
            authorization=f"Bearer {token}" if token else self._password(),
            tls=tls,
            server_name=self.cluster.text("tls-server-name") or None,
            proxy=proxy or None,
            until=until,
        )
        return Loaded(access, self.files.seen, lacks, self.context)

    def _password(self) -> str:
        name, password = self.user.text("username"), self.user.text("password")
        return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}" if name and password else ""

    def _tls(self) -> tuple[ssl.SSLContext, float | None]:
        context = context_of(self._pem(self.cluster, AUTHORITY), self.cluster.at(AUTHORITY))
        certificate, key = (self._pem(self.user, name) for name in ("client-certificate", "client-key"))
        if certificate is not None:
            present(context, certificate, key, self.user.at("client-certificate"))
        elif key is not None:
            raise Malformed(self.user.at("client-key"), "is of no use without client-certificate")
        is_unverified = self.cluster.flag("insecure-skip-tls-verify")
        return unverified(context) if is_unverified else context, expiry_in(certificate or b"")

    def _pem(self, fields: Fields, name: str) -> bytes | None:
        """Read what may stand in the kubeconfig itself, which counts unless it is empty, or in a file."""
        inline = f"{name}-data"
        if text := "".join(fields.text(inline).split()):
            try:
                return base64.b64decode(text, validate=True)
            except (Error, ValueError) as error:
                raise Malformed(fields.at(inline), f"is no base64: {error}") from error
        return _read(fields, name, self.path, self.files) if fields.text(name) else None


def kubeconfig_of(name: str, context: str | None) -> Kubeconfig:
    """Read the file of that *name*, and in it *context* or the current one."""
    path, files = Path(name).expanduser(), Reading()
    try:
        document = yaml.safe_load(files.read(path))
    except yaml.YAMLError as error:
        raise Malformed(name, wrong_in(error)) from None
    except (ValueError, LookupError, AttributeError, RecursionError):
        # The parser lets these out of values with a type of their own, with the value in them.
        raise Malformed(name, "is no YAML: a value is not what it is said to be, or stands too deep") from None
    if not isinstance(document, Mapping):
        raise Malformed(name, "is no kubeconfig: there is no object in it")
    fields = Fields(dict(document), "")
    context = context or fields.required("current-context")
    chosen = _named(fields, "contexts", context)
    cluster, user = _named(fields, "clusters", chosen.required("cluster")), chosen.text("user")
    return Kubeconfig(path, context, cluster, _named(fields, "users", user) if user else Fields({}, "users"), files)


def wrong_in(error: yaml.YAMLError) -> str:
    """Say what is no YAML and where, but not what stands there: it may be a token."""
    if isinstance(error, yaml.reader.ReaderError):
        return f"is no YAML: position {error.position}: {error.reason}"
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return "is no YAML"
    mark, problem = error.problem_mark, QUOTED.sub(lambda quoted: quoted[1] or "...", error.problem or "")
    return f"is no YAML: line {mark.line + 1}, column {mark.column + 1}: {problem}"


def _named(fields: Fields, kind: str, name: str) -> Fields:
    """Return what the list of a *kind* has under *name*."""
    found = [entry for entry in fields.objects(kind) if entry.text("name") == name]
    if len(found) != 1:
        raise Malformed(kind, f"has {'more than one' if found else 'none'} of the name {name!r}")
    return found[0].child(kind.removesuffix("s"))


def token_of(user: Fields, kubeconfig: Path, files: Reading) -> tuple[str, str]:
    """Return the token of *user*, if there is one, and the file that it should be from, where it is not.

    As in client-go that of a file counts, which is rotated, and one beside it as long as there is none in the file.
    """
    token, named = sendable(user.text("token").strip(), user.at("token")), user.text("tokenFile")
    if not named:
        return token, ""
    try:
        return _written(user, kubeconfig, files), ""
    except Malformed:
        if not token:
            raise
        return token, str(_beside(kubeconfig, named))


def _written(user: Fields, kubeconfig: Path, files: Reading) -> str:
    try:
        token = _read(user, "tokenFile", kubeconfig, files).decode().strip()
    except UnicodeDecodeError as error:
        raise Malformed(user.at("tokenFile"), f"names a file that is no text: {error}") from error
    if not token:
        raise Malformed(user.at("tokenFile"), "names a file without a token")
    return sendable(token, user.at("tokenFile"))


def _read(fields: Fields, name: str, kubeconfig: Path, files: Reading) -> bytes:
    """Read the file that is named."""
    path = _beside(kubeconfig, fields.text(name))
    if not path.is_file():
        files.seen.setdefault(str(path), NOTHING)
        raise Malformed(fields.at(name), f"there is no file {path}")
    try:
        return files.read(path)
    except OSError as error:
        raise Malformed(fields.at(name), f"{path} cannot be read: {error.strerror}") from error


def _beside(kubeconfig: Path, named: str) -> Path:
    """Return the path of a file that a kubeconfig names: it is relative to that."""
    return Path(os.path.normpath(kubeconfig.absolute().parent / named))


def refuse_impersonation(user: Fields) -> None:
    for name in IMPERSONATION:
        if user.has(name):
            raise Malformed(user.at(name), "acting as somebody else is not supported")


def context_of(authority: bytes | None, named: str) -> ssl.SSLContext:
    """Return what verifies the server by *authority*, which is *named* so, or by the system's where there is none."""
    given: dict[str, Any] = {}
    if authority is not None:
        # Beside certificates, which are ASCII, there may be comments.
        given = {"cadata": authority.decode("ascii", "ignore")}
        if not given["cadata"].strip():
            # Python would trust the system's authorities.
            raise Malformed(named, "cannot be used: there is no certificate in it")
    try:
        return lenient(ssl.create_default_context(**given))
    except ssl.SSLError as error:
        raise Malformed(named, f"cannot be used: {error}") from error


def lenient(context: ssl.SSLContext) -> ssl.SSLContext:
    """Accept the authorities that Go accepts and that the strict flag of newer Pythons does not."""
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def unverified(context: ssl.SSLContext) -> ssl.SSLContext:
    """Take whoever answers for the server."""
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def present(context: ssl.SSLContext, certificate: bytes, key: bytes | None, named: str) -> None:
    """Present a client's *certificate*, which is *named* so; without a *key* of its own it stands beside it."""
    with ExitStack() as files:
        paths = [files.enter_context(as_file(pem)) for pem in (certificate, key) if pem is not None]
        try:
            # A key that needs a password is an error; by default somebody would be asked for it.
            context.load_cert_chain(paths[0], paths[-1], password="")
        except ssl.SSLError as error:
            raise Malformed(named, f"cannot be used: {error}") from error


@contextmanager
def as_file(pem: bytes) -> Iterator[str]:
    """Give the path of a file that has *pem*; keys are never left on a disk."""
    if hasattr(os, "memfd_create"):
        # The root of the file system may be read-only.
        with os.fdopen(os.memfd_create("pem"), "wb") as memory:
            memory.write(pem)
            memory.flush()
            yield f"/proc/self/fd/{memory.fileno()}"
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(pem)
            file.flush()
            yield file.name
