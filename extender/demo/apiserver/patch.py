"""Patches of the four kinds that clients send. What is patched is left as it was; the result is another object."""

from copy import deepcopy
from typing import Any, Final

from extender.demo.apiserver.failure import Failure

# By what the entries of a list are told apart, where a strategic merge merges them; other lists are replaced.
MERGE_KEYS: Final = {
    "conditions": "type",
    "reservedFor": "uid",
    "ownerReferences": "uid",
    "resourceClaimStatuses": "name",
    "containers": "name",
    "initContainers": "name",
    "resourceClaims": "name",
    "tolerations": "key",
    "taints": "key",
}
# Lists of plain values that a strategic merge adds to.
MERGED_VALUES: Final = frozenset(("finalizers",))


def merge_patch(target: Any, patch: Any) -> Any:  # noqa: ANN401 - any JSON
    """Apply a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return deepcopy(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def strategic_patch(target: Any, patch: Any, field: str = "") -> Any:  # noqa: ANN401 - any JSON
    """Apply a strategic merge patch, of which ``$patch: delete`` in lists is the only directive that is known here."""
    if isinstance(patch, list):
        return _merged_list(target if isinstance(target, list) else [], patch, field)
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = strategic_patch(merged.get(name), value, name)
    return merged


def _merged_list(target: list[Any], patch: list[Any], field: str) -> list[Any]:
    if field in MERGED_VALUES:
        return [*target, *(value for value in patch if value not in target)]
    key = MERGE_KEYS.get(field)
    if key is None:
        return deepcopy(patch)
    merged = {entry.get(key): entry for entry in target}
    for entry in patch:
        if entry.get("$patch") == "delete":
            merged.pop(entry.get(key), None)
        else:
            merged[entry.get(key)] = strategic_patch(merged.get(entry.get(key)), entry)
    return list(merged.values())


def apply_patch(target: Any, patch: Any, path: str = "") -> Any:  # noqa: ANN401 - any JSON
    """Apply an object without force: whatever it says otherwise than what is there is a conflict.

    Who manages what is not kept here. So what is there is taken for somebody else's, and nothing is ever taken back.
    """
    if isinstance(patch, dict):
        merged = dict(target) if isinstance(target, dict) else {}
        return merged | {name: apply_patch(merged.get(name), value, f"{path}.{name}") for name, value in patch.items()}
    key = MERGE_KEYS.get(path.rpartition(".")[2])
    if key is not None and isinstance(patch, list):
        entries = {entry[key]: entry for entry in (target or ())}
        return list(
            (entries | {entry[key]: apply_patch(entries.get(entry[key]), entry, path) for entry in patch}).values()
        )
    if target not in (None, patch):
        raise Failure(409, f"Apply failed with 1 conflict: {path}")
    return deepcopy(patch)


def json_patch(target: Any, patch: Any) -> Any:  # noqa: ANN401 - any JSON
    """Apply a JSON patch (RFC 6902) without ``move`` and ``copy``."""
    if not isinstance(patch, list):
        raise Failure(400, "error decoding patch: a JSON patch is a list")
    document = {"": deepcopy(target)}
    for step in patch:
        *above, last = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")]
        place: Any = document
        for part in above:
            place = _inside(place, part)
        _apply(place, last, step)
    return document[""]


def _inside(place: Any, part: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        return place[int(part)] if isinstance(place, list) else place[part]
    except (KeyError, IndexError, ValueError, TypeError):
        raise _refused() from None


def _apply(place: Any, last: str, step: dict[str, Any]) -> None:  # noqa: ANN401 - any JSON
    operation = step.get("op")
    if operation == "add" and isinstance(place, list):
        place.insert(len(place) if last == "-" else int(last), step["value"])
    elif operation == "add" and isinstance(place, dict):
        place[last] = step["value"]
    elif operation == "replace":
        _inside(place, last)
        place[int(last) if isinstance(place, list) else last] = step["value"]
    elif operation == "remove":
        _inside(place, last)
        del place[int(last) if isinstance(place, list) else last]
    elif operation == "test":
        if _inside(place, last) != step.get("value"):
            raise _refused()
    else:
        raise _refused()


def _refused() -> Failure:
    """Refuse as the real server does: it does not say which step failed, nor why."""
    return Failure(422, "the server rejected our request due to an error in our request")
