"""What is counted and measured, in a registry of its own. docs/metrics.md explains each."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from extender.scheduling.decision import Decided
from extender.telemetry.scraped import Present, PresentCollector

M = TypeVar("M", Counter, Histogram)

PREFIX: Final = "dra_extender"
VERBS: Final = ("filter", "prioritize", "preempt", "bind")
# A verb that answers from memory takes a fraction of a millisecond; bind waits for writes, up to its deadline.
VERB_TIMES: Final = (.00025, .0005, .001, .002, .004, .008, .016, .032, .064, .13, .25, .5, 1, 2, 4, 8, 16)  # fmt: skip
API_TIMES: Final = (.001, .002, .004, .008, .016, .032, .064, .13, .25, .5, 1, 2, 4, 8, 16, 32, 64)  # fmt: skip

# Drivers of which is told before anything happens. Series stay, and whoever publishes slices can make up as many names.
MOST_DRIVERS: Final = 256
OPENMETRICS: Final = "application/openmetrics-text"
# Of best links a set has a share up to 1; what is left behind costs up to a half.
WORTHS: Final = (0, .01, .05, .1, .25, .5, .75, .9, .99, 1)  # fmt: skip


class Metrics:
    """Everything that is told to Prometheus. Labels take few values, none of which come from a pod."""

    def __init__(self, version: str = "") -> None:
        self.registry = CollectorRegistry()
        self._parted: dict[tuple[object, tuple[str, ...]], Any] = {}
        self._drivers: set[str] = set()
        # The first to be asked: what it hears of drivers shows in the others.
        self._collector = PresentCollector(PREFIX, self._begin)
        self.registry.register(self._collector)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._begin_answering()
        self._begin_asking()
        self._begin_owning()
        self._begin_securing()
        self._begin_placing()
        self._build = self._gauge("build_info", "1, with the version.", "version")
        self._build.labels(version).set(1)

    def _begin_answering(self) -> None:
        self._verbs = self._histogram(
            "verb_duration_seconds", "How long a verb took, by how it ended.", VERB_TIMES, "verb", "result"
        )
        self._names = self._histogram(
            "verb_nodes", "How many nodes a request named.", (1, 8, 64, 128, 512, 1024, 2048, 4096, 8192, 16384), "verb"
        )
        self._rejections = self._counter("rejections", "Answers to filter that let no node pass, by reason.", "reason")
        self._decisions = self._counter("decisions", "Decisions about pods, by outcome.", "outcome")
        self._wakes = self._counter("wakes", "Pods woken, by the way it was done and whether it was.", "way", "result")
        self._guesses = self._counter(
            "nominations_ahead", "Pods nominated before they were asked about, by what became of that.", "result"
        )
        for verb in VERBS:
            for result in ("ok", "error", "refused", "crash"):
                self._verbs.labels(verb, result)

    def _begin_asking(self) -> None:
        self._api = self._histogram(
            "api_request_duration_seconds",
            "How long the API server took, by verb and resource.",
            API_TIMES,
            "verb",
            "resource",
        )
        self._api_answers = self._counter(
            "api_requests", "Requests to the API server, by its answer's code.", "verb", "resource", "code"
        )
        self._relists = self._counter(
            "watch_lists", "Lists of a resource: the first, and those after a watch could not go on.", "resource"
        )
        self._events = self._counter("events", "Events on pods and claims, by what became of them.", "result")
        self._drift = self._gauge(
            "drift", "What the ledger, the snapshot, claims and pods contradict, by kind.", "kind"
        )
        self._takeovers = self._counter("takeovers", "How often this replica has begun to lead.")
        # Prometheus sees no increase in a series that begins with one.
        for result in ("written", "failed", "dropped"):
            self._events.labels(result)
        for outcome in Decided:
            self._decisions.labels(outcome)

    def _begin_owning(self) -> None:
        self._conflicts = self._counter(
            "foreign_conflicts",
            "Claims allocated by others with a device that an earlier claim holds, or that does not suffice for both.",
            "driver",
        )
        self._foreign = self._counter(
            "foreign_allocations_seen", "Claims with devices of ours that somebody else has allocated.", "driver"
        )
        self._taints = self._counter(
            "owner_taint_writes", "Rules with the owner taint that were written: put, put back, or failed.", "result"
        )
        for result in ("put", "put back", "failed"):
            self._taints.labels(result)

    def _begin_securing(self) -> None:
        self._certificates = self._counter(
            "certificate_reloads", "New versions of the files of TLS, taken or refused.", "result"
        )
        self._certificates_valid = self._gauge(
            "certificates_valid", "1 where the files of TLS are in use as they are, 0 where earlier ones are."
        )
        self._certificates_valid.set(1)
        self._expiries = self._gauge(
            "certificate_expiry_timestamp_seconds", "When the first certificate of a file runs out.", "file"
        )
        self._clients = self._counter(
            "clients_refused", "How often clients were kept out by mutual TLS, or for their name, by why.", "why"
        )
        for result in ("taken", "refused"):
            self._certificates.labels(result)
        for why in ("certificate", "no certificate", "name"):
            self._clients.labels(why)

    def _begin_placing(self) -> None:
        self._reloads = self._counter(
            "placement_config_reloads", "New versions of the placement document, taken or refused.", "result"
        )
        self._placement = self._gauge(
            "placement_config_valid", "1 where the placement document is in use as it is, 0 where an earlier one is."
        )
        self._placement.set(1)
        for result in ("taken", "refused"):
            self._reloads.labels(result)
        self._placements = self._counter("placements", "Claims' devices chosen for pods that were bound.", "policy")
        self._parts = self._histogram(
            "placement_worth",
            "What speaks for the devices of bound pods and against them, by part.",
            WORTHS,
            "part",
            "side",
        )

    def verb(self, verb: str, result: str, seconds: float) -> None:
        """Count a verb's call: ok, error (as an answer), refused (not understood) or crash."""
        self._of(self._verbs, verb, result).observe(seconds)

    def named(self, verb: str, nodes: int) -> None:
        """Note how many nodes a request named."""
        self._of(self._names, verb).observe(nodes)

    def rejection(self, reason: str) -> None:
        """Count an answer to filter that let no node pass."""
        self._rejections.labels(reason).inc()

    def decision(self, outcome: str) -> None:
        """Count a decision about a pod."""
        self._of(self._decisions, outcome).inc()

    def wake(self, way: str, result: str) -> None:
        """Count a pod woken, or not, and the way: by nomination, annotation, or by what is done about its claims."""
        self._wakes.labels(way, result).inc()

    def guess(self, result: str) -> None:
        """Count what became of a pod that was sent ahead: right, wrong, late or renewed; unasked: it was taken back."""
        self._guesses.labels(result).inc()

    def api(self, verb: str, resource: str, code: str, seconds: float) -> None:
        """Count a request to the API server; *code* is its status, or why there was none."""
        self._of(self._api, verb, resource).observe(seconds)
        self._of(self._api_answers, verb, resource, code).inc()

    def listed(self, resource: str) -> None:
        """Count a list of a resource."""
        self._relists.labels(resource).inc()

    def event(self, result: str) -> None:
        """Count an event: written, failed or dropped."""
        self._events.labels(result).inc()

    def foreign_conflict(self, driver: str) -> None:
        """Count a claim that somebody else has allocated with a device that is held, for the driver of that device."""
        self._conflicts.labels(driver).inc()

    def foreign(self, driver: str) -> None:
        """Count a claim that somebody else has allocated, for a driver of its devices."""
        self._foreign.labels(driver).inc()

    def owner_taint(self, result: str) -> None:
        """Count a rule with the owner taint: put in place, put back, or failed."""
        self._taints.labels(result).inc()

    def takeover(self) -> None:
        """Count that we have begun to lead."""
        self._takeovers.inc()

    def drift(self, kind: str, count: int) -> None:
        """Tell how much of a kind is wrong now."""
        self._drift.labels(kind).set(count)

    def placement(self, *, is_valid: bool) -> None:
        """Count a new version of the placement document."""
        self._reloads.labels("taken" if is_valid else "refused").inc()
        self._placement.set(is_valid)

    def certificates(self, *, is_valid: bool) -> None:
        """Count a new version of the files of TLS."""
        self._certificates.labels("taken" if is_valid else "refused").inc()
        self._certificates_valid.set(is_valid)

    def certificates_last(self, expiries: Mapping[str, float | None]) -> None:
        """Tell until when the certificates of each file hold, in seconds since 1970; None where nobody can say."""
        for file, expiry in expiries.items():
            if expiry is None:
                self._expiries.remove(file)
            else:
                self._expiries.labels(file).set(expiry)

    def client_refused(self, why: str) -> None:
        """Count a call of a client that was let in neither by its certificate nor by its name."""
        self._clients.labels(why).inc()

    def placed(self, policy: str) -> None:
        """Count devices chosen by *policy* for a pod that was bound."""
        self._of(self._placements, policy).inc()

    def part(self, name: str, worth: float) -> None:
        """Note one of the parts that the worth of a bound pod's devices is the sum of."""
        # Histograms of what may be negative have no sum.
        self._of(self._parts, name, "for" if worth >= 0 else "against").observe(abs(worth))

    def watch(self, present: Present) -> None:
        """Ask *present* at every scrape."""
        self._collector.present = present

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """Write everything, as OpenMetrics where *accept* asks for that; return it with its content type."""
        # The library tells on which version it was asked for, and that may be any text, or fails.
        encoder, content_type = choose_encoder(OPENMETRICS if OPENMETRICS in accept else "")
        return encoder(_Exposed(self.registry)), content_type

    def _begin(self, drivers: Iterable[str]) -> None:
        """Show that nothing of *drivers* has happened so far."""
        fresh = set(drivers) - self._drivers
        for driver in islice(sorted(fresh), MOST_DRIVERS - len(self._drivers)):
            self._drivers.add(driver)
            self._foreign.labels(driver)
            self._conflicts.labels(driver)

    def _of(self, metric: M, *labels: str) -> M:
        """Return the part of *metric* with *labels*; the library takes a lock and a copy each time that it is asked."""
        found: M | None = self._parted.get((metric, labels))
        if found is None:
            found = self._parted[metric, labels] = metric.labels(*labels)
        return found

    def _counter(self, name: str, says: str, *labels: str) -> Counter:
        return Counter(name, says, labels, namespace=PREFIX, registry=self.registry)

    def _gauge(self, name: str, says: str, *labels: str) -> Gauge:
        return Gauge(name, says, labels, namespace=PREFIX, registry=self.registry)

    def _histogram(self, name: str, says: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, says, labels, namespace=PREFIX, registry=self.registry, buckets=buckets)


class _Exposed(Collector):
    """A registry without the times at which each series was made: twice the lines, and nobody asks."""

    def __init__(self, registry: Collector) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric
