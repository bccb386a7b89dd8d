"""The documents speak of what is there, and of all of it."""

import ast
import os
import re
import shutil
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from extender.allocation.causes import Shortage
from extender.cli import SUBCOMMANDS
from extender.config.table import rows
from extender.scheduling.endings import Ending
from extender.scheduling.vocabulary import Word
from extender.service.auditing import REASONS
from tests.tree import ROOT, anchors, files

OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
README = (ROOT / "README.md").read_text()
COMMANDS = (ROOT / "docs" / "commands.md").read_text()
HOUSE = (ROOT / "extender" / "README.md").read_text()
# The part of it that has the floors, and then every module under the heading of its floor.
MAP = HOUSE.partition("\n## Floors\n")[2].partition("\n## What must never break\n")[0]
MOST_WORDS = 20
LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
DOCUMENTS = [str(path.relative_to(ROOT)) for path in files(".md")]
PROGRAMS = str(Path(sys.executable).parent)

# Without what this run may have inherited from a make around it.
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
ENVIRONMENT["PATH"] = f"{PROGRAMS}{os.pathsep}{ENVIRONMENT['PATH']}"

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


def printed(*command: str) -> str:
    """Run *command* at the root and return all that it prints."""
    result = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    return result.stdout + result.stderr


def mapped(text: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield what the tables of a map link to in their first column: heading, name, target and what is said of it."""
    heading = ""
    for line in text.splitlines():
        heading = line.lstrip("# ") if line.startswith("#") else heading
        named, _, said = line.removeprefix("| ").partition(" | ")
        if line.startswith("| ["):
            yield from ((heading, name, target, said.strip("| ")) for name, target in LINK.findall(named))


def modules() -> Iterator[str]:
    """Yield the product's folders and modules as a map names them."""
    folder = ROOT / "extender"
    for path in files(".py", root=folder):
        relative = path.relative_to(folder)
        yield f"{relative.parent}/" if path.name == "__init__.py" else str(relative)


def defined() -> Iterator[str]:
    """Yield what the product's modules define, and after a dot what their classes do."""
    for path in files(".py", root=ROOT / "extender"):
        for node in ast.parse(path.read_text()).body:
            yield from names_of(node)
            if isinstance(node, ast.ClassDef):
                yield from (f"{node.name}.{name}" for item in node.body for name in names_of(item))


def names_of(statement: ast.stmt) -> Iterator[str]:
    """Yield the name that a statement defines, if it does."""
    if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield statement.name
    elif isinstance(statement, ast.AnnAssign):
        yield ast.unparse(statement.target)


def test_the_map_shows_exactly_what_is_there() -> None:
    drawn = [target for heading, _, target, _ in mapped(MAP)]
    assert len(drawn) == len(set(drawn))
    assert set(drawn) == {*modules()} - {"./"}


def test_each_module_is_in_the_table_of_its_floor_under_its_name() -> None:
    rows = [(heading, name, target) for heading, name, target, _ in mapped(MAP) if heading]
    assert [row for row in rows if row[2].removesuffix(".py") != f"{row[0]}/{row[1]}"] == []


def test_every_line_of_the_map_says_in_few_words_what_is_there() -> None:
    assert [(target, said) for _, _, target, said in mapped(MAP) if not 0 < len(said.split()) <= MOST_WORDS] == []


def test_names_of_the_code_that_the_map_tells_are_there() -> None:
    names = re.findall(r"`([A-Z]\w*(?:\.\w+)?)`", HOUSE)
    assert len(names) > 10
    assert {*names} - {*defined()} == set()


def test_decisions_are_numbered_in_order() -> None:
    _, _, decisions = HOUSE.partition("\n## Decisions\n")
    numbers = [int(number) for number in re.findall(r"^(\d+)\. ", decisions, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert numbers


@needs_make
def test_make_help_lists_every_target() -> None:
    listed = printed("make", "--silent", "help")
    targets = re.findall(r"^([a-z0-9-]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert re.findall(r"^(\S+) +\S", listed, re.MULTILINE) == targets


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_a_subcommand_is_documented_with_its_options(name: str) -> None:
    parser = ArgumentParser(add_help=False)
    import_module(f"extender.cli.{name}").configure(parser)
    told = README + COMMANDS
    assert f"dra-extender {name} " in told
    for action in parser._actions:
        if action.dest in rows():
            continue  # a setting: docs/configuration.md has them all, and another test sees to that
        assert not action.option_strings or any(f"`{option}" in told for option in action.option_strings), action


def shown(text: str) -> list[tuple[str, str]]:
    """List the command of each console block with the output shown under it."""
    return [(command, output.strip()) for command, output in re.findall(r"```console\n\$ (.*)\n([^`]*)```", text)]


def test_it_is_said_where_the_program_of_the_examples_is() -> None:
    before = COMMANDS.partition("$ dra-extender ")[0]
    assert 'PATH="$PWD/.venv/bin:$PATH"' in before


@pytest.mark.parametrize(("command", "output"), shown(COMMANDS), ids=["table", "json", "caret", "allocate", "topology"])
def test_a_shown_command_prints_what_is_shown(command: str, output: str) -> None:
    assert printed("sh", "-c", command).strip() == output


@needs_make
def test_make_run_places_pods_and_tells_of_each() -> None:
    # The environment is this one: neither built here, nor expected to be in .venv.
    said = printed("make", "--silent", "--old-file=.venv/ready", f"BIN={PROGRAMS}", "run")
    assert re.search(r"bound +four-gpus-one-numa-1 +on node-\d  gpus: (gpu-[0-3] ?){4}|(gpu-[4-7] ?){4}", said)
    assert re.search(r"waits +five-gpus-one-numa-5 .*needs 5 free devices", said)
    assert said.endswith("12 of 14 pods were placed\n")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_inside_the_tree_lead_somewhere(document: str) -> None:
    path = ROOT / document
    links = re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text())
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_to_a_heading_find_it(document: str) -> None:
    path = ROOT / document
    for file, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", path.read_text()):
        assert anchor in anchors(path.parent / file if file else path)


@pytest.mark.parametrize("word", REASONS.values())
def test_what_a_pod_is_told_is_explained_to_who_runs_it(word: str) -> None:
    assert f"`{word}`" in OPERATIONS


def test_the_reasons_that_are_explained_are_those_for_which_pods_wait() -> None:
    _, _, table = OPERATIONS.partition("\n| Reason | What helps |\n|---|---|\n")
    rows = table.partition("\n\n")[0].splitlines()
    explained = [word for row in rows for word in re.findall(r"`(\w+)`", row.split(" | ")[0])]
    # With the first nobody is refused: the scheduler has seen the claim that we have not, and the pod is tried again.
    assert sorted(explained) == sorted({*Word, *Ending} - {Word.CLAIM_WAITING, Ending.ALLOCATED})


def test_nothing_is_in_the_vocabulary_that_no_pod_is_told() -> None:
    told = "\n".join(path.read_text() for path in files(".py", root=ROOT / "extender") if path.name != "vocabulary.py")
    is_used = {kind.value for kind in Shortage}.__contains__
    assert [word for word in Word if not is_used(word) and not re.search(rf"\bWord\.{word.name}\b", told)] == []
    assert [end for end in Ending if not re.search(rf"\bEnding\.{end.name}\b", told)] == []


def test_each_line_of_the_log_that_tells_of_trouble_says_what_helps() -> None:
    call = re.compile(r"LOG\.(?:warning|error|critical|exception)\(\s*\"([^\"]+)\"")
    lines = {line for path in files(".py", root=ROOT / "extender") for line in call.findall(path.read_text())}
    assert len(lines) > 10
    assert {line for line in lines if f"`{line}`" not in OPERATIONS} == set()
