"""What all that runs has to say where a test has waited in vain: a fault that did harm once may not do so again."""

from collections.abc import Iterable, Iterator, Sequence

from tests.controlplane.client import Object
from tests.controlplane.plane import Plane
from tests.invariants.checker import Moment
from tests.invariants.reading import name, uid

# Of so many pods is told, and so many lines of what a program has said of each.
PODS, LINES, WIDTH = 5, 8, 500


def account(plane: Plane, moments: Sequence[Moment], seen: Iterable[str]) -> Iterator[str]:
    """Tell of the pods that are named in what was *seen*, and of every program."""
    words = {word.rpartition("/")[2] for text in seen for word in text.split()}
    named = [pod["metadata"]["name"] for moment in moments[:1] for pod in moment.pods]
    pods = [pod for pod in named if pod in words][:PODS]
    yield from of_pods(moments, pods)
    for log in sorted(plane.folder.glob("*.log")):
        yield from of_program(plane, log.stem, pods)


def of_pods(moments: Sequence[Moment], pods: Iterable[str]) -> Iterator[str]:
    """Tell what was made for each pod and what it names, at one moment and another: that may come and go."""
    for each in pods:
        for moment in moments:
            yield from (_told(moment, pod) for pod in moment.pods if pod["metadata"]["name"] == each)


def of_program(plane: Plane, program: str, pods: Iterable[str]) -> Iterator[str]:
    """Tell whether a program runs, how its log ends, and what it has said last of each pod."""
    process = plane.running.get(program)
    if process is not None and process.poll() is not None:
        yield f"{program} has ended with {process.returncode}"
    yield plane.told(program)
    lines = plane.log(program).read_text(errors="replace").splitlines()
    for pod in pods:
        about = [line[:WIDTH] for line in lines if pod in line]
        yield from (f"{program} on {pod}: {line}" for line in about[-LINES:])


def _told(moment: Moment, pod: Object) -> str:
    status, version = pod["status"], pod["metadata"]["resourceVersion"]
    names = {entry["name"]: entry.get("resourceClaimName") for entry in status.get("resourceClaimStatuses") or ()}
    made = sorted(key for key, claim in moment.claims.items() if uid(pod) in _owners(claim))
    said = [item.get("message", "") for item in status.get("conditions") or () if item["type"] == "PodScheduled"]
    return f"{name(pod)} in version {version} names {names}; made for it: {made}; {''.join(said)}"


def _owners(claim: Object) -> set[str]:
    return {owner["uid"] for owner in claim["metadata"].get("ownerReferences") or ()}
