"""A plain kubeconfig is read as the library reads it; what is wrong with one is named; the library is for the rest."""

import base64
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.kube import library
from extender.kube.access import Access
from extender.kube.credentials import NoCredentials, credentials, from_kubeconfig
from extender.kube.kubeconfig import as_file, kubeconfig_of
from tests.tree import ROOT
from tests.web.certificates import locked_by

Json = dict[str, Any]
SAFE = "https://10.0.0.1:6443"
# What cluster and user have, beyond the server: files that begin with an @ are given as their content.
PLAIN: dict[str, tuple[Json, Json]] = {
    "nobody": ({"server": "http://10.0.0.1"}, {}),
    "token": ({"server": SAFE, "certificate-authority": "ca.crt"}, {"token": "secret"}),
    "token-in-a-file": ({"server": SAFE, "certificate-authority": "ca.crt"}, {"tokenFile": "token"}),
    "password": ({"server": "http://10.0.0.1:8080/"}, {"username": "me", "password": "secret"}),
    "half-a-password": ({"server": "http://10.0.0.1"}, {"username": "me"}),
    "certificate": (
        {"server": SAFE, "certificate-authority": "ca.crt"},
        {"client-certificate": "me.crt", "client-key": "me.key"},
    ),
    "everything-inside": (
        {"server": SAFE, "certificate-authority-data": "@ca.crt"},
        {"client-certificate-data": "@me.crt", "client-key-data": "@me.key"},
    ),
    "inside-counts": (
        {"server": SAFE, "certificate-authority-data": "@ca.crt", "certificate-authority": "never"},
        {"client-certificate": "me.crt", "client-key-data": "@me.key", "client-key": "never"},
    ),
    "of-the-system": ({"server": f"{SAFE}/prefix/"}, {"token": "secret"}),
    "insecure": ({"server": SAFE, "insecure-skip-tls-verify": True}, {"token": "secret"}),
    "named": ({"server": SAFE, "certificate-authority": "ca.crt", "tls-server-name": "api"}, {"token": "secret"}),
    "proxy": ({"server": SAFE, "certificate-authority": "ca.crt", "proxy-url": "http://proxy:3128"}, {"token": "t"}),
    "no-tls-no-files": ({"server": "http://10.0.0.1", "certificate-authority": "never"}, {"client-key": "never"}),
}
# A plugin that gives a token, as credential plugins do.
PLUGIN = (
    'import json; print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
    ' "status": {"token": "of-a-plugin"}}))'
)
EXEC = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "command": sys.executable,
    "args": ["-c", PLUGIN],
    "interactiveMode": "Never",
}
LINES = EXEC | {"args": ["-c", PLUGIN.replace("of-a-plugin", "of-a\\nplugin")]}
# What a user has, and the token that client-go sends of it: getUserIdentificationPartialConfig in its tools/clientcmd,
# NewBearerAuthWithRefreshRoundTripper in its transport, UpdateTransportConfig in its plugin/pkg/client/auth/exec.
TOKENS: dict[str, tuple[Json, str]] = {
    "a token": ({"token": "t"}, "t"),
    "a file": ({"tokenFile": "token"}, "of-a-file"),
    "a file before a token": ({"token": "t", "tokenFile": "token"}, "of-a-file"),
    "a file before no token": ({"token": "", "tokenFile": "token"}, "of-a-file"),
    "a token while there is no file": ({"token": "t", "tokenFile": "never"}, "t"),
    "a token while a file is empty": ({"token": "t", "tokenFile": "empty"}, "t"),
    "a token while a file is no text": ({"token": "t", "tokenFile": "odd"}, "t"),
    "a token and no name of a file": ({"token": "t", "tokenFile": ""}, "t"),
    "a plugin": ({"exec": EXEC}, "of-a-plugin"),
    "a plugin where nothing is given": ({"exec": EXEC, "token": "", "tokenFile": ""}, "of-a-plugin"),
    "a token before a plugin": ({"exec": EXEC, "token": "t"}, "t"),
    "a file before a plugin": ({"exec": EXEC, "tokenFile": "token"}, "of-a-file"),
}
BROKEN: dict[str, tuple[str, Json]] = {
    "no current-context": ("current-context: is required", {"current-context": None}),
    "no such context": ("contexts: has none of the name 'other'", {"current-context": "other"}),
    "no contexts": ("contexts: is no list", {"contexts": "c"}),
    "an odd context": (r"contexts\[0\]: is no JSON object", {"contexts": ["c"]}),
    "two contexts": ("contexts: has more than one of the name 'c'", {"contexts": [{"name": "c"}, {"name": "c"}]}),
    "no cluster": (r"contexts\[0\].context.cluster: is required", {"contexts": [{"name": "c"}]}),
    "no such cluster": ("clusters: has none of the name 'c'", {"clusters": []}),
    "no such user": ("users: has none of the name 'c'", {"users": []}),
}
SENSELESS: dict[str, tuple[str, Json, Json]] = {
    "no server": ("cluster.server: is required", {}, {}),
    "no scheme": ("cluster.server: begins with neither", {"server": "10.0.0.1:6443"}, {}),
    "no string": ("cluster.server: is no string", {"server": 1}, {}),
    "another proxy": ("cluster.proxy-url: begins", {"server": SAFE, "proxy-url": "socks5://proxy"}, {}),
    "no flag": ("cluster.insecure-skip-tls-verify: is n", {"server": SAFE, "insecure-skip-tls-verify": "no"}, {}),
    "no authority": ("cluster.certificate-authority: there is no", {"server": SAFE, "certificate-authority": "x"}, {}),
    "odd authority": ("certificate-authority: cannot be", {"server": SAFE, "certificate-authority": "token"}, {}),
    "no base64": ("cluster.certificate-authority-data: is no", {"server": SAFE, "certificate-authority-data": "="}, {}),
    "no certificate": (
        "cluster.certificate-authority: cannot be used: there is no",
        {"server": SAFE, "certificate-authority-data": base64.b64encode(b"\xff\xfe\n").decode()},
        {},
    ),
    "only a comment": (
        "cluster.certificate-authority: cannot be used",
        {"server": SAFE, "certificate-authority-data": base64.b64encode(b"# nothing").decode()},
        {},
    ),
    "token": ("user.token: is no string", {"server": SAFE}, {"token": 1}),
    "no token": ("user.tokenFile: there is no file", {"server": SAFE}, {"tokenFile": "never"}),
    "empty token": ("user.tokenFile: names a file without", {"server": SAFE}, {"tokenFile": "empty"}),
    "odd token": ("user.tokenFile: names a file that is no text", {"server": SAFE}, {"tokenFile": "odd"}),
    "a token of two lines": ("user.token: gives a token with a line feed", {"server": SAFE}, {"token": "a\nb"}),
    "a file of two lines": ("user.tokenFile: gives a token with", {"server": SAFE}, {"tokenFile": "lines"}),
    "a token with a bell": ("user.token: gives a token with", {"server": SAFE}, {"token": "a\ab"}),
    "a plugin of two lines": ("user: gives a token with", {"server": SAFE}, {"exec": LINES}),
    "key alone": ("user.client-key: is of no use", {"server": SAFE}, {"client-key": "me.key"}),
    "no key": ("user.client-certificate: cannot be used", {"server": SAFE}, {"client-certificate": "me.crt"}),
    "another key": (
        "user.client-certificate: cannot be used",
        {"server": SAFE},
        {"client-certificate": "me.crt", "client-key": "ca.key"},
    ),
    "a key with a password": (
        "user.client-certificate: cannot be used",
        {"server": SAFE},
        {"client-certificate": "me.crt", "client-key": "me.locked"},
    ),
    "somebody else": ("user.as: acting as somebody else", {"server": SAFE}, {"token": "t", "as": "admin"}),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of an authority, a client's certificate and tokens."""
    folder = tmp_path_factory.mktemp("credentials")
    for name in ("ca", "me"):
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={name}"]
        try:
            subprocess.run([*command, "-keyout", f"{name}.key", "-out", f"{name}.crt"], check=True, cwd=folder)
        except FileNotFoundError:
            pytest.skip("openssl is not installed")
    locked_by(folder / "me.key", "secret")
    (folder / "token").write_text("of-a-file\n")
    (folder / "empty").write_text("\n")
    (folder / "odd").write_bytes(b"\xff")
    (folder / "lines").write_text("of-a\nfile\n")
    return folder


def document(cluster: Json, user: Json) -> Json:
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "clusters": [{"name": "b", "cluster": {}}, {"name": "c", "cluster": cluster}],
        "users": [{"name": "c", "user": user}],
    }


def written(folder: Path, content: object) -> str:
    path = folder / "kubeconfig"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def filled(folder: Path, fields: Json) -> Json:
    return {name: inside(folder, value) if str(value).startswith("@") else value for name, value in fields.items()}


def inside(folder: Path, name: str) -> str:
    return base64.b64encode((folder / name.removeprefix("@")).read_bytes()).decode()


def told(access: Access) -> object:
    """Return everything about *access* that can be compared."""
    tls = access.tls
    verified = None if tls is None else (tls.verify_mode, tls.verify_flags, tls.check_hostname, tls.get_ca_certs())
    return access.server, access.authorization, access.server_name, access.proxy, verified


@pytest.mark.parametrize("name", PLAIN)
async def test_a_plain_kubeconfig_is_read_as_the_library_reads_it(name: str, folder: Path) -> None:
    cluster, user = PLAIN[name]
    path = written(folder, document(filled(folder, cluster), filled(folder, user)))
    assert kubeconfig_of(path, None).is_plain
    ours, theirs = await from_kubeconfig(path, None), await library.load(path, None)
    assert told(ours.access) == told(theirs.access)
    kept = {file for file in theirs.files if Path(file).parent == folder}
    assert set(ours.files) == kept


@pytest.mark.parametrize("case", TOKENS)
@pytest.mark.parametrize("beside", ["", ":never"], ids=["alone", "merged"])
async def test_the_token_of_a_user_is_that_which_kubectl_takes(case: str, beside: str, folder: Path) -> None:
    user, token = TOKENS[case]
    path = written(folder, document({"server": "http://10.0.0.1"}, user))
    loaded = await from_kubeconfig(path + beside, None)
    assert loaded.access.authorization == f"Bearer {token}"
    assert not user.get("tokenFile") or str(folder / user["tokenFile"]) in loaded.files


@pytest.mark.parametrize("empty", ["", " \n", None], ids=["empty", "blank", "unset"])
async def test_where_nothing_stands_inside_the_file_counts(empty: str | None, folder: Path) -> None:
    cluster, user = PLAIN["certificate"]
    inside = {f"{name}-data": empty for name in ("certificate-authority", "client-certificate", "client-key")}
    plain = await from_kubeconfig(written(folder, document(cluster, user)), None)
    ours = await from_kubeconfig(written(folder, document(cluster | inside, user | inside)), None)
    assert told(ours.access) == told(plain.access)
    assert set(ours.files) == set(plain.files)
    assert ours.access.tls is not None
    assert subject_shown(ours.access.tls, folder) == "me"


@pytest.mark.parametrize("name", ["certificate", "everything-inside", "inside-counts"])
def test_a_client_shows_its_certificate(name: str, folder: Path) -> None:
    cluster, user = PLAIN[name]
    path = written(folder, document(filled(folder, cluster), filled(folder, user)))
    tls = kubeconfig_of(path, None).loaded().access.tls
    assert tls is not None
    assert subject_shown(tls, folder) == "me"


def subject_shown(tls: ssl.SSLContext, folder: Path) -> str:
    """Return whom *tls* shows to a server that asks, in memory: the handshake goes from one to the other by hand."""
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    asking.load_cert_chain(folder / "ca.crt", folder / "ca.key")
    asking.load_verify_locations(folder / "me.crt")
    asking.verify_mode = ssl.CERT_REQUIRED
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls.check_hostname = False
    client, server = tls.wrap_bio(down, up), asking.wrap_bio(up, down, server_side=True)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    shown = server.getpeercert()
    assert shown is not None
    return str(dict(pair for part in shown["subject"] for pair in part)["commonName"])  # type: ignore[misc]  # typeshed does not say of what the parts are


@pytest.mark.parametrize("name", BROKEN)
async def test_a_kubeconfig_that_does_not_go_together_names_where(name: str, folder: Path) -> None:
    says, change = BROKEN[name]
    with pytest.raises(NoCredentials, match=says):
        await credentials(written(folder, document({"server": SAFE}, {}) | change))


@pytest.mark.parametrize("name", SENSELESS)
async def test_a_field_that_makes_no_sense_is_named(name: str, folder: Path) -> None:
    says, cluster, user = SENSELESS[name]
    with pytest.raises(NoCredentials, match=says):
        await credentials(written(folder, document(cluster, user)))


# What looks like the address of a server.
UNREACHABLE: dict[str, str] = {
    "https://127.0.0.1:99999": "is no address of a server: Port out of range",
    "https://h:port": "is no address of a server: Port could not be cast",
    "https://127.0.0.1:-1": "is no address of a server: Port could not be cast",
    "https://[::1": "is no address of a server: Invalid IPv6 URL",
    "https://..": "is no address of a server: .*label",
    f"https://{64 * 'a'}.example": "is no address of a server: .*label",
    "https://:443": "is no address of a server: it has no host",
    "https://a b": "is no address of a server: it has no host, or one that cannot be",
    "https://h\n": "is no address of a server: it has no host, or one that cannot be",
    "https://me:secret@h": "has a user in it",
}


@pytest.mark.parametrize("server", UNREACHABLE)
@pytest.mark.parametrize("beside", ["", ":never"], ids=["alone", "merged"])
async def test_a_server_that_cannot_be_is_refused(server: str, beside: str, folder: Path) -> None:
    with pytest.raises(NoCredentials, match=rf"cluster\.server: {UNREACHABLE[server]}") as refused:
        await credentials(written(folder, document({"server": server}, {"token": "t"})) + beside)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "server",
    [
        "https://[::1]:6443",
        "https://[fe80::1%25eth0]",
        "http://h_1.",
        "https://bücher.example/prefix",
        "https://h:0443",
    ],
)
async def test_a_server_is_taken_as_it_is_written(server: str, folder: Path) -> None:
    loaded = await from_kubeconfig(written(folder, document({"server": f"{server}/"}, {})), None)
    assert loaded.access.server == server


@pytest.mark.parametrize(("content", "says"), [("a: [", "is no YAML"), ("- a", "no object"), ("", "no object")])
async def test_what_is_no_kubeconfig_is_named(content: str, says: str, folder: Path) -> None:
    with pytest.raises(NoCredentials, match=f"kubeconfig: .*{says}"):
        await credentials(written(folder, content))


# What is no YAML, with a token in it, and what is told of that.
UNREADABLE: dict[str, tuple[str, str]] = {
    "no end": ('token: "c4n4ry-\n', "line 2, column 1: found unexpected end of stream"),
    "a colon": ("token: c4n4ry-: x", "line 1, column 15: mapping values are not allowed here"),
    "a tab": ("\ttoken: c4n4ry-", "line 1, column 1: found character '\\\\t' that cannot start any token"),
    "an odd escape": ('token: "c4n4ry-\\q"', "line 1, column 17: found unknown escape character 'q'"),
    "an alias": ("token: *c4n4ry-", r"line 1, column 8: found undefined alias \.\.\.$"),
    "a tag": ("token: !c4n4ry-'x y", r"line 1, column 8: could not determine a constructor for the tag \.\.\.$"),
    "no brace": ("token: {c4n4ry-", r"line 1, column 16: expected ',' or '}', but got \.\.\.$"),
    "an odd character": ("token: c4n4ry-\x01", "position 14: special characters are not allowed"),
}
# The same, where the parser takes a value for something that it is not.
MISTAKEN: dict[str, str] = {
    "a number": "token: !!float c4n4ry-",
    "a flag": "token: !!bool c4n4ry-",
    "nothing": "token: !!int ''  # c4n4ry-",
    "a date": "token: 2026-99-99 # c4n4ry-",
    "a list": f"token: {3000 * '['}c4n4ry-",
}


@pytest.mark.parametrize("name", UNREADABLE)
@pytest.mark.parametrize("beside", ["", ":never"], ids=["alone", "merged"])
async def test_what_stands_in_an_unreadable_kubeconfig_is_not_told(name: str, beside: str, folder: Path) -> None:
    content, says = UNREADABLE[name]
    with pytest.raises(NoCredentials, match=f"kubeconfig.*: is no YAML: {says}") as refused:
        await credentials(written(folder, content) + beside)
    assert "c4n4ry-" not in str(refused.value)


@pytest.mark.parametrize("name", MISTAKEN)
@pytest.mark.parametrize("beside", ["", ":never"], ids=["alone", "merged"])
async def test_a_value_of_a_kubeconfig_that_is_not_what_it_is_said_to_be_is_not_told(
    name: str, beside: str, folder: Path
) -> None:
    with pytest.raises(NoCredentials, match=r"kubeconfig.*: a value is not what") as refused:
        await credentials(written(folder, MISTAKEN[name]) + beside)
    assert "c4n4ry-" not in str(refused.value)


async def test_a_plugin_is_left_to_the_library(folder: Path) -> None:
    path = written(folder, document({"server": "http://10.0.0.1"}, {"exec": EXEC}))
    assert not kubeconfig_of(path, None).is_plain
    assert (await from_kubeconfig(path, None)).access.authorization == "Bearer of-a-plugin"


@pytest.mark.parametrize(
    "does",
    [{"command": "false"}, {"command": "there-is-no-such-program"}, {"command": "echo", "args": ["no JSON"]}],
    ids=["fails", "is-not-there", "says-something-else"],
)
async def test_a_plugin_that_gives_nothing_does_not_make_us_nobody(does: Json, folder: Path) -> None:
    path = written(folder, document({"server": "http://10.0.0.1"}, {"exec": EXEC | does}))
    with pytest.raises(NoCredentials, match=r"kubeconfig: user\.exec: no credentials came of it"):
        await credentials(path)


@pytest.mark.parametrize("given", [{"token": "t"}, {"tokenFile": "token"}], ids=["token", "file"])
def test_a_plugin_is_not_run_for_who_is_given_a_token(given: Json, folder: Path) -> None:
    path = written(folder, document({"server": "http://10.0.0.1"}, {"exec": EXEC, **given}))
    assert kubeconfig_of(path, None).is_plain


async def test_an_odd_kubeconfig_that_is_left_to_the_library_does_not_end_us(folder: Path) -> None:
    path = written(folder, document({"server": "http://10.0.0.1"}, {"auth-provider": {"name": "oidc", "config": 1}}))
    with pytest.raises(NoCredentials):
        await credentials(path)


async def test_several_files_are_merged_by_the_library(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = document({"server": "http://10.0.0.1"}, {"token": "secret"})
    users, rest = folder / "users", folder / "rest"
    users.write_text(yaml.safe_dump({"users": whole.pop("users")}))
    rest.write_text(yaml.safe_dump(whole))
    monkeypatch.setenv("KUBECONFIG", f"{rest}:{users}")
    loaded = await from_kubeconfig(None, None)
    assert loaded.access == Access(server="http://10.0.0.1", authorization="Bearer secret")


IMPERSONATIONS: dict[str, object] = {"as": "admin", "as-uid": "1", "as-groups": ["g"], "as-user-extra": {"a": ["b"]}}


@pytest.mark.parametrize("field", IMPERSONATIONS)
async def test_acting_as_somebody_else_is_refused_where_files_are_merged(
    field: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(folder, document({"server": "http://10.0.0.1"}, {"token": "secret", field: IMPERSONATIONS[field]}))
    monkeypatch.setenv("KUBECONFIG", f"{path}:{folder / 'never'}")
    with pytest.raises(NoCredentials, match=f"user.{field}: acting as somebody else") as refused:
        await credentials()
    assert "secret" not in str(refused.value)


async def test_acting_as_somebody_else_is_refused_where_a_plugin_gives_the_token(folder: Path) -> None:
    path = written(folder, document({"server": "http://10.0.0.1"}, {"exec": EXEC, "as": "admin"}))
    with pytest.raises(NoCredentials, match=r"user\.as: acting as somebody else"):
        await credentials(path)


def test_what_stands_in_a_kubeconfig_is_a_file_where_there_is_no_memory_for_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr("os.memfd_create", raising=False)
    with as_file(b"key") as path:
        assert Path(path).read_bytes() == b"key"
    assert not Path(path).exists()


@pytest.mark.parametrize("name", ["token", "everything-inside"])
def test_what_serves_does_not_import_the_library_for_a_plain_kubeconfig(name: str, folder: Path) -> None:
    cluster, user = PLAIN[name]
    path = written(folder, document(filled(folder, cluster), filled(folder, user)))
    program = (
        "import asyncio, sys; from extender.cli.serve import credentials; asyncio.run(credentials(sys.argv[1]));"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    ran = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not {"kubernetes", "requests", "oauthlib", "urllib3", "celpy", "pytest"} & set(ran.stdout.split())
