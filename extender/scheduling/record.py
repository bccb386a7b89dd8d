"""The last decision of each pod: the latest as they are, the others packed, for there are thousands, much alike."""

import marshal
import zlib
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from extender.model.names import DeviceKey, ObjectKey
from extender.scheduling.decision import Decided, Decision, Given, Ranked
from extender.scheduling.tally import Tally
from extender.scheduling.vocabulary import Word
from extender.topology.appraisal import Basis, Part

# Those that may be followed by another one soon: nobody packs an offer that is about to be taken up.
OPEN: Final = 256
# How they are packed: in some 5 us each, to a tenth. The window is as long as what they are compared with.
FORMAT, LEVEL, WINDOW, LOW_MEMORY = 2, 3, 12, 4
# Decisions that all others are compared with.
SAMPLES: Final = 4


class Packing:
    """Packs decisions by what they have in common with *samples*."""

    def __init__(self, samples: Iterable[Decision]) -> None:
        self._common = b"".join(_written(sample) for sample in samples)[-(1 << WINDOW) :]
        # A copy of what has read the samples costs less than reading them again.
        self._primed = zlib.compressobj(LEVEL, zlib.DEFLATED, -WINDOW, LOW_MEMORY, zdict=self._common)

    def packed(self, decision: Decision) -> bytes:
        """Return *decision* in a hundred bytes or two."""
        packer = self._primed.copy()
        return packer.compress(_written(decision)) + packer.flush()

    def opened(self, packed: bytes) -> Decision:
        """Return the decision that was *packed*."""
        return _read(marshal.loads(zlib.decompressobj(-WINDOW, self._common).decompress(packed)))  # noqa: S302 - our own


@dataclass(slots=True)
class Decisions:
    """The last decision of each pod, for the *most* pods decided about last. One writer."""

    most: int = 10_000
    _open: OrderedDict[ObjectKey, Decision] = field(default_factory=OrderedDict)
    # All of them are older than those that are open.
    _packed: OrderedDict[ObjectKey, bytes] = field(default_factory=OrderedDict)
    _packing: Packing | None = None

    def __len__(self) -> int:
        return len(self._open) + len(self._packed)

    def put(self, decision: Decision) -> bool:
        """Remember *decision*; tell whether it says anything that the pod's last one did not."""
        before = self.get(decision.pod)
        self._packed.pop(decision.pod, None)
        self._open[decision.pod] = decision
        self._open.move_to_end(decision.pod)
        if len(self) > self.most:
            (self._packed or self._open).popitem(last=False)
        if len(self._open) > OPEN:
            self._pack()
        return before is None or before.uid != decision.uid or before.says != decision.says

    def get(self, pod: ObjectKey) -> Decision | None:
        packed = self._packed.get(pod)
        return self._packing.opened(packed) if packed and self._packing else self._open.get(pod)

    def _pack(self) -> None:
        """Pack the oldest of those that are open."""
        if self._packing is None:
            self._packing = Packing(islice(self._open.values(), SAMPLES))
        pod, decision = self._open.popitem(last=False)
        self._packed[pod] = self._packing.packed(decision)


def _written(decision: Decision) -> bytes:
    """Write *decision* as plain values."""
    plain: tuple[Any, ...] = (
        *decision.pod,
        decision.uid,
        decision.at,
        decision.generation,
        str(decision.outcome),
        str(decision.reason),
        decision.detail,
        decision.node,
        [(item.claim, item.request, *item.device) for item in decision.given],
        [
            (item.node, item.score, item.free_devices, item.value, [tuple(part) for part in item.parts])
            for item in decision.best
        ],
        tuple(decision.basis),
        decision.fitting,
        decision.offered,
        [(str(tally.word), *tally[1:]) for tally in decision.rejected],
    )
    return marshal.dumps(plain, FORMAT)


def _read(plain: Any) -> Decision:  # noqa: ANN401 - what marshal gives
    """Read what was written."""
    namespace, name, uid, at, generation, outcome, reason, detail, node, given, best, basis, *rest = plain
    fitting, offered, rejected = rest
    return Decision(
        pod=ObjectKey(namespace, name),
        uid=uid,
        at=at,
        generation=generation,
        outcome=Decided(outcome),
        reason=reason,
        detail=detail,
        node=node,
        given=tuple(Given(claim, request, DeviceKey(*device)) for claim, request, *device in given),
        best=tuple(
            Ranked(place, score, free, value, tuple(Part(*part) for part in parts))
            for place, score, free, value, parts in best
        ),
        basis=Basis(*basis),
        fitting=fitting,
        offered=offered,
        rejected=tuple(Tally(Word(word), *counted) for word, *counted in rejected),
    )
