"""Who may be given what: by classes, taints and tolerations, as stored. Nothing of the product is imported here."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

Json = dict[str, Any]
Device = tuple[str, str, str]
DRIVER: Final = "gpu.example.com"
# By which taint others are kept away: it is not for us.
OWNED: Final = "dra-extender.x-k8s.io/owned"
BARRING: Final = ("NoSchedule", "NoExecute")
# All that classes select by, and what each says of a device of a driver.
TEXTS: Final[dict[str, Callable[[str, Json], bool]]] = {
    f"device.driver == '{DRIVER}'": lambda driver, _: driver == DRIVER,
    "device.driver == 'nobody.example.com'": lambda driver, _: driver == "nobody.example.com",
    f"device.attributes['{DRIVER}'].model == 'a'": lambda _, device: _model(device) == "a",
    f"device.attributes['{DRIVER}'].model == 'b'": lambda _, device: _model(device) == "b",
    f"device.attributes['{DRIVER}'].speed > 3": lambda _, _device: False,
}
# Which of them errs on every device: who asks for several things by turns gets nothing then, either.
ERRING: Final = f"device.attributes['{DRIVER}'].speed > 3"


def newest(slices: Iterable[Json]) -> list[Json]:
    """Return those of *slices* that count: not what is left over of an older generation of their pool."""
    known = [(item, item["spec"]["driver"], item["spec"]["pool"]) for item in slices]
    ages: dict[tuple[str, str], int] = {}
    for _, driver, pool in known:
        ages[driver, pool["name"]] = max(pool["generation"], ages.get((driver, pool["name"]), 0))
    return [item for item, driver, pool in known if pool["generation"] == ages[driver, pool["name"]]]


class Law:
    """What of *slices*, *rules* and *classes* decides who may be given what."""

    def __init__(self, slices: Iterable[Json], rules: Iterable[Json], classes: Iterable[Json]) -> None:
        self.devices = {
            (item["spec"]["driver"], item["spec"]["pool"]["name"], device["name"]): device
            for item in newest(slices)
            for device in item["spec"].get("devices") or ()
        }
        self.rules = [rule["spec"] for rule in rules]
        self.classes = {item["metadata"]["name"]: item["spec"] for item in classes}

    def is_askable(self, requests: Iterable[Json]) -> bool:
        """Tell whether *requests* can be asked together: all their classes are there, and none errs."""
        known = [self.classes.get(request["deviceClassName"]) for request in requests]
        return all(found is not None and ERRING not in _texts(found) for found in known)

    def admits(self, request: Json, device: Device) -> bool:
        """Tell whether *device* may be given to who asks *request*, if it can be had."""
        return self.is_askable([request]) and self.selects(request, device) and not self.barred(request, device)

    def selects(self, request: Json, device: Device) -> bool:
        """Tell whether the class of *request* is there, and both select *device*."""
        known, published = self.classes.get(request["deviceClassName"]), self.devices.get(device)
        if known is None or published is None:
            return False
        return all(TEXTS[text](device[0], published) for text in (*_texts(known), *_texts(request)))

    def behind(self, resource: str) -> list[str]:
        """Name the class that stands behind *resource*, if there is one."""
        return [name for name, spec in self.classes.items() if spec.get("extendedResourceName") == resource]

    def barred(self, request: Json, device: Device) -> str:
        """Name a taint of *device* that *request* does not tolerate."""
        tolerations = request.get("tolerations") or ()
        for taint in self._taints(device):
            is_barring = taint["effect"] in BARRING and taint["key"] != OWNED
            if is_barring and not any(_tolerates(each, taint) for each in tolerations):
                return f"{taint['key']}={taint.get('value', '')}:{taint['effect']}"
        return ""

    def evicting(self, device: Device) -> Iterator[Json]:
        """Yield the taints of *device* for which pods are evicted."""
        return (taint for taint in self._taints(device) if taint["effect"] == "NoExecute")

    def lasts(self, tolerations: Iterable[Json], taint: Json) -> float | None:
        """Tell for how long *tolerations* put up with *taint* before a pod is evicted; None for ever."""
        put_up = [each for each in tolerations if each.get("effect") == taint["effect"] and _tolerates(each, taint)]
        if any(each.get("tolerationSeconds") is None for each in put_up):
            return None
        return float(min((max(0, each["tolerationSeconds"]) for each in put_up), default=0))

    def _taints(self, device: Device) -> Iterator[Json]:
        yield from self.devices.get(device, {}).get("taints") or ()
        for rule in self.rules:
            if (chosen := rule.get("deviceSelector")) is not None and self._concerns(chosen, device):
                yield rule["taint"]

    def _concerns(self, chosen: Json, device: Device) -> bool:
        """Tell whether a rule is about *device*: by its names, a class that is there, and what it may match."""
        wishes = zip(("driver", "pool", "device"), device, strict=True)
        named, published = chosen.get("deviceClassName"), self.devices.get(device, {})
        if any(chosen.get(field) not in (None, value) for field, value in wishes):
            return False
        if named is not None and named not in self.classes:
            return False
        texts = (*_texts(self.classes[named] if named else {}), *_texts(chosen))
        return all(text == ERRING or TEXTS[text](device[0], published) for text in texts)


def _texts(asking: Json) -> list[str]:
    return [selector["cel"]["expression"] for selector in asking.get("selectors") or ()]


def _model(device: Json) -> object:
    return (device.get("attributes") or {}).get("model", {}).get("string")


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") not in (None, taint["effect"]) or toleration.get("key") not in (None, taint["key"]):
        return False
    is_any = toleration.get("operator", "Equal") == "Exists"
    return is_any or bool(toleration.get("value", "") == taint.get("value", ""))
