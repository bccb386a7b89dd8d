"""Every setting with its type, its default and what it means.

The file, the environment, the flags and the document are read off these classes.
"""

from dataclasses import field
from typing import Annotated, Literal, NamedTuple

from extender.allocation.features import Features
from extender.allocation.solve import STEPS
from extender.model.frozen import dataclass
from extender.state.belief import READY_WITHIN_S


class Key(NamedTuple):
    """What a setting means, and the bounds of a number."""

    says: str
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """Where we listen."""

    verbs: Annotated[str, Key("address of the scheduler's calls and of decisions; loopback, or with mutual TLS")] = (
        "127.0.0.1:8888"
    )
    probes: Annotated[str, Key("address of /livez, /readyz and /metrics; empty for none")] = ":8080"
    keep_alive_seconds: Annotated[
        float, Key("idle connections are kept this long; kube-scheduler keeps its end for 90 s", least=120)
    ] = 180
    max_body_mebibytes: Annotated[int, Key("larger requests are refused", least=1, most=1024)] = 64
    shutdown_seconds: Annotated[float, Key("how long calls in progress may take at shutdown", least=0)] = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """TLS of the scheduler's calls."""

    certificate: Annotated[str, Key("file of our certificate and its chain, PEM; empty for plain HTTP")] = ""
    key: Annotated[str, Key("file of our private key, PEM")] = ""
    client_authorities: Annotated[
        str, Key("file of the authorities whose clients may call, PEM; empty for any client")
    ] = ""
    client_names: Annotated[
        tuple[str, ...], Key("names of the clients that may call, in their certificates; none for all clients")
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """The API server."""

    kubeconfig: Annotated[str, Key("file with the credentials; empty: of $KUBECONFIG, or the pod's own")] = ""
    timeout_seconds: Annotated[float, Key("how long the API server may take to answer", least=0.1, most=60)] = 10
    scheduler_timeout_seconds: Annotated[float, Key("httpTimeout of this extender in the scheduler", least=1)] = 30
    bind_seconds: Annotated[float, Key("bind is answered by then; less than the scheduler waits", least=0.1)] = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What filter answers."""

    policy: Annotated[
        Literal["auto", "all", "shortlist", "one"],
        Key(
            "all: every node that fits; shortlist: the best of them; one: the best one; "
            "auto: one, or a shortlist where kube-scheduler may prefer another"
        ),
    ] = "auto"
    shortlist: Annotated[
        int,
        Key("how many nodes a shortlist has; more than 11 could not all have scores of their own", least=1, most=11),
    ] = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """How devices are chosen."""

    order: Annotated[
        Literal["best", "first"], Key("best: preferred devices; first: those that kube-scheduler would take")
    ] = "best"
    strict: Annotated[bool, Key("an error on one node fails the pod, as in kube-scheduler")] = False
    steps: Annotated[int, Key("candidates that one search may try before it is given up", least=1)] = STEPS
    ignored_resources: Annotated[
        tuple[str, ...],
        Key("extended resources that kube-scheduler ignores: nodes need not have them; example.com/* for all of one"),
    ] = ()
    ready_within_seconds: Annotated[
        float,
        Key("how long a driver may take to make a device ready (bindingConditions), from its allocation on", least=1),
    ] = READY_WITHIN_S
    release: Annotated[
        Literal["v1.34", "v1.35", "v1.36", "v1.37"],
        Key("release of Kubernetes whose way of writing allocations is kept; later ones write as 1.37 does"),
    ] = "v1.37"
    features: Annotated[Features, Key("feature gates by name, where they differ from Kubernetes 1.37")] = field(
        default_factory=Features
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Which devices and which nodes are the better ones."""

    file: Annotated[str, Key("the placement document, YAML, read again when it changes; empty for none")] = ""
    bound_pods: Annotated[
        bool, Key("follow bound pods, to know what they leave of devices that device plugins count")
    ] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """Which devices are ours, and what is done about others that allocate them."""

    mode: Annotated[
        Literal["owner", "advisor"],
        Key("owner: we allocate and bind; advisor: kube-scheduler's own plugin does, we filter and score"),
    ] = "owner"
    drivers: Annotated[
        tuple[str, ...],
        Key("drivers whose devices are ours, and tainted unless shared; none named: all are given, none is tainted"),
    ] = ()
    classes: Annotated[tuple[str, ...], Key("device classes that we serve; none named: all")] = ()
    shared_drivers: Annotated[
        tuple[str, ...],
        Key("drivers of ours of which others allocate, too, by classes that are not ours: not tainted"),
    ] = ()
    owner_taint: Annotated[str, Key("key of the device taint that keeps other allocators away; empty for none")] = (
        "dra-extender.x-k8s.io/owned"
    )
    keep_taint: Annotated[bool, Key("put that taint on our drivers' devices by rules, and put it back")] = True
    accept_unpartitioned: Annotated[
        bool, Key("start although nothing that we can see keeps other allocators from our devices")
    ] = False

    @property
    def keeps_taint(self) -> bool:
        """Whether rules are written."""
        return self.mode == "owner" and bool(self.owner_taint) and self.keep_taint


@dataclass(frozen=True, slots=True, kw_only=True)
class Holds:
    """Devices that are promised."""

    offer_seconds: Annotated[float, Key("how long an offer is kept that the scheduler does not take up", least=1)] = 30
    wait_seconds: Annotated[
        float,
        Key("how long an offer is kept while the scheduler waits for volumes or a plugin before it binds", least=0),
    ] = 660
    rechecks: Annotated[
        int,
        Key(
            "seconds before a claim of ours that keeps its pod on nodes where it does not fit is deallocated; "
            "each refusal of its pod counts as one, none while others end who were evicted for it there. "
            "What is made ready still is deallocated only where there is something for the pod elsewhere; once it is "
            "ready, counting begins when kube-scheduler asks about the pod, or after 30 seconds",
            least=1,
        ),
    ] = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Leading:
    """Which of several replicas answers and writes, and what of those before may still arrive."""

    enabled: Annotated[bool, Key("contend for a Lease, and answer and write only while it is ours")] = False
    namespace: Annotated[str, Key("namespace of both Leases")] = "dra-extender"
    lease: Annotated[str, Key("our Lease")] = "dra-extender"
    scheduler_lease: Annotated[
        str, Key("Lease of the scheduler beside us: we contend only while it leads; empty for any time")
    ] = "dra-scheduler"
    host: Annotated[
        str, Key("what the scheduler beside us calls itself in its Lease, up to the _; empty for the host name")
    ] = ""
    pod: Annotated[
        str,
        Key(
            "UID of our pod, from the downward API: a Lease of an earlier process of that pod need not run out, for "
            "that one has ended; empty where several may run at a time"
        ),
    ] = ""
    lease_seconds: Annotated[
        int, Key("a Lease that was not renewed for so long may be taken; the same for all replicas", least=1, most=3600)
    ] = 15
    trust_seconds: Annotated[float, Key("a renewal is relied upon for so long, well below leaseSeconds", least=0.1)] = (
        10
    )
    renew_seconds: Annotated[float, Key("the Leases are read and renewed so often", least=0.1)] = 2
    server_seconds: Annotated[
        float, Key("how long the API server may work at a write: its --request-timeout", least=0)
    ] = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """The view of the cluster."""

    # A quiet view is asked about after a third of this, and then waits for a bookmark: with less it would be too old
    # again and again.
    max_age_seconds: Annotated[float, Key("with an older view the scheduler is asked to come back later", least=10)] = (
        90
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Waking:
    """Rejected pods that have become possible."""

    nominate: Annotated[bool, Key("wake by nominating the node: one write, one pod; otherwise by an annotation")] = True
    nominate_ahead: Annotated[
        Literal["auto", "always", "never"],
        Key("nominate nodes for pods before they are asked about; auto: where it pays and is known to work"),
    ] = "auto"
    per_second: Annotated[float, Key("pods woken per second at most", least=0.1)] = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """What people see on their pods."""

    enabled: Annotated[bool, Key("write events about decisions")] = True
    per_second: Annotated[float, Key("events written per second at most", least=0.1)] = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """What is remembered of decisions."""

    keep: Annotated[int, Key("decisions that are remembered", least=1)] = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Logging:
    """The log, on standard error."""

    level: Annotated[Literal["debug", "info", "warning", "error"], Key("the least severe lines that are written")] = (
        "info"
    )
    format: Annotated[Literal["auto", "json", "text"], Key("auto: text on a terminal, otherwise JSON")] = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings."""

    schedulers: Annotated[
        tuple[str, ...],
        Key("schedulerName of the pods that we bind; with several, all of one kube-scheduler process", least=1),
    ] = ("dra-scheduler",)
    listen: Listen = field(default_factory=Listen)
    tls: Tls = field(default_factory=Tls)
    api: Api = field(default_factory=Api)
    answer: Answer = field(default_factory=Answer)
    allocation: Allocation = field(default_factory=Allocation)
    placement: Placement = field(default_factory=Placement)
    ownership: Ownership = field(default_factory=Ownership)
    holds: Holds = field(default_factory=Holds)
    leading: Leading = field(default_factory=Leading)
    watch: Watch = field(default_factory=Watch)
    waking: Waking = field(default_factory=Waking)
    events: Events = field(default_factory=Events)
    decisions: Decisions = field(default_factory=Decisions)
    logging: Logging = field(default_factory=Logging)
    fast_paths: Annotated[bool, Key("read and write long lists of nodes without decoding each name")] = True
