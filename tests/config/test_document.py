"""docs/configuration.md says exactly what the settings are."""

import re

from extender.config.combinations import complaints_about
from extender.config.settings import Settings
from extender.config.table import rows
from extender.config.values import kind, shown
from tests.tree import ROOT

DOCUMENT = (ROOT / "docs" / "configuration.md").read_text()


def documented() -> list[str]:
    return re.findall(r"^\| `.*\|$", DOCUMENT, re.MULTILINE)


def expected() -> list[str]:
    return [
        f"| `{row.path}` | {kind(row.hint, row.key)} | `{shown(row.default)}` | {row.key.says} |"
        for row in rows().values()
    ]


def test_every_setting_is_documented_with_type_default_and_meaning() -> None:
    assert documented() == expected()


def test_the_examples_of_a_variable_and_a_flag_are_those_of_their_setting() -> None:
    row = rows()["listen.keepAliveSeconds"]
    assert all(f"`{name}`" in DOCUMENT for name in (row.path, row.variable, row.flag))


def test_the_defaults_go_together() -> None:
    assert list(complaints_about(Settings())) == []


def test_no_two_settings_share_a_variable_or_a_flag() -> None:
    for names in ([row.variable for row in rows().values()], [row.flag for row in rows().values()]):
        assert len(set(names)) == len(names)
