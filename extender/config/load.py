"""From a file, the environment and flags to settings, or to everything that is wrong with them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from extender.config.combinations import complaints_about
from extender.config.file import flattened, parsed
from extender.config.settings import Settings
from extender.config.table import PREFIX, rows, sections
from extender.config.values import Unfit, checked, read

FILE_VARIABLE: Final = f"{PREFIX}CONFIG"
# What Kubernetes sets in every container for a Service whose name begins like ours.
SERVICE: Final = re.compile(r"_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_\d+_.*)?)$")


class Invalid(ValueError):  # noqa: N818 - says what the settings are, and is caught by that name
    """Settings that cannot be used; *complaints* name each what and why."""

    def __init__(self, complaints: Iterable[str]) -> None:
        self.complaints = tuple(complaints)
        super().__init__("\n".join(self.complaints))


class Given(NamedTuple):
    """A value from somewhere, or what is wrong with it; *name* is what people call it there."""

    path: str
    name: str
    value: object


def load(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings; raise Invalid with everything that is wrong.

    *flags* go by the path of their setting. They come before the environment, that before the file, and that before
    the defaults.
    """
    environment = environment or {}
    named = environment.get(FILE_VARIABLE)
    path = file or (Path(named) if named else None)
    values: dict[str, object] = {}
    wrong: list[tuple[str, str]] = []
    for given in (*_from_file(path), *_from_environment(environment), *_from_flags(flags or {})):
        try:
            values[given.path] = _checked(given)
        except Unfit as error:
            wrong += [(given.path, f"{given.name}{within}: {text}") for within, text in error.parts]
    settings = _settings(values)
    # What was refused is its default here, which is not what is meant.
    refused = {path for path, _ in wrong}
    wrong += [(path, f"{path}: {why}") for path, why in complaints_about(settings) if path not in refused]
    if wrong:
        raise Invalid(complaint for _, complaint in wrong)
    return settings


def _from_file(path: Path | None) -> Iterator[Given]:
    if path is None:
        return
    try:
        raw = parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        yield Given("", str(path), ValueError(error.strerror))
    except ValueError as error:
        yield Given("", str(path), error)
    else:
        yield from (Given(name, name or str(path), value) for name, value in flattened(raw))


def _from_environment(environment: Mapping[str, str]) -> Iterator[Given]:
    by_variable = {row.variable: row for row in rows().values()}
    for name, text in sorted(environment.items()):
        if name in by_variable:
            row = by_variable[name]
            yield Given(row.path, name, read(row.hint, text))
        elif name.startswith(PREFIX) and name != FILE_VARIABLE and not SERVICE.search(name):
            yield Given("", name, ValueError("is no setting"))


def _from_flags(flags: Mapping[str, str]) -> Iterator[Given]:
    for path, text in flags.items():
        row = rows()[path]
        yield Given(path, row.flag, read(row.hint, text))


def _checked(given: Given) -> object:
    if isinstance(given.value, ValueError):
        raise Unfit(str(given.value))
    row = rows()[given.path]
    return checked(row.hint, row.key, given.value)


def _settings(values: Mapping[str, object]) -> Settings:
    grouped: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        row = rows()[path]
        grouped.setdefault(row.section, {})[row.field] = value
    parts = {name: kind(**grouped.get(name, {})) for name, kind in sections().items()}
    return Settings(**grouped.get("", {}), **parts)
