"""The floors hold, code stays small, and each rule would notice its violation."""

import ast
import io
import re
import shutil
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tree import ROOT, files

FLOORS = "Floors: an import may only go down"
PURE = "The core is pure"
TOOLS = "Tools and oracles stay in the tests"
FUNCTION_CAP = 50
MODULE_CAP = 300
PRODUCT = tuple(folder for name in ("extender", "loadtests") if (folder := ROOT / name).is_dir())
VAGUE = {"util", "utils", "helper", "helpers", "common", "manager", "managers", "misc"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b")
# Places of one machine, and hosts that serve packages: where to fetch from is everybody's own configuration.
PLACES = re.compile(r"/(home|root|Users|work|opt)/|pypi\.org|pythonhosted\.org|(proxy|sum)\.golang\.org")
EXEMPTION = re.compile(r"#\s*(noqa|type:\s*ignore)")
CODED_EXEMPTION = re.compile(r"#\s*(noqa: [A-Z]+\d+(, ?[A-Z]+\d+)*|type: ignore\[[a-z-]+(, ?[a-z-]+)*\])")


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "extender", tmp_path / "extender", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_import_contract_is_kept() -> None:
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        pytest.param("allocation/planted.py", "import logging", PURE, id="log-in-allocation"),
        pytest.param("state/planted.py", "from time import monotonic", PURE, id="clock-in-state"),
        pytest.param("model/planted.py", "import orjson", PURE, id="json-in-model"),
        pytest.param("model/planted.py", "import extender.allocation", FLOORS, id="model-up-to-allocation"),
        pytest.param("allocation/planted.py", "import extender.state", FLOORS, id="allocation-up-to-state"),
        pytest.param("state/planted.py", "import extender.cli", FLOORS, id="state-up-to-cli"),
        pytest.param("utils.py", "", FLOORS, id="stray-utils"),
        pytest.param("cli/planted.py", "import cel_expr_python", TOOLS, id="oracle-in-the-product"),
    ],
)
def test_a_planted_import_breaks_its_contract(copy: Path, module: str, line: str, contract: str) -> None:
    (copy / "extender" / module).write_text(f"{line}\n")
    result = lint_imports(copy)
    assert result.returncode == 1
    assert f"\n{contract} BROKEN\n" in result.stdout, result.stdout + result.stderr


def overlong(folder: Path) -> Iterator[str]:
    for path in files(".py", root=folder):
        text = path.read_text()
        if (lines := len(text.splitlines())) > MODULE_CAP:
            yield f"{path.name}: {lines} lines"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_CAP:
                    yield f"{path.name}: {node.name} has {lines} lines"


@pytest.mark.parametrize("folder", PRODUCT, ids=lambda folder: folder.name)
def test_functions_and_modules_are_within_their_caps(folder: Path) -> None:
    assert list(overlong(folder)) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("def f():\n" + "    g()\n" * 50, "planted.py: f has 51 lines", id="function"),
        pytest.param(
            "class C:\n    async def f(self):\n" + "        g()\n" * 50, "planted.py: f has 51 lines", id="method"
        ),
        pytest.param("f()\n" * 301, "planted.py: 301 lines", id="module"),
    ],
)
def test_a_planted_giant_exceeds_its_cap(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "planted.py").write_text(text)
    assert list(overlong(tmp_path)) == [complaint]


def vague(folder: Path) -> list[str]:
    return [path.name for path in files(".py", root=folder) if {path.stem, path.parent.name} & VAGUE]


def test_modules_say_what_they_hold() -> None:
    assert vague(ROOT) == []


@pytest.mark.parametrize("name", ["helpers.py", "common/device.py"])
def test_a_planted_vague_name_is_noticed(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    assert vague(tmp_path) == [Path(name).name]


def test_every_folder_of_tests_is_a_package() -> None:
    folders = {path.parent for path in files(".py", root=ROOT / "tests")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def lines_with(pattern: re.Pattern[str], root: Path) -> Iterator[str]:
    for path in files(root=root):
        if path == Path(__file__).resolve():
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1):
            if pattern.search(line):
                yield f"{path.relative_to(root)}:{number}: {line.strip()}"


@pytest.mark.parametrize("pattern", [UNFINISHED, PLACES], ids=["unfinished", "places"])
def test_nothing_is_left_unfinished_or_tied_to_a_place(pattern: re.Pattern[str]) -> None:
    assert list(lines_with(pattern, ROOT)) == []


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        pytest.param(UNFINISHED, "x = 1  # TODO: two", id="unfinished"),
        pytest.param(PLACES, "open('/home/somebody/slices.json')", id="machine"),
        pytest.param(PLACES, "--index-url https://pypi.org/simple", id="registry"),
    ],
)
def test_a_planted_line_is_noticed(tmp_path: Path, pattern: re.Pattern[str], line: str) -> None:
    (tmp_path / "planted.py").write_text(f"{line}\n")
    assert list(lines_with(pattern, tmp_path)) == [f"planted.py:1: {line}"]


def bare_exemptions(text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and EXEMPTION.search(token.string):
            reason = CODED_EXEMPTION.sub("", token.string)
            if EXEMPTION.search(reason) or len(re.findall(r"\w+", reason)) < 2:
                yield token.line.strip()


def test_every_exemption_from_a_rule_has_a_code_and_a_reason() -> None:
    assert [f"{path}: {line}" for path in files(".py") for line in bare_exemptions(path.read_text())] == []


@pytest.mark.parametrize(
    ("line", "is_bare"),
    [
        pytest.param("import re2  # noqa", True, id="no-code"),
        pytest.param("import re2  # type: ignore", True, id="no-kind"),
        pytest.param("import re2  # noqa: F401", True, id="no-reason"),
        pytest.param("import re2  # noqa: F401 - registers itself", False, id="code-and-reason"),
        pytest.param("import re2  # type: ignore[import]  # it has no types", False, id="kind-and-reason"),
        pytest.param("text = '# noqa'", False, id="in-a-string"),
    ],
)
def test_a_planted_bare_exemption_is_noticed(line: str, is_bare: bool) -> None:  # noqa: FBT001 - a column of the table
    assert list(bare_exemptions(f"{line}\n")) == [line] * is_bare
