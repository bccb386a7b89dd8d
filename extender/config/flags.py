"""Flags of a command: one for each setting, and one for the file."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path

from extender.config.load import FILE_VARIABLE, load
from extender.config.settings import Settings
from extender.config.table import rows
from extender.config.values import kind, shown


def add_flags(parser: ArgumentParser) -> None:
    """Add a flag for each setting to *parser*."""
    parser.add_argument("--config", type=Path, metavar="FILE", help=f"the configuration file (or {FILE_VARIABLE})")
    group = parser.add_argument_group(
        "settings", "Each is also a key of the file and an environment variable; docs/configuration.md tells more."
    )
    for row in rows().values():
        says = f"{row.key.says}; {kind(row.hint, row.key)} (default: {shown(row.default)})"
        group.add_argument(row.flag, dest=row.path, metavar="VALUE", help=says.replace("%", "%%"))


def settings_of(arguments: Namespace, environment: Mapping[str, str]) -> Settings:
    """Return the settings of a command line; raise Invalid with everything that is wrong."""
    told = vars(arguments)
    flags = {path: told[path] for path in rows() if told.get(path) is not None}
    return load(told.get("config"), environment, flags)
