"""A plain kubeconfig: one file with a server, an authority, and a token, a password or a client's certificate."""

import base64
import os
import ssl
import tempfile
from binascii import Error
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from extender.kube.access import Access, Loaded
from extender.model.parse.fields import Fields, Malformed

# What takes more than reading: programs that are run, and tokens that are asked for.
PLUGINS: Final = ("exec", "auth-provider")
# We would act with other rights than those that were meant.
IMPERSONATION: Final = ("as", "as-uid", "as-groups", "as-user-extra")
AUTHORITY: Final = "certificate-authority"
PROXIES: Final = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Material:
    """PEM as a kubeconfig gives it: as the path of a file, or as what stands in one."""

    path: str = ""
    data: bytes = b""

    @contextmanager
    def as_file(self) -> Iterator[str]:
        """Give the path of a file that has it; keys are never left on a disk."""
        if not self.data:
            yield self.path
        elif hasattr(os, "memfd_create"):
            # The root of the file system may be read-only.
            with os.fdopen(os.memfd_create("pem"), "wb") as memory:
                memory.write(self.data)
                memory.flush()
                yield f"/proc/self/fd/{memory.fileno()}"
        else:
            with tempfile.NamedTemporaryFile() as file:
                file.write(self.data)
                file.flush()
                yield file.name


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The file at *path*: *cluster* and *user* of a context, and what *files* these name, which grow as it is read."""

    path: Path
    cluster: Fields
    user: Fields
    files: list[str] = field(default_factory=list)

    @property
    def is_plain(self) -> bool:
        return not any(self.user.has(name) for name in PLUGINS)

    def loaded(self) -> Loaded:
        """Read everything; raise Malformed, which names the field, where that cannot be done."""
        server, proxy = self.cluster.required("server").rstrip("/"), self.cluster.text("proxy-url")
        if not server.startswith(("https://", "http://")):
            raise Malformed(self.cluster.at("server"), "begins with neither https:// nor http://")
        if proxy and not proxy.startswith(PROXIES):
            raise Malformed(self.cluster.at("proxy-url"), "begins with neither http:// nor https://")
        refuse_impersonation(self.user)
        access = Access(
            server=server,
            authorization=self._authorization(),
            tls=self._tls() if server.startswith("https") else None,
            server_name=self.cluster.text("tls-server-name") or None,
            proxy=proxy or None,
        )
        return Loaded(access, (str(self.path), *self.files))

    def _authorization(self) -> str:
        token = self.user.text("token").strip()
        if self.user.text("tokenFile"):
            # What stands in a file is rotated: beside it a token is what there was at first.
            token = self._file(self.user, "tokenFile").read_text().strip()
            if not token:
                raise Malformed(self.user.at("tokenFile"), "names a file without a token")
        if token:
            return f"Bearer {token}"
        name, password = self.user.text("username"), self.user.text("password")
        return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}" if name and password else ""

    def _tls(self) -> ssl.SSLContext:
        context = context_of(self._material(self.cluster, AUTHORITY), self.cluster.at(AUTHORITY))
        certificate, key = (self._material(self.user, name) for name in ("client-certificate", "client-key"))
        if certificate:
            _present(context, certificate, key, self.user)
        elif key:
            raise Malformed(self.user.at("client-key"), "is of no use without client-certificate")
        if self.cluster.flag("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def _material(self, fields: Fields, name: str) -> Material | None:
        """Read what may stand in the kubeconfig itself, which counts unless it is empty, or in a file."""
        inline = f"{name}-data"
        if text := "".join(fields.text(inline).split()):
            try:
                return Material(data=base64.b64decode(text, validate=True))
            except (Error, ValueError) as error:
                raise Malformed(fields.at(inline), f"is no base64: {error}") from error
        return Material(path=str(self._file(fields, name))) if fields.text(name) else None

    def _file(self, fields: Fields, name: str) -> Path:
        """Return the file that is named; its path is relative to the kubeconfig's."""
        path = Path(os.path.normpath(self.path.absolute().parent / fields.text(name)))
        self.files.append(str(path))
        if not path.is_file():
            raise Malformed(fields.at(name), f"there is no file {path}")
        return path


def kubeconfig_of(name: str, context: str | None) -> Kubeconfig:
    """Read the file of that *name*, and in it *context* or the current one."""
    path = Path(name).expanduser()
    try:
        document = yaml.safe_load(path.read_bytes())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Malformed(name, f"is no YAML: {error}") from error
    if not isinstance(document, Mapping):
        raise Malformed(name, "is no kubeconfig: there is no object in it")
    fields = Fields(dict(document), "")
    chosen = _named(fields, "contexts", context or fields.required("current-context"))
    cluster, user = _named(fields, "clusters", chosen.required("cluster")), chosen.text("user")
    return Kubeconfig(path, cluster, _named(fields, "users", user) if user else Fields({}, "users"))


def _named(fields: Fields, kind: str, name: str) -> Fields:
    """Return what the list of a *kind* has under *name*."""
    found = [entry for entry in fields.objects(kind) if entry.text("name") == name]
    if len(found) != 1:
        raise Malformed(kind, f"has {'more than one' if found else 'none'} of the name {name!r}")
    return found[0].child(kind.removesuffix("s"))


def refuse_impersonation(user: Fields) -> None:
    for name in IMPERSONATION:
        if user.has(name):
            raise Malformed(user.at(name), "acting as somebody else is not supported")


def context_of(authority: Material | None, named: str) -> ssl.SSLContext:
    """Return what verifies the server by *authority*, which is *named* so, or by the system's where there is none."""
    given: dict[str, Any] = {}
    if authority is not None and authority.data:
        # Beside certificates, which are ASCII, there may be comments.
        given = {"cadata": authority.data.decode("ascii", "ignore")}
        if not given["cadata"].strip():
            # Python would trust the system's authorities.
            raise Malformed(named, "cannot be used: there is no certificate in it")
    elif authority is not None:
        given = {"cafile": authority.path}
    try:
        return lenient(ssl.create_default_context(**given))
    except ssl.SSLError as error:
        raise Malformed(named, f"cannot be used: {error}") from error


def lenient(context: ssl.SSLContext) -> ssl.SSLContext:
    """Accept the authorities that Go accepts and that the strict flag of newer Pythons does not."""
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _present(context: ssl.SSLContext, certificate: Material, key: Material | None, user: Fields) -> None:
    """Present a client's certificate; without a *key* of its own it stands beside it."""
    with ExitStack() as files:
        paths = [files.enter_context(material.as_file()) for material in (certificate, key) if material]
        try:
            # A key that needs a password is an error; by default somebody would be asked for it.
            context.load_cert_chain(paths[0], paths[-1], password="")
        except ssl.SSLError as error:
            raise Malformed(user.at("client-certificate"), f"cannot be used: {error}") from error
