"""Settings that do not go together, and texts that are not what they should be."""

from collections.abc import Iterator

from extender.config.address import Address, address_of
from extender.config.settings import Settings
from extender.model.names import is_dns_label, is_dns_subdomain, is_driver_name, is_label_key

Complaint = tuple[str, str]
# Clocks of replicas may differ in their speed by what is left.
MOST_TRUST = 0.8
IN_VAIN = "needs allocation.order best: in kube-scheduler's own order no policy is heeded, and nothing is forbidden"
RESOURCE = "must be an extended resource, as example.com/gpu, or example.com/* for all of a domain"


def complaints_about(settings: Settings) -> Iterator[Complaint]:
    """Yield the path of each setting that cannot be, with the reason."""
    yield from _listening(settings)
    yield from _tls(settings)
    yield from _times(settings)
    yield from _leading(settings)
    yield from _ownership(settings)
    for index, name in enumerate(settings.schedulers):
        if not is_dns_subdomain(name):
            yield f"schedulers[{index}]", "must be the name of a scheduler, as dra-scheduler"
    for index, name in enumerate(settings.allocation.ignored_resources):
        if not _is_resource(name):
            yield f"allocation.ignoredResources[{index}]", RESOURCE
    if settings.waking.nominate_ahead == "always" and not settings.waking.nominate:
        yield "waking.nominateAhead", "needs waking.nominate"
    if is_placed_in_vain(settings, settings.placement.file):
        yield "placement.file", IN_VAIN
    if settings.waking.nominate_ahead == "always" and not settings.placement.bound_pods:
        yield "waking.nominateAhead", "needs placement.boundPods, to know what bound pods leave"


def is_placed_in_vain(settings: Settings, document: str) -> bool:
    """Tell whether a placement *document* would be read, and nobody be placed by it."""
    return bool(document) and settings.allocation.order == "first" and settings.ownership.mode == "owner"


def _is_resource(name: str) -> bool:
    """Tell whether *name* is of an extended resource, or of all of a domain."""
    domain, slash, _ = name.rpartition("/")
    return bool(slash) and (is_label_key(name) or (name == f"{domain}/*" and is_dns_subdomain(domain)))


def _ownership(settings: Settings) -> Iterator[Complaint]:
    told = settings.ownership
    if told.owner_taint and not is_label_key(told.owner_taint):
        yield "ownership.ownerTaint", "must be the key of a taint, as example.com/owner"
    for name, values, is_name in (
        ("drivers", told.drivers, is_driver_name),
        ("classes", told.classes, is_dns_subdomain),
    ):
        for index, value in enumerate(values):
            if not is_name(value):
                yield f"ownership.{name}[{index}]", "must be a name, as gpu.example.com"
    for index, value in enumerate(told.shared_drivers):
        if value not in told.drivers:
            yield f"ownership.sharedDrivers[{index}]", "must be one of ownership.drivers"
    if told.shared_drivers and not told.classes:
        yield "ownership.sharedDrivers", "needs ownership.classes, which say what of these drivers is ours"
    if told.classes and told.keeps_taint and not told.drivers:
        yield "ownership.classes", "needs ownership.drivers, or ownership.keepTaint false: a taint is on whole drivers"
    if told.mode == "advisor" and settings.waking.nominate_ahead == "always":
        yield "waking.nominateAhead", "is for ownership.mode owner: where kube-scheduler allocates it chooses the node"


def _listening(settings: Settings) -> Iterator[Complaint]:
    listen = settings.listen
    verbs, wrong = _address(listen.verbs)
    if wrong:
        yield "listen.verbs", wrong
    if verbs and not verbs.is_loopback and not settings.tls.client_authorities:
        yield "listen.verbs", "must be loopback, or tls.clientAuthorities must say whose clients may call"
    probes, wrong = _address(listen.probes) if listen.probes else (None, "")
    if wrong:
        yield "listen.probes", wrong
    if verbs and probes and verbs.port == probes.port != 0:
        yield "listen.probes", "must have another port than listen.verbs"


def _address(text: str) -> tuple[Address | None, str]:
    """Return an address, or what is wrong with it."""
    try:
        return address_of(text), ""
    except ValueError as error:
        return None, str(error)


def _tls(settings: Settings) -> Iterator[Complaint]:
    tls = settings.tls
    if tls.certificate and not tls.key:
        yield "tls.key", "is needed with tls.certificate"
    if tls.key and not tls.certificate:
        yield "tls.certificate", "is needed with tls.key"
    if tls.client_authorities and not tls.certificate:
        yield "tls.certificate", "is needed with tls.clientAuthorities"
    if tls.client_names and not tls.client_authorities:
        yield "tls.clientAuthorities", "is needed with tls.clientNames"


def _times(settings: Settings) -> Iterator[Complaint]:
    api = settings.api
    if api.timeout_seconds >= api.bind_seconds:
        yield "api.timeoutSeconds", f"must be less than api.bindSeconds, {api.bind_seconds:g}"
    if api.bind_seconds >= api.scheduler_timeout_seconds:
        yield "api.bindSeconds", f"must be less than api.schedulerTimeoutSeconds, {api.scheduler_timeout_seconds:g}"


def _leading(settings: Settings) -> Iterator[Complaint]:
    leading = settings.leading
    if leading.trust_seconds > MOST_TRUST * leading.lease_seconds:
        yield "leading.trustSeconds", f"must be at most {MOST_TRUST:g} of leading.leaseSeconds, {leading.lease_seconds}"
    if leading.renew_seconds > leading.trust_seconds / 2:
        yield "leading.renewSeconds", f"must be at most half of leading.trustSeconds, {leading.trust_seconds:g}"
    named = {"namespace": leading.namespace, "lease": leading.lease, "schedulerLease": leading.scheduler_lease}
    for name, value in named.items():
        if not is_dns_subdomain(value) and (value or name != "schedulerLease"):
            yield f"leading.{name}", "must be the name of an object"
    if leading.pod and not is_dns_label(leading.pod):
        yield "leading.pod", "must be the UID of a pod"
    if leading.lease == leading.scheduler_lease:
        yield "leading.lease", "must be another one than leading.schedulerLease: the scheduler holds that"
