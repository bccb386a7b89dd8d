"""The files of this tree, for tests about the tree itself."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Made by tools, not by people.
MADE = {".git", ".venv", "__pycache__", "build", "dist"}


def files(*suffixes: str, root: Path = ROOT) -> Iterator[Path]:
    """Yield the files below *root* that people wrote, with one of *suffixes* or, without any, all."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not _is_made(name))
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(suffixes or ("",)))


def _is_made(folder: str) -> bool:
    made = folder in MADE or folder.startswith(".venv-") or folder == ".hypothesis"
    return made or folder.endswith(("_cache", ".egg-info"))


def anchors(document: Path) -> set[str]:
    """Return what links to the headings of a document end with."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}
