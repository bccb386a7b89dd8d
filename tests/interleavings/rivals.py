"""Two replicas of the extender at once, of which one leads: by its Lease, as the product has it.

Each is beside a scheduler of its own, one of which leads as well. A replica can be stopped in the middle of its work
and go on later with what it had in hand, as if no time had passed; it can be cut off from its Lease; it can end.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final, cast

from extender.config.settings import Leading as Told
from extender.config.settings import Settings
from extender.demo.apiserver.kinds import LEASE
from extender.service.leading import Leading, leading_of
from tests.interleavings.loop import Clock
from tests.interleavings.manner import Manner
from tests.interleavings.outlived import LIES, SUCCESSION_S, go_well, outlive
from tests.interleavings.process import SERVER_S, Process, process_of
from tests.interleavings.replica import Hotline, Overseen, Replica
from tests.interleavings.server import Desk, Line, Request
from tests.interleavings.successors import LONGEST_BIND_S, Acts

if TYPE_CHECKING:
    from extender.kube.api import Api

HOSTS: Final = ("a", "b")
NAMESPACE: Final = Told().namespace
THEIRS: Final = NAMESPACE, Told().scheduler_lease
OURS: Final = NAMESPACE, Told().lease
# When the play begins by the time of the day, which is written into Leases.
WALL_S: Final = 1_767_225_600.0
# How often the scheduler asks a replica that is not beside it, in a storm.
STRAYS: Final = (0.0, 0.1, 0.3)
# How often what is asked of a Lease is lost, or done late, or done unheard, in a storm.
LEASE_FAULTS: Final = (0.0, 0.02, 0.2)
# How often the scheduler's Lease goes elsewhere when a replica is stopped or cut off.
MOVES: Final = 0.6
# How much of what a stopped replica has just heard it has gone on with.
TURNS: Final = (0, 1, 2, 5)
# How long nothing may happen while nobody leads.
IDLE_S: Final = (1.0, 3.0, 12.0)
# How long nothing else happens after a replica was stopped, cut off or ended: others may take its Lease meanwhile.
LULLS_S: Final = (0.0, 0.0, 3.0, 16.0, 20.0)
# How many of those that have sent nothing, which may be on its way still, are left alone.
SPARED: Final = 0.8
# How many processes know their pod, and so one before them there for ended.
KNOWN: Final = 0.7
# How long a replica that ends takes to give up its Lease after the last binding.
FAREWELL_S: Final = 8.0


@dataclass(slots=True)
class Rivals:
    """Both replicas. *host* is where the scheduler leads; *moved* is told that it does so elsewhere."""

    clock: Clock
    desk: Desk
    random: Random
    manner: Manner
    moved: Callable[[], None]
    host: str = HOSTS[0]
    replicas: dict[str, Replica] = field(default_factory=dict)
    strays: float = 0.0
    # Where everything is heard of late.
    late: str = ""
    faults: float = 0.0
    # Who was last seen to be able to write.
    led_by: Replica | None = None

    def begin(self) -> None:
        """Begin with both replicas, which know nothing."""
        item = {"metadata": {"name": THEIRS[1]}, "spec": {"holderIdentity": f"{self.host}_scheduler"}}
        self.desk.api.registry.create(LEASE, NAMESPACE, item)
        self.desk.forbidden, self.desk.is_gone = self.trespass, self.is_gone
        for host in HOSTS:
            self.start(host)

    def start(self, host: str) -> None:
        """Begin a new life of the replica on *host*."""
        hotline = Hotline(self.desk, lambda: self.random.random() < self.faults)
        settings = Settings(leading=self._told(host))
        leading = leading_of(settings, cast("Api", hotline), lambda: False)
        assert isinstance(leading, Leading)
        leading.tenure = Overseen(leading.tenure.me, leading.tenure.times, leading.tenure.before)
        leading.leases = replace(leading.leases, wall=lambda: WALL_S + self.clock.moment)
        process = process_of(self.clock.loop(), self.desk, leading, self.manner.drawn(self.random))
        leading.tenure.clears = partial(self._outlive, (process.line, hotline))
        self.replicas[host] = Replica(process, hotline, leading)
        process.begin()
        self.clock.settle()

    def _told(self, host: str) -> Told:
        pod = f"pod-of-{host}" if self.random.random() < KNOWN else ""
        return Told(enabled=True, host=host, pod=pod, server_seconds=SERVER_S)

    def end(self) -> None:
        """Let nothing go on after the play."""
        for replica in self.replicas.values():
            replica.end()

    def asked(self) -> Process | None:
        """Return whom the scheduler asks: now and then not the one beside it."""
        is_stray = self.strays > 0 and self.random.random() < self.strays
        replica = self.replicas[self._other(self.host) if is_stray else self.host]
        return None if replica.is_stopped else replica.process

    def leader(self) -> Process | None:
        """Return who answers the scheduler beside it, while nobody is about to end."""
        replica = self.replicas[self.host]
        is_well = all(each.ends_at is None for each in self.replicas.values())
        return replica.process if is_well and replica.leading.leads() else None

    def living(self) -> list[Process]:
        """Return the processes that run."""
        return [replica.process for replica in self._awake()]

    def told(self) -> list[Process]:
        """Return the processes that hear in time of what happens."""
        return [each.process for host, each in self.replicas.items() if not (each.is_stopped or host == self.late)]

    def idle_s(self) -> float | None:
        """Tell how long nothing can happen but that time passes."""
        is_led = any(replica.may_write for replica in self.replicas.values())
        return None if is_led else self.random.choice(IDLE_S)

    def aged(self) -> None:
        """Do what is due now that time has passed."""
        for replica in self.replicas.values():
            if replica.may_write and replica is not self.led_by:
                self.led_by = replica
                self.desk.happened["taken over"] += 1
                self.desk.happened["from its own pod"] += replica.is_next
                self.desk.asleep.clear()
        self._refresh()
        for host, replica in tuple(self.replicas.items()):
            if replica.ends_at is not None and self.clock.moment >= replica.ends_at and not replica.is_stopped:
                self._replace(host)

    def _outlive(self, own: tuple[Line, Line]) -> None:
        """Have what others have sent arrive, once one of us has seen to it that this changes nothing."""
        self.desk.happened["cleared"] += 1
        outlive(self.desk, own, self.random)

    def lies(self, request: Request) -> bool:
        """Tell whether nothing becomes of *request* now: so that it may arrive once another leads."""
        return not request.is_outlived and self.is_gone(request.sender) and self.random.random() < LIES

    def is_gone(self, line: Line) -> bool:
        return all(line not in (each.process.line, each.hotline) for each in self._awake())

    def change(self) -> None:
        """Have other things go wrong from now on."""
        self.strays, self.faults = self.random.choice(STRAYS), self.random.choice(LEASE_FAULTS)
        self.late = self.random.choice(("", "", *HOSTS))

    def relax(self) -> None:
        """Have nothing go wrong from now on."""
        self.strays, self.faults, self.late = 0.0, 0.0, ""
        self.desk.asleep.clear()
        for replica in self.replicas.values():
            replica.process.loop.is_stopped = replica.hotline.is_cut = False
        self.clock.settle()

    def trespass(self, request: Request, is_done: bool) -> str:  # noqa: FBT001 - how it went
        """Say that *request* is a write of one who leads no more, while another may write.

        Where that one has seen to it that such a write changes nothing, it may arrive, and be in vain.
        """
        if isinstance(request.sender, Hotline) or not request.is_write:
            return ""
        if request.is_outlived and not (is_done and request.gives_devices):
            return ""
        others = [each for each in self.replicas.values() if each.process.line is not request.sender]
        for other in others:
            if other.may_write and not (other.has_cleared and not (is_done and request.gives_devices)):
                return "another leads"
        return ""

    def acts(self) -> Acts:
        return {
            "stop": (6.0, self.stop),
            "go on": (4.0, self.go_on),
            "cut off": (1.0, self.cut_off),
            "scheduler moves": (1.0, self.move),
            "hand over": (0.3, self.hand_over),
            "crash": (2.0, self.crash),
            "ambush": (4.0, self.ambush),
            "Lease deleted": (0.6, self.forget),
        }

    def stop(self) -> bool:
        """Stop a replica, perhaps while it goes on with something that it has just heard."""
        replica = self._chosen(self._awake())
        if replica is None:
            return False
        heard = self._sent_by(replica)
        if heard:
            self.desk.land(self.random.choice(heard))
        for _ in range(self.random.choice(TURNS)):
            replica.process.loop.turn()
        replica.process.loop.is_stopped = True
        self._leave()
        return True

    def go_on(self) -> bool:
        """Let those go on that were stopped or cut off."""
        hindered = [each for each in self.replicas.values() if each.is_stopped or each.hotline.is_cut]
        for replica in hindered:
            replica.process.loop.is_stopped = replica.hotline.is_cut = False
        return bool(hindered)

    def cut_off(self) -> bool:
        """Keep a replica from its Lease, and from nothing else."""
        replica = self.random.choice(list(self.replicas.values()))
        is_new, replica.hotline.is_cut = not replica.hotline.is_cut, True
        self._leave()
        return is_new

    def move(self) -> None:
        """Have the other scheduler lead; what this one has asked goes on."""
        self.host = self._other(self.host)
        held = {"holderIdentity": f"{self.host}_scheduler"}
        self.desk.api.registry.update(LEASE, THEIRS, "", lambda old: {**old, "spec": held})
        self.moved()

    def hand_over(self) -> bool:
        """Ask a replica to end: it finishes what is under way, and gives up its Lease."""
        replica = self.random.choice(list(self.replicas.values()))
        if replica.ends_at is not None:
            return False
        replica.leading.is_ending = True
        replica.ends_at = self.clock.moment + LONGEST_BIND_S + FAREWELL_S
        return True

    def crash(self) -> bool:
        """End a replica at once."""
        replica = self._chosen(list(self.replicas.values()))
        if replica is not None:
            self._replace(next(host for host, each in self.replicas.items() if each is replica))
            self._leave()
        return replica is not None

    def ambush(self) -> bool:
        """Have the leader stop or end in the middle of a write, and another one follow before that arrives.

        Who ends may be followed by the next process in its place.
        """
        leaders = [host for host, each in self.replicas.items() if each.may_write and self._sent_by(each)]
        if not leaders or any(each.ends_at is not None for each in self.replicas.values()):
            return False
        does_stop = self.random.random() < MOVES
        if does_stop:
            self.replicas[leaders[0]].process.loop.is_stopped = True
        else:
            self._replace(leaders[0])
        if self.host == leaders[0] and (does_stop or self.random.random() < MOVES):
            self.move()
        follower = self.replicas[self.host]
        follower.process.loop.is_stopped = follower.hotline.is_cut = False
        for _ in range(SUCCESSION_S):
            go_well(self, 1.0)
            if follower.may_write:
                break
        return True

    def forget(self) -> None:
        """Delete our Lease, whoever has it."""
        if self.desk.api.store.get(LEASE, OURS):
            self.desk.api.registry.delete(LEASE, OURS, {})

    def _refresh(self) -> None:
        """Have nobody believe that its view is old; one that is late goes on by a step, which looks no older."""
        told = self.told()
        for process in self.living():
            if process in told:
                process.refresh()
            else:
                for watch in process.watches.values():
                    watch.step()

    def _awake(self) -> list[Replica]:
        return [replica for replica in self.replicas.values() if not replica.is_stopped]

    def _other(self, host: str) -> str:
        return HOSTS[1 - HOSTS.index(host)]

    def _chosen(self, replicas: list[Replica]) -> Replica | None:
        """Choose one to whom something happens, mostly where it has sent something."""
        replica = self.random.choice(replicas) if replicas else None
        is_spared = replica is None or (not self._sent_by(replica) and self.random.random() < SPARED)
        return None if is_spared else replica

    def _sent_by(self, replica: Replica) -> list[Request]:
        return [each for each in self.desk.open if each.sender is replica.process.line and each.is_awaited]

    def _leave(self) -> None:
        """Have the other scheduler lead, perhaps, and nothing else happen for a while."""
        if self.random.random() < MOVES:
            self.move()
        self.clock.pass_to(self.clock.moment + self.random.choice(LULLS_S))
        self.desk.too_late()

    def _replace(self, host: str) -> None:
        self.replicas[host].end()
        self.start(host)
