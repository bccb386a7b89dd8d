"""Damaged objects: somewhere inside, something that should not be there."""

from copy import deepcopy
from random import Random
from typing import Any

from tests.model.parse.exemplars import EVERY

RUBBISH: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**63,
    10**400,
    10**5000,
    1.5,
    "",
    "x",
    "1Gi",
    "9" * 600,
    "\ud800",
    "a/b/c",
    [],
    [None],
    [[]],
    {},
    {"": None},
    {"x": {"x": {}}},
)
VERSIONS = ("v1", "v1beta2", "v1beta1", "v1alpha3", "v9", "")


def damaged(random: Random) -> Any:
    """Return an object of some kind and version, damaged in up to four places."""
    raw = deepcopy(random.choice(list(EVERY.values())))
    if raw["apiVersion"].startswith("resource") and random.random() < 0.5:
        raw["apiVersion"] = f"resource.k8s.io/{random.choice(VERSIONS)}"
    for _ in range(random.randint(1, 4)):
        damage(random, raw)
    return raw


def damage(random: Random, place: Any) -> None:
    """Damage *place* somewhere inside."""
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = random.choice(keys)
        inner = place[key]
        if isinstance(inner, dict | list) and inner and random.random() < 0.85:
            place = inner
            continue
        what = random.random()
        if what < 0.6:
            place[key] = deepcopy(random.choice(RUBBISH))
        elif what < 0.8 and isinstance(place, dict):
            place[random.choice(("x", "name", "value"))] = deepcopy(random.choice(RUBBISH))
        else:
            del place[key]
        return
