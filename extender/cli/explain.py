"""``dra-extender explain``: what a running extender decided about a pod, and why."""

import ssl
import sys
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any

import orjson

from extender.cli.complaints import complain, refuse
from extender.cli.table import aligned, printable
from extender.config.address import Address, address_of
from extender.model.frozen import dataclass
from extender.model.names import is_dns_subdomain
from extender.web.tls import pass_phrase

SUMMARY = "say what was decided about a pod, and why"
DESCRIPTION = (
    "Ask a running extender for its last decision about a pod. "
    "Exit status: 0 where there is one, 1 where nothing is remembered or nobody answers, 2 for wrong usage."
)
TOLD, NOTHING = 0, 1
TIMEOUT_S = 10
MILLION = 1_000_000
REJECTED = {"REJECTED": "nodes", "SUCH AS": "example", "REASON": "word", "NEAREST MISS": "message"}


def configure(parser: ArgumentParser) -> None:
    """Add the arguments of this subcommand."""
    parser.add_argument("pod", metavar="NAMESPACE/NAME", help="the pod")
    parser.add_argument("--server", default="127.0.0.1:8888", help="host:port of the extender (127.0.0.1:8888)")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="text (default) or json")
    tls = parser.add_argument_group("where the extender speaks TLS")
    tls.add_argument("--ca", metavar="FILE", help="the authorities that may vouch for the extender, PEM")
    tls.add_argument("--certificate", metavar="FILE", help="our certificate as its client, PEM")
    tls.add_argument("--key", metavar="FILE", help="the private key of it, PEM; where left out it is in the same file")
    tls.add_argument("--server-name", metavar="NAME", help="the name in the extender's certificate (host of --server)")


@dataclass(frozen=True, slots=True)
class Secured:
    """How to speak TLS, and to whom."""

    context: ssl.SSLContext
    name: str


def run(arguments: Namespace) -> int:
    """Ask, and return the exit status."""
    namespace, _, name = arguments.pod.partition("/")
    if not (is_dns_subdomain(namespace) and is_dns_subdomain(name)):
        return refuse(f"{arguments.pod!r} is not NAMESPACE/NAME")
    try:
        address = address_of(arguments.server)
    except ValueError as error:
        return refuse(f"--server {error}")
    try:
        secured = _secured(arguments, address.host)
    except ValueError as error:
        return refuse(str(error))
    try:
        status, body = _asked(address, secured, f"/v1/decisions/{namespace}/{name}")
    except (OSError, HTTPException, UnicodeError) as error:
        hint = "" if secured else "; where it speaks TLS, it needs --ca"
        return _nothing(f"{arguments.server} does not answer: {error}{hint}")
    if status != HTTPStatus.OK:
        return _nothing(printable(body.decode(errors="replace").strip()))
    return _shown(body, arguments)


def _nothing(why: str) -> int:
    complain(why)
    return NOTHING


def _shown(body: bytes, arguments: Namespace) -> int:
    try:
        decision = orjson.loads(body)
        # As JSON, those of another version are shown, too.
        text = f"{body.decode()}\n" if decision["outcome"] and arguments.output == "json" else told(decision)
    except (ValueError, LookupError, TypeError):
        return _nothing(f"{arguments.server} answers, but with no decision: --server is not an extender's")
    sys.stdout.buffer.write(text.encode())
    return TOLD


def _secured(arguments: Namespace, host: str) -> Secured | None:
    """Return how TLS is spoken, None for plain HTTP; raise ValueError that names the option which is wrong."""
    if not arguments.ca:
        needy = [name for name in ("certificate", "key", "server_name") if getattr(arguments, name)]
        if needy:
            raise ValueError(f"--{needy[0].replace('_', '-')} needs --ca")
        return None
    if arguments.key and not arguments.certificate:
        raise ValueError("--key needs --certificate")
    try:
        context = ssl.create_default_context(cafile=arguments.ca)
    except OSError as error:
        raise ValueError(f"--ca {arguments.ca}: {error}") from error
    if arguments.certificate:
        try:
            context.load_cert_chain(arguments.certificate, arguments.key, password=pass_phrase)
        except OSError as error:
            files = " ".join(filter(None, (arguments.certificate, arguments.key)))
            raise ValueError(f"--certificate and --key {files}: {error}") from error
    return Secured(context, arguments.server_name or host)


def _asked(address: Address, secured: Secured | None, path: str) -> tuple[int, bytes]:
    connection = HTTPConnection(address.host, address.port, timeout=TIMEOUT_S)
    try:
        if secured:
            # Not HTTPSConnection: it compares the certificate with the host that is called, whatever we were told.
            connection.connect()
            connection.sock = secured.context.wrap_socket(connection.sock, server_hostname=secured.name)
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def told(decision: dict[str, Any]) -> str:
    """Tell *decision* in lines."""
    # Decisions outlive pods: who asks about a pod sees whether this is about that one, and how old it is.
    decided = datetime.fromtimestamp(decision["at"], UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    lines = [f"{decision['pod']}: {decision['outcome']} ({decision['reason']})"]
    lines += [f"decided: {decided}", f"uid: {decision['uid']}"]
    if decision["node"]:
        lines.append(f"node: {decision['node']}")
    lines += _devices(decision["given"])
    if decision["detail"]:
        lines.append(f"because: {decision['detail']}")
    text = "\n".join(map(printable, lines)) + "\n"
    if decision["best"]:
        text += "\n" + aligned([("BEST NODES", "SCORE", "WORTH", "FREE DEVICES", "WHY"), *map(_row, decision["best"])])
    if decision["basis"]:
        text += f"\n{printable(decision['basis'])}\n"
    if decision["rejected"]:
        rows = [tuple(str(item[name]) for name in REJECTED.values()) for item in decision["rejected"]]
        text += "\n" + aligned([tuple(REJECTED), *rows])
    return text


def _devices(given: list[dict[str, Any]]) -> list[str]:
    """Tell of each device which request it is for: where there are several claims, these may name requests alike."""
    is_one = len({item["claim"] for item in given}) == 1
    return [
        f"device: {item['request']} = {'/'.join(item['device'])}" + ("" if is_one else f" (claim {item['claim']})")
        for item in given
    ]


def _row(item: dict[str, Any]) -> tuple[str, ...]:
    worth = f"{item['value'] / MILLION:.3f}"
    free = item["free_devices"]
    return item["node"], str(item["score"]), worth, "-" if free is None else str(free), item["words"]
