"""The play: steps chosen by chance, each of which lets one thing happen; now and then all faults end for a while."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from random import Random
from typing import Any
from unittest.mock import patch
from uuid import UUID

from extender.demo.apiserver import registry
from extender.demo.apiserver.failure import Failure
from extender.demo.apiserver.kinds import POD
from extender.demo.apiserver.server import ApiServer
from extender.demo.controller import Controller
from extender.kube.answer import Unanswered
from extender.model.names import Uid
from extender.scheduling.drift import findings
from tests.interleavings.checker import Objects
from tests.interleavings.cluster import People
from tests.interleavings.evictor import Evictor
from tests.interleavings.law import Law
from tests.interleavings.lingering import Lingering
from tests.interleavings.loop import Clock
from tests.interleavings.manner import FREE, LINKED, MILD, STRICT, Manner, Preferred
from tests.interleavings.process import Process
from tests.interleavings.regime import MILD as REPEALED
from tests.interleavings.regime import Regime
from tests.interleavings.rivals import Rivals
from tests.interleavings.sacrifices import Sacrifices
from tests.interleavings.scheduler import Scheduler
from tests.interleavings.server import Desk, Request, refusal
from tests.interleavings.stock import Stock
from tests.interleavings.successors import Successors
from tests.interleavings.ties import Ties
from tests.interleavings.variety import Variety
from tests.interleavings.watching import Watching
from tests.interleavings.witness import RESOURCES, Witness

Json = dict[str, Any]
# Steps from one calm to the next.
STORM = 400
# When the play begins, in seconds since 1970.
FIRST_DAY = 1_767_225_600
# How long a calm may last until everything is in order, and how long devices may be kept for nobody.
CALM_S = 180.0
EXPIRY_S = 60.0
# How long nobody may lead in a calm: twice as long as it takes to wait for whoever did.
ELECTION_S = 200.0
# How often nobody's absence is noticed.
IN_VAIN = 0.1
# How long nothing may happen.
WAITS_S = (0.01, 0.01, 0.1, 0.1, 0.3, 0.3, 1.0, 1.0, 1.0, 3.0, 12.0)
# How long devices are waited for in vain.
TOO_LONG_S = 650.0
# In how many calms drivers say nothing for so long.
SILENCES = 0.3
# How much more often, or less, something may happen in one storm than in others.
WEATHER = (0.1, 0.3, 1.0, 1.0, 3.0)
# How often strangers allocate where devices are of all kinds, beside the weights of what else happens.
INTRUSIONS = 8
# Of writes that are on their way, how many arrive.
ARRIVES = 0.7
# How often whoever is asked whom to evict has been told of everything.
INFORMED = 0.8


class Broken(AssertionError):  # noqa: N818 - what it says of the play
    """Something does not hold."""


@dataclass
class Play:
    """One run. Everything that happens in it follows from *seed*."""

    seed: int
    # Whether pods are nominated ahead.
    nominates: bool = False
    # Whether devices are of all kinds, and nodes come and go.
    is_varied: bool = False
    # Whether there are two replicas, of which one leads.
    is_contended: bool = False
    # Whether taint rules and device classes come, change and vanish, and some only look at devices.
    is_ruled: bool = False
    # Whether claims tie several devices together, which say now this and now that of themselves.
    is_tied: bool = False
    # Whether placement documents, and policies that claims name, have some sets not at all.
    is_strict: bool = False
    # Whether pods are evicted whose devices are tainted so; and whether pods and claims are kept that are deleted.
    is_evicting: bool = False
    is_lingering: bool = False
    clock: Clock = field(default_factory=Clock)
    api: ApiServer = field(default_factory=ApiServer)
    happened: Counter[str] = field(default_factory=Counter)
    misery: float = 1.0
    checked: int = 0
    published: tuple[int, ...] = ()
    stock: Stock = field(default_factory=lambda: Stock(()))
    steps: int = 0
    mistakes: list[BaseException] = field(default_factory=list)
    random: Random = field(init=False)
    desk: Desk = field(init=False)
    people: People = field(init=False)
    variety: Variety = field(init=False)
    regime: Regime | None = field(init=False)
    ties: Ties | None = field(init=False)
    evictor: Evictor = field(init=False)
    lingering: Lingering | None = field(init=False)
    controller: Controller = field(init=False)
    scheduler: Scheduler = field(init=False)
    house: Successors | Rivals = field(init=False)
    manner: Manner = field(init=False)
    sacrifices: Sacrifices = field(init=False)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311 - no secret depends on it
        is_ruled = self.is_ruled or self.is_evicting
        witness = Witness(self.api) if is_ruled or self.is_tied or self.is_strict else None
        self.desk = Desk(self.api, self.clock.time, self.happened, witness=witness)
        self.regime = Regime(self.api, self.random) if is_ruled else None
        self.evictor = Evictor(self.api, self.random, self.clock.time)
        self.lingering = Lingering(self.api, self.random) if self.is_lingering else None
        self.ties = Ties(self.api, self.random, self.policies()) if self.is_tied or self.is_strict else None
        self.people = People(self.api, self.random, self.is_varied, self.regime, self.ties, self.is_evicting)
        self.variety = Variety(self.api, self.random)
        self.controller = Controller(self.api)
        self.manner = Manner(self.nominates, self.choice())
        parts = self.clock, self.desk, self.random, self.manner
        self.house = Rivals(*parts, self.moved) if self.is_contended else Successors(*parts)
        self.scheduler = Scheduler(
            self.clock, self.api.store, self.people.kind("resourceclaims"), self.random,
            self.house.asked, self.api.registry, self.nominates, self.desk.excused, has_volumes=self.is_varied,
            happened=self.happened, witness=witness, agreed=self.agreed,
        )  # fmt: skip
        self.sacrifices = Sacrifices(self.is_promised)

    def policies(self) -> tuple[str, ...]:
        """Name the strict policies; what links are among parts of devices is told elsewhere."""
        return () if not self.is_strict else ("one-numa",) if self.is_varied else ("one-numa", "linked")

    def choice(self) -> tuple[Preferred, ...]:
        """Return the placement documents that there are."""
        if not self.is_strict:
            return MILD
        # Of those who ask for all devices of a node rings are enough, which nobody counts here.
        return STRICT if self.is_varied or self.is_ruled else STRICT + LINKED

    # What happens

    def begin(self) -> None:
        self.people.furnish()
        self.house.begin()

    def end(self) -> None:
        """Let nothing go on after the play."""
        self.house.end()
        self.scheduler.restart()

    def answer(self) -> bool:
        awaited = [request for request in self.desk.open if request.is_awaited and not self.house.lies(request)]
        if awaited:
            self.fate(self.random.choice(awaited))
        return bool(awaited)

    def fate(self, request: Request) -> None:
        """Decide what becomes of *request*."""
        chance = self.random.random() / self.misery
        for share, name, act in self.fates(request):
            chance -= share
            if chance < 0:
                self.happened[f"answer: {name}"] += 1
                act()
                return
        self.happened["answer: done"] += 1
        self.desk.land(request)

    def fates(self, request: Request) -> Iterator[tuple[float, str, Callable[[], None]]]:
        desk = self.desk
        yield 0.03, "done, unheard", lambda: desk.land(request, is_heard=False)
        yield 0.02, "lost before", lambda: desk.refuse(request, Unanswered(was_sent=False, why="no connection"))
        yield 0.02, "429", lambda: desk.refuse(request, refusal(429, "TooManyRequests", retryAfterSeconds=1))
        yield 0.02, "500", lambda: desk.refuse(request, refusal(500, "InternalError"))
        yield 0.01, "409", lambda: desk.refuse(request, refusal(409, "Conflict"))
        yield 0.01, "422", lambda: desk.refuse(request, refusal(422, "Invalid"))
        # What became of a Binding is the hardest to find out, and there is one for several writes of claims.
        yield 0.15 if request.path.endswith("/binding") else 0.05, "cut off", lambda: self.cut(request)

    def cut(self, request: Request) -> None:
        """Break the connection: *request* is somewhere on its way."""
        request.answer.set_result(Unanswered(was_sent=True, why="the connection broke"))

    def land(self) -> bool:
        """Have a write arrive that nobody waits for any more, or never."""
        late = [request for request in self.desk.open if not (request.is_awaited or self.house.lies(request))]
        if late and self.random.random() < ARRIVES:
            self.desk.land(self.random.choice(late))
        elif late:
            self.desk.forget(self.random.choice(late))
        return bool(late)

    def moved(self) -> None:
        """Have another scheduler go on in the place of this one."""
        self.scheduler.restart()

    def watches(self) -> list[Watching]:
        return [watch for process in self.house.living() for watch in process.watches.values()]

    def told(self) -> list[Watching]:
        return [watch for process in self.house.told() for watch in process.watches.values()]

    def watch(self) -> bool:
        behind = [watch for watch in self.told() if watch.is_behind]
        for _ in range(self.random.choice((1, 2, 4, 8)) if behind else 0):
            self.random.choice(behind).step()
        return bool(behind)

    def stumble(self) -> bool:
        """Cut a watch off, so that everything is listed anew; or have it tell something twice."""
        watches = self.watches()
        if watches and self.random.random() < 0.5:
            self.random.choice(watches).read()
        elif watches:
            self.random.choice(watches).again()
        return bool(watches)

    def attempt(self) -> bool:
        self.happened["bindings ended"] += self.scheduler.poll()
        due = self.scheduler.due() if self.scheduler.extender() or self.random.random() < IN_VAIN else []
        if due:
            self.scheduler.attempt(self.random.choice(due))
        return bool(due)

    def evict(self) -> bool:
        """Have others make room for a pod: mostly where whoever is asked about that has been told of all that is so."""
        leader = self.house.leader()
        if leader and self.random.random() < INFORMED:
            leader.catch_up()
        return self.scheduler.evict()

    def control(self) -> bool:
        before = self.api.store.revision
        self.controller.reconcile()
        return self.api.store.revision != before

    def wait(self) -> None:
        idle_s = self.house.idle_s()
        self.pass_time(self.random.choice(WAITS_S) if idle_s is None else idle_s)

    def pass_time(self, seconds: float) -> None:
        self.clock.pass_to(self.clock.moment + seconds)
        self.desk.too_late()
        self.house.aged()

    def linger(self) -> bool:
        """Let so much time pass that devices which nobody has made ready are waited for no longer."""
        is_waiting = self.variety.is_awaited()
        if is_waiting:
            self.pass_time(TOO_LONG_S)
        return is_waiting

    def prefer(self) -> bool:
        """Replace somebody's placement document."""
        living = self.house.living()
        for process in self.random.sample(living, min(1, len(living))):
            process.prefer(self.manner.another(self.random))
        return bool(living)

    def acts(self) -> dict[str, tuple[float, Callable[[], object]]]:
        people = self.people
        acts: dict[str, tuple[float, Callable[[], object]]] = {
            "answer": (300, self.answer),
            "watch": (260, self.watch),
            "attempt": (120, self.attempt),
            "time": (30, self.wait),
            "land": (40, self.land),
            "control": (60, self.control),
            "arrive": (40, people.arrive),
            "leave": (20, people.leave),
            "meddle": (8, people.meddle),
            "intrude": (INTRUSIONS if self.is_varied else 2, people.intrude),
            "republish": (2, people.republish),
            "stumble": (6, self.stumble),
            "event": (4, self.scheduler.event),
            "scheduler restarts": (2, self.scheduler.restart),
            "placement": (10 if self.is_strict else 2, self.prefer),
        }
        beside = {"preempt": (8, self.scheduler.preempt), "rename": (8, people.rename_any)}
        strange: dict[str, tuple[float, Callable[[], object]]] = {
            "report": (8, self.variety.report),
            "garble": (4, self.variety.garble),
            "bear": (1, self.variety.bear),
            "node": (4, self.variety.remove),
            "evict": (30, self.evict),
            "long wait": (1, self.linger),
        }
        decreed = {name: act for part in self.decreeing() for name, act in part.acts().items()}
        kinds = (beside if self.nominates else {}) | (strange if self.is_varied else {})
        kinds |= {"evicted for a taint": (20, self.evictor.evict)} if self.is_evicting else {}
        return acts | self.house.acts() | kinds | decreed

    def free(self) -> None:
        """Replace the placement document by one that has everything."""
        for process in self.house.living():
            process.prefer(FREE)

    def decreeing(self) -> list[Regime | Ties | Lingering]:
        """Return who changes what may be given to whom, or when."""
        return [part for part in (self.lingering, self.regime, self.ties) if part]

    def run(self, steps: int) -> None:
        """Take *steps* steps, with a calm after each storm and at the end; every storm has a weather of its own."""
        acts = self.acts()
        names, weights = list(acts), self.weather(acts)
        for number in range(1, steps + 1):
            self.steps = number
            while not self.happens(name := self.random.choices(names, weights)[0], acts[name][1]):
                pass
            self.clock.settle()
            self.check()
            if number % STORM == 0 or number == steps:
                self.calm()
                weights = self.weather(acts)

    def weather(self, acts: dict[str, tuple[float, Callable[[], object]]]) -> list[float]:
        """Draw how often what happens, and how often requests fail, until the next calm."""
        self.scheduler.change()
        self.house.change()
        if self.is_varied or self.regime or self.ties:
            self.people.change()
        if self.is_varied:
            self.variety.change()
        self.misery = self.random.choice((0.3, 1.0, 1.0, 2.0, 4.0))
        return [weight * self.random.choice(WEATHER) for weight, _ in acts.values()]

    def happens(self, name: str, act: Callable[[], object]) -> bool:
        """Let something happen; False where there is nothing that could."""
        try:
            if act() is False:
                return False
        except Failure:
            name = f"{name}: refused"
        self.happened[name] += 1
        return True

    # What must hold

    def objects(self) -> Objects:
        store = self.api.store
        kinds = [self.people.kind(plural) for plural in RESOURCES]
        published, leader = tuple(map(store.changed_at, kinds)), self.house.leader()
        document = leader.line.preferred[-1] if leader else None
        if self.published != published or self.stock.document is not document:
            self.published, parts = published, [store.each(kind) for kind in kinds]
            self.stock = Stock(parts[0], Law(*parts), document)
        return Objects(store.each(POD), store.each(self.people.kind("resourceclaims")), self.stock)

    def agreed(self, process: Process, pod: Json, victims: Mapping[str, Sequence[str]], node: str) -> None:
        """See whether it helps that others go for *pod*, where whoever has let it be done knows all that is so."""
        if process is not self.house.leader() or any(watch.is_behind for watch in process.watches.values()):
            return
        objects = self.objects()
        self.sacrifices.agreed(pod, victims, objects, process)
        self.sacrifices.begun(pod, node, frozenset(victims[node]), objects, process)
        self.happened["makes room knowingly"] += 1

    def is_promised(self, pod: str) -> bool:
        leader = self.house.leader()
        return leader is not None and leader.belief.ledger.of_pod(Uid(pod)) is not None

    def check(self) -> None:
        """Check what must hold at once, where anything was written."""
        for mistake in self.mistakes:
            raise Broken(f"{mistake!r} ({self.where()})") from mistake
        for complaint in self.desk.complaints:
            raise Broken(f"{complaint} ({self.where()})")
        if self.checked != self.api.store.revision:
            self.checked = self.api.store.revision
            objects = self.objects()
            self.sacrifices.judge(objects)
            for complaint in (*objects.doubles_in_use(), *objects.bare(), *self.sacrifices.complaints):
                raise Broken(f"{complaint} ({self.where()})")

    def where(self) -> str:
        return f"seed {self.seed}, step {self.steps}, {self.clock.moment:.1f} s"

    def calm(self) -> None:
        """End all faults, and see that everything comes to order; then, half of the time, that all ends."""
        self.scheduler.relax()
        self.house.relax()
        self.variety.restore()
        self.variety.mend()
        self.people.republish(is_whole=True)
        self.people.share()
        self.people.expel()
        self.until_led()
        if self.is_varied and self.random.random() < SILENCES:
            self.until_given_up()
        if self.regime and self.random.random() < REPEALED:
            self.regime.repeal()
        self.until_ordered(is_empty=False)
        for part in self.decreeing():
            self.until_repealed(part.decrees())
        if self.is_strict:
            self.until_repealed([self.free])
        if self.random.random() < 0.5:
            self.people.clear(is_all=True)
            self.until_ordered(is_empty=True)

    def until_repealed(self, decrees: list[Callable[[], object]]) -> None:
        """Take back all that was decreed, at once or piece by piece, and see after each that who fits now is bound.

        Nobody but the extender tells the scheduler that those who were rejected may fit.
        """
        size = self.random.choice((1, max(1, len(decrees))))
        for start in range(0, len(decrees), size):
            for act in decrees[start : start + size]:
                act()
            self.until_ordered(is_empty=False, is_stirred=False)

    def until_led(self) -> None:
        """Wait for somebody to lead: nothing is put in order before."""
        since = self.clock.moment
        while self.is_contended and self.house.leader() is None:
            if self.clock.moment - since > ELECTION_S:
                raise Broken(f"nobody leads for ever ({self.where()})")
            self.breathe()

    def until_given_up(self) -> None:
        """Have no driver say anything, until nobody waits any more for what each has been asked to make ready."""
        before = self.awaited()
        if before:
            self.happened["silence"] += 1
            self.pass_time(TOO_LONG_S)
        since = self.clock.moment
        while left := [name for name, given in self.awaited().items() if before.get(name) == given]:
            if self.clock.moment - since > CALM_S:
                raise Broken(f"{', '.join(left)} have devices that nobody makes ready, for ever ({self.where()})")
            self.breathe(is_told=False)

    def awaited(self) -> dict[str, object]:
        """Return what pods wait for to be made ready: what they no longer name is no concern of theirs."""
        objects, silent = self.objects(), self.variety.silent()
        return {name: silent[name] for pod in objects.waiting() for name in objects.wanted(pod) if name in silent}

    def until_ordered(self, *, is_empty: bool, is_stirred: bool = True) -> None:
        since = self.clock.moment
        if is_stirred:
            self.scheduler.event()
        while wrong := self.disorder(is_empty=is_empty):
            lasts_s = self.clock.moment - since
            if lasts_s > EXPIRY_S and (leaks := list(self.objects().leaks())):
                raise Broken(f"{', '.join(leaks)} have devices that nobody uses ({self.where()})")
            if lasts_s > CALM_S:
                raise Broken(f"{wrong} for ever ({self.where()})")
            self.breathe()

    def breathe(self, *, is_told: bool = True) -> None:
        """Let everything go as it should for a moment."""
        self.happened["calm"] += 1
        if self.is_evicting:
            self.evictor.evict(is_all=True)
        self.people.clear(is_all=False)
        self.controller.reconcile()
        if is_told:
            self.variety.report(is_well=True)
        while self.desk.open or any(watch.is_behind for watch in self.watches()):
            for request in tuple(self.desk.open):
                self.desk.land(request)
            self.clock.settle()
            self.check()
            self.catch_up()
        self.happened["bindings ended"] += self.scheduler.poll()
        for pod in self.scheduler.due():
            self.scheduler.attempt(pod)
        self.clock.settle()
        if not self.desk.open:
            self.pass_time(1.0)
        self.catch_up()
        self.check()

    def catch_up(self) -> None:
        for process in self.house.living():
            process.catch_up()
        self.clock.settle()

    def disorder(self, *, is_empty: bool) -> str:
        """Say what is not as it should be at the end of a calm."""
        process = self.house.leader()
        if process is None or self.desk.open or self.scheduler.binding:
            return "something is under way"
        objects = self.objects()
        if fitting := objects.fitting():
            return f"pods {', '.join(fitting)} wait and fit"
        if wrong := [*(f"{leak} has devices that nobody uses" for leak in objects.leaks()), *objects.doubles()]:
            return ", ".join(wrong)
        waiting = {
            pod["metadata"]["uid"]
            for pod in objects.pods
            if not pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")
        }
        if held := [promise for promise in process.belief.ledger if promise.pod not in waiting]:
            return f"{len(held)} holds of pods that do not wait"
        # The product's own auditor has to agree that all is well.
        if drift := list(findings(process.belief)):
            return f"drift: {drift[0].kind} {drift[0].claim} {drift[0].detail}"
        return f"{len(objects.pods)} pods are there" if is_empty and objects.pods else ""


@contextmanager
def staged(
    seed: int,
    *,
    nominates: bool = False,
    is_varied: bool = False,
    is_contended: bool = False,
    is_ruled: bool = False,
    is_tied: bool = False,
    is_strict: bool = False,
    is_evicting: bool = False,
    is_lingering: bool = False,
) -> Iterator[Play]:
    """Set a play up in which nothing is left to real chance or time; what the product logs as a mistake is one."""
    numbers, chance, log = count(1), Random(seed), logging.getLogger("extender")  # noqa: S311 - no secret depends on it
    with ExitStack() as stack:
        play = Play(
            seed, nominates, is_varied, is_contended, is_ruled, is_tied, is_strict, is_evicting,
            is_lingering,
        )  # fmt: skip
        stack.callback(play.clock.close)
        stack.enter_context(patch.object(registry, "uuid4", lambda: UUID(int=next(numbers))))
        stack.enter_context(patch.object(registry, "CHANCE", chance))
        stack.enter_context(patch.object(registry, "now", lambda: _date(play.clock.moment)))
        handler = _Listening(play.mistakes)
        log.addHandler(handler)
        stack.callback(log.removeHandler, handler)
        stack.callback(play.end)
        play.begin()
        yield play


def _date(moment: float) -> str:
    return datetime.fromtimestamp(FIRST_DAY + int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class _Listening(logging.Handler):
    """Takes what is logged with an exception for a mistake."""

    def __init__(self, mistakes: list[BaseException]) -> None:
        super().__init__(logging.ERROR)
        self._mistakes = mistakes

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1]:
            self._mistakes.append(record.exc_info[1])


def played(
    seed: int,
    steps: int,
    *,
    nominates: bool = False,
    is_varied: bool = False,
    is_contended: bool = False,
    is_ruled: bool = False,
    is_tied: bool = False,
    is_strict: bool = False,
    is_evicting: bool = False,
    is_lingering: bool = False,
) -> Counter[str]:
    """Run a play, and return what happened in it."""
    kinds = {"nominates": nominates, "is_varied": is_varied, "is_contended": is_contended}
    kinds |= {"is_ruled": is_ruled, "is_tied": is_tied, "is_strict": is_strict}
    kinds |= {"is_evicting": is_evicting, "is_lingering": is_lingering}
    with staged(seed, **kinds) as play:
        play.run(steps)
        return play.happened
