"""Functions of the authorizer. The environment declares them, yet a selector has no authorizer to call them on."""

from collections.abc import Iterator

from extender.allocation.cel.overloads import Overload, method
from extender.allocation.cel.types import BOOL, STRING, Type

PREFIX = "kubernetes.authorization."
AUTHORIZER = Type("struct", f"{PREFIX}Authorizer")
PATH = Type("struct", f"{PREFIX}PathCheck")
GROUP = Type("struct", f"{PREFIX}GroupCheck")
RESOURCE = Type("struct", f"{PREFIX}ResourceCheck")
DECISION = Type("struct", f"{PREFIX}Decision")

DECLARED: tuple[tuple[str, tuple[Type, ...], Type], ...] = (
    ("path", (AUTHORIZER, STRING), PATH),
    ("group", (AUTHORIZER, STRING), GROUP),
    ("serviceAccount", (AUTHORIZER, STRING, STRING), AUTHORIZER),
    ("resource", (GROUP, STRING), RESOURCE),
    ("subresource", (RESOURCE, STRING), RESOURCE),
    ("namespace", (RESOURCE, STRING), RESOURCE),
    ("name", (RESOURCE, STRING), RESOURCE),
    ("check", (PATH, STRING), DECISION),
    ("check", (RESOURCE, STRING), DECISION),
    ("fieldSelector", (RESOURCE, STRING), RESOURCE),
    ("labelSelector", (RESOURCE, STRING), RESOURCE),
    ("errored", (DECISION,), BOOL),
    ("error", (DECISION,), STRING),
    ("allowed", (DECISION,), BOOL),
    ("reason", (DECISION,), STRING),
)


def overloads() -> Iterator[Overload]:
    for name, parameters, result in DECLARED:
        yield method(name, parameters, result, None)
