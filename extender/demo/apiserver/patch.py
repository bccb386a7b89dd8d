"""Patches of the three kinds that we send. What is patched is left as it was; the result is another object."""

from copy import deepcopy
from typing import Any, Final

from extender.demo.apiserver.failure import Failure

# By what the entries of a list are told apart that is applied entry by entry; other lists are one value.
KEYS: Final = {"resourceClaimStatuses": "name"}


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


def apply_patch(target: Any, patch: Any, path: str = "") -> Any:  # noqa: ANN401 - any JSON
    """Apply an object without force: whatever it says otherwise than what is there is a conflict.

    Who manages what is not kept here. So what is there is taken for somebody else's, and nothing is ever taken back.
    """
    if isinstance(patch, dict):
        merged = dict(target) if isinstance(target, dict) else {}
        return merged | {name: apply_patch(merged.get(name), value, f"{path}.{name}") for name, value in patch.items()}
    key = KEYS.get(path.rpartition(".")[2])
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
