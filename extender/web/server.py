"""The two listeners: the scheduler's calls and decisions on one, probes and metrics on the other, which only reads."""

import asyncio
import logging
import ssl
from collections.abc import Callable
from dataclasses import field
from typing import Final, NamedTuple

import orjson
from aiohttp import web

from extender.model.frozen import dataclass
from extender.model.names import ObjectKey
from extender.telemetry.keys import CLIENT, ERROR, REASON, VERB
from extender.telemetry.metrics import Metrics
from extender.web.exposition import Scrapes
from extender.web.listener import Listener, ListenerLimits, refused
from extender.web.request import Known, nobody
from extender.web.routes import REFUSED, Routes
from extender.web.tls import Certificates, Files, names_in, refusing
from extender.web.verbs import Decisions, Health, Verbs

LOG: Final = logging.getLogger(__name__)
DECISIONS: Final = "/v1/decisions/"
JSON, OK = "application/json", 200
ANSWERED: Final = {"Content-Type": "application/json; charset=utf-8"}
EXPLAINED: Final = {"Content-Type": "text/plain; charset=utf-8"}
REFRESH_SECONDS: Final = 10
# So many verbs that there are not are told of, and so much of each.
MOST_STRANGE, LONGEST = 16, 64
# Anybody may ask for probes and metrics: little is granted, and nothing that lasts.
PROBES: Final = ListenerLimits(
    keep_alive_seconds=30,
    max_body_bytes=0,
    buffer_bytes=1 << 14,
    max_header_bytes=4096,
    lingering_seconds=0,
    # Waited for twice where somebody does not read an answer: of the time that we have, calls are to have the rest.
    shutdown_seconds=0.5,
    most_connections=64,
    # So 256 answers a second are the most for all that ask without a pause. A kubelet comes anew for each.
    rest_seconds=0.25,
)


class Address(NamedTuple):
    """Where to listen: no host is all interfaces, port 0 is any that is free."""

    host: str
    port: int


class CannotListen(OSError):  # noqa: N818 - says what went wrong, and is caught by that name
    """An address that cannot be listened on; *which* of the two it is."""

    def __init__(self, which: str, address: Address, error: OSError | UnicodeError) -> None:
        self.which = which
        why = (isinstance(error, OSError) and error.strerror) or error
        super().__init__(f"{address.host}:{address.port} cannot be listened on: {why}")


LOOPBACK: Final = Address("127.0.0.1", 8888)
EVERYWHERE: Final = Address("", 8080)  # the kubelet and Prometheus ask from elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Where and how we serve."""

    verbs: Address = LOOPBACK
    probes: Address | None = EVERYWHERE
    limits: ListenerLimits = field(default_factory=ListenerLimits)
    tls: Files | None = None
    client_names: frozenset[str] = frozenset()
    is_fast: bool = True


@dataclass(frozen=True, slots=True)
class Application:
    """Who answers what is asked over HTTP."""

    verbs: Verbs
    decisions: Decisions
    health: Health
    metrics: Metrics
    known: Known = nobody
    # Why nobody is answered: of what is decided elsewhere nothing is remembered here.
    hindrance: Callable[[], str] = lambda: ""


class Server:
    """Serves an application."""

    def __init__(self, application: Application, options: Options) -> None:
        self._application, self._options = application, options
        is_fast, known = options.is_fast, application.known
        self._routes = Routes(application.verbs, application.metrics, is_fast=is_fast, known=known)
        self._scrapes = Scrapes(application.metrics)
        self._certificates = Certificates(options.tls) if options.tls else None
        self._handshake = refusing(self._unverified)
        context = self._greeting(self._certificates) if self._certificates else None
        application.metrics.certificates_last(self._certificates.expiries if self._certificates else {})
        self._listeners = (Listener(self._call, options.limits, context, self._unread), Listener(self._probe, PROBES))
        self._refreshing: asyncio.Task[None] | None = None
        self.ports = (0, 0)
        self._told, self._refused = set[str](), set[str]()

    async def start(self) -> None:
        """Listen. The ports that were taken are in *ports*: that of the verbs, and that of the probes."""
        calls, probes = self._listeners
        try:
            self.ports = (
                await _started(calls, "verbs", self._options.verbs),
                await _started(probes, "probes", self._options.probes) if self._options.probes else 0,
            )
        except CannotListen:
            await self.stop()
            raise
        if self._certificates:
            self._refreshing = asyncio.create_task(self._refresh(self._certificates), name="certificates")
            self._refreshing.add_done_callback(self._application.health.lost)

    async def stop(self) -> None:
        """Let calls in progress end; probes are answered until then."""
        if self._refreshing:
            self._refreshing.cancel()
            await asyncio.wait([self._refreshing])
        for listener in self._listeners:
            await listener.stop()

    async def _call(self, request: web.BaseRequest, body: bytes) -> web.Response:
        if not self._may_call(request):
            return refused(403, "the client's certificate has none of the names that may call")
        if request.path.startswith(DECISIONS):
            return self._decided(request)
        verb = request.path[1:]
        if verb not in self._routes.by_verb:
            self._strange(verb)
            return refused(404, f"no such path; verbs are {', '.join(self._routes.by_verb)}")
        if request.method != "POST":
            return _wrong_method("POST")
        status, answer, _ = await self._routes.answer(verb, body)
        return web.Response(status=status, body=answer, headers=ANSWERED if status == OK else EXPLAINED)

    def _strange(self, verb: str) -> None:
        """Tell once of what nobody answers: kube-scheduler does not, where prioritizeVerb is wrong."""
        verb = verb[:LONGEST]
        if verb not in self._told and len(self._told) < MOST_STRANGE:
            self._told.add(verb)
            LOG.warning("there is no such verb", extra={VERB: verb})

    def _unread(self, request: web.BaseRequest, answer: web.Response) -> None:
        verb = request.path[1:]
        if verb in self._routes.by_verb:
            LOG.warning("a request could not be read", extra={VERB: verb, REASON: answer.text})
            self._application.metrics.verb(verb, REFUSED, 0.0)

    def _may_call(self, request: web.BaseRequest) -> bool:
        allowed = self._options.client_names
        if not allowed:
            return True
        names = list(names_in(request.get_extra_info("peercert")))
        is_known = not allowed.isdisjoint(names)
        if not is_known:
            self._application.metrics.client_refused("name")
        if not is_known and self._is_new(client := ", ".join(names)):
            LOG.warning("a client was refused for its name", extra={CLIENT: client})
        return is_known

    def _unverified(self, why: str) -> None:
        self._application.metrics.client_refused("certificate" if why else "no certificate")
        # Who has none is any stranger.
        if why and self._is_new(why):
            LOG.warning("a client was refused for its certificate", extra={REASON: why})

    def _is_new(self, refused: str) -> bool:
        """Tell whether it is to be told: kube-scheduler asks again for each pod that waits, every few seconds."""
        is_new = refused not in self._refused and len(self._refused) < MOST_STRANGE
        if is_new:
            self._refused.add(refused)
        return is_new

    def _greeting(self, certificates: Certificates) -> ssl.SSLContext:
        certificates.context.sslobject_class = self._handshake
        return certificates.context

    def _decided(self, request: web.BaseRequest) -> web.Response:
        namespace, _, name = request.path.removeprefix(DECISIONS).partition("/")
        if request.method != "GET":
            return _wrong_method("GET")
        known = self._application.decisions.of(ObjectKey(namespace, name))
        if known is None:
            why = self._application.hindrance() or self._application.decisions.unasked(ObjectKey(namespace, name))
            return refused(404, f"nothing is remembered of {namespace}/{name}{why and f'; {why}'}")
        return web.Response(body=orjson.dumps(known, option=orjson.OPT_INDENT_2), content_type=JSON)

    async def _probe(self, request: web.BaseRequest, _body: bytes) -> web.Response:
        if request.method not in {"GET", "HEAD"}:
            return _wrong_method("GET", "HEAD")
        if request.path == "/metrics":
            body, content_type = self._scrapes.exposition(request.headers.get("Accept", ""))
            return web.Response(body=body, headers={"Content-Type": content_type})
        health = self._application.health
        if request.path == "/livez":
            return web.Response(text="ok") if health.is_alive() else refused(500, "not alive")
        if request.path == "/readyz":
            missing = "\n".join(health.missing())
            return refused(503, missing) if missing else web.Response(text="\n".join(("ok", *health.warnings())))
        return refused(404, "no such path; there are /livez, /readyz, /metrics")

    async def _refresh(self, certificates: Certificates) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            try:
                if not await asyncio.to_thread(certificates.refresh):
                    continue
                # Whoever came in by authorities of before is to come in by these.
                await self._switch(certificates)
            except OSError as error:  # also what ssl raises
                fields = {ERROR: str(error)}
                LOG.error("certificates refused, the earlier ones stay in use", extra=fields)  # noqa: TRY400 - it says it all
                self._application.metrics.certificates(is_valid=False)
            else:
                LOG.info("certificates taken")
                self._application.metrics.certificates(is_valid=True)
                self._application.metrics.certificates_last(certificates.expiries)

    async def _switch(self, certificates: Certificates) -> None:
        context, self._refused = self._greeting(certificates), set()
        try:
            await self._listeners[0].renew(context, ends_others=certificates.has_other_clients)
        except OSError:
            certificates.not_taken()
            raise
        certificates.taken()


async def _started(listener: Listener, which: str, address: Address) -> int:
    try:
        return await listener.start(*address)
    except (OSError, UnicodeError) as error:  # the latter of a host that is no name, before it is looked up
        raise CannotListen(which, address, error) from error


def _wrong_method(*allowed: str) -> web.Response:
    response = refused(405, f"only {' and '.join(allowed)} {'is' if len(allowed) == 1 else 'are'} answered here")
    response.headers["Allow"] = ", ".join(allowed)
    return response
