"""Who went for whom, and whether it was of use. Nothing of the product is imported here.

The product lets others be evicted for a pod. By all that it had been told the pod has to have its devices once they are
gone, beside those for whom others go there already; and once they are gone it has to have them, unless the world has
changed since.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.interleavings.checker import STRANGER, Objects
from tests.interleavings.law import Device

Json = dict[str, Any]


class Sacrifice(NamedTuple):
    """Those who go for *pod* on *node*, and what was true then.

    who: whoever has let it be done; said: what decided who may be given what of the
    node; kept: what each claim has there without them; freed: what only they had.
    """

    pod: Json
    node: str
    victims: frozenset[str]
    who: object
    said: object
    kept: Mapping[str, Collection[Device]]
    freed: frozenset[Device]


@dataclass(slots=True)
class Sacrifices:
    """Those that were agreed to, until it is known what came of them.

    is_promised: tells whether whoever is asked has promised anything to a pod.
    """

    is_promised: Callable[[str], bool]
    complaints: list[str] = field(default_factory=list)
    _open: list[Sacrifice] = field(default_factory=list)

    def agreed(self, pod: Json, victims: Mapping[str, Iterable[str]], objects: Objects, who: object) -> None:
        """Judge where others may go for *pod*: whoever has said so knows all that is so."""
        for node, pods in victims.items():
            left, subject = objects.without(frozenset(pods)), objects.pod(pod["metadata"]["uid"])
            if subject is None or not left.can_be(node, subject):
                self.complaints.append(
                    f"others are evicted on {node} for {_name(pod)}, which has no devices there then"
                )
            elif ahead := self._ahead(subject, node, objects, who):
                names = ", ".join(map(_name, ahead))
                everybody = frozenset(pods).union(*(each.victims for each in self._open if each.node == node))
                left = objects.without(everybody)
                if left.can_be(node, *ahead) and not left.can_be(node, *ahead, subject):
                    self.complaints.append(f"others are evicted on {node} for {_name(pod)}, where {names} comes first")

    def _ahead(self, pod: Json, node: str, objects: Objects, who: object) -> list[Json]:
        """Return those for whom others go on *node* still, and who are no less important than *pod*.

        Who shares a claim with it has that with it.
        """
        found = (
            objects.pod(each.pod["metadata"]["uid"]) for each in self._open if each.node == node and each.who is who
        )
        return [
            other
            for other in found
            if other is not None
            and other["metadata"]["uid"] != pod["metadata"]["uid"]
            and other["spec"]["priority"] >= pod["spec"]["priority"]
            and other["status"].get("nominatedNodeName") == node
            and not self.is_promised(other["metadata"]["uid"])
            and set(objects.wanted(other)).isdisjoint(objects.wanted(pod))
        ]

    def begun(self, pod: Json, node: str, victims: frozenset[str], objects: Objects, who: object) -> None:
        """Remember that those go for *pod* on *node*."""
        uid = pod["metadata"]["uid"]
        self._open = [each for each in self._open if each.pod["metadata"]["uid"] != uid]
        before, after = objects.had_on(node), objects.without(victims).had_on(node)
        freed = frozenset(device for name, devices in before.items() if name not in after for device in devices)
        self._open.append(Sacrifice(pod, node, victims, who, objects.stock.said_of(node), after, freed))

    def judge(self, objects: Objects) -> None:
        """See what has come of those who went."""
        self._open = [each for each in self._open if not self._is_over(each, objects)]

    def _is_over(self, each: Sacrifice, objects: Objects) -> bool:
        pod = objects.pod(each.pod["metadata"]["uid"])
        if pod is None or pod not in objects.waiting() or objects.stock.said_of(each.node) != each.said:
            return True
        if self.is_promised(pod["metadata"]["uid"]):
            return True  # what becomes of that is another matter
        if objects.are_there(each.victims):
            return False
        if not objects.can_be(each.node, pod) and (why := self._why(each, pod, objects)):
            self.complaints.append(f"others were evicted on {each.node} for {_name(pod)} in vain: {why}")
        return True

    def _why(self, each: Sacrifice, pod: Json, objects: Objects) -> str:
        """Say why *pod* has no devices where others have gone for it; nothing where others account for that."""
        if objects.is_bound_to_others(pod):
            return ""
        now = objects.had_on(each.node)
        came = {name: devices for name, devices in now.items() if each.kept.get(name) != devices}
        if not came:
            return "nobody has come since"
        taken = {name: each.freed.intersection(devices) for name, devices in came.items()}
        if any(name.startswith(STRANGER) or objects.priority_of(name) >= pod["spec"]["priority"] for name in came):
            return ""
        return ", ".join(f"{name} has {len(devices)} of what they had" for name, devices in taken.items() if devices)


def _name(pod: Json) -> str:
    return str(pod["metadata"]["name"])
