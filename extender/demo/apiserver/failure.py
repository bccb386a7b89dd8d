"""Failures as the API server reports them: a Status object."""

from typing import Final

from extender.demo.apiserver.kinds import Json, Kind

REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
}


class Failure(Exception):  # noqa: N818 - named as the API names it, in a Status
    """A request that is refused, with what the answer says."""

    def __init__(self, code: int, message: str, *, reason: str = "", details: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason or REASONS.get(code, "InternalError")
        self.details = details

    def status(self) -> Json:
        """Spell the Status object."""
        told = {"details": self.details} if self.details else {}
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            **told,
            "code": self.code,
        }


def success() -> Json:
    """Spell the Status object of a request that has made what it should, and has nothing else to show."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def not_found(kind: Kind, name: str) -> Failure:
    return Failure(404, f'{kind.qualified} "{name}" not found', details=_details(kind, name))


def already_exists(kind: Kind, name: str) -> Failure:
    message = f'{kind.qualified} "{name}" already exists'
    return Failure(409, message, reason="AlreadyExists", details=_details(kind, name))


def conflict(kind: Kind, name: str, why: str, part: str = "") -> Failure:
    """Refuse because the object is not what the request takes it for."""
    what = f"{kind.qualified}/{part}" if part else kind.qualified
    message = f'Operation cannot be fulfilled on {what} "{name}": {why}'
    return Failure(409, message, details=_details(kind, name))


def modified(kind: Kind, name: str) -> Failure:
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(kind, name, why)


def invalid(kind: Kind, name: str, path: str, why: str) -> Failure:
    """Refuse an object for what stands at *path*."""
    named = f"{kind.name}.{kind.group}" if kind.group else kind.name
    cause = {"reason": "FieldValueInvalid", "message": why, "field": path}
    details = {**_details(kind, name), "kind": kind.name, "causes": [cause]}
    return Failure(422, f'{named} "{name}" is invalid: {path}: {why}', details=details)


def _details(kind: Kind, name: str) -> Json:
    group = {"group": kind.group} if kind.group else {}
    return {"name": name, **group, "kind": kind.plural}
