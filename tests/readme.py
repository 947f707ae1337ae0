"""Fills the README and pages of docs/ with what their commands print; ``python -m tests.readme`` rewrites them.

A block to be filled is a comment and the fence after it::

    <!-- output of: simkv run scenarios/chatbot.yaml -->
    ```text
    ...
    ```

What takes minutes comes from a page that another target writes: ``<!-- as in: docs/validation.md -->`` is filled
with that page's first such fence.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = (README, *(ROOT / "docs" / f"{name}.md" for name in ("calc", "curves", "eviction", "sweep")))
BLOCK = re.compile(r"(<!-- output of: (?P<command>simkv .+?) -->\n```text\n)(?P<output>.*?)(```\n)", re.DOTALL)
COPIED = re.compile(r"(<!-- as in: (?P<page>docs/\S+\.md) -->\n```text\n)(?P<text>.*?)(```\n)", re.DOTALL)
WALL = re.compile(r"\d[\d.,]* ?(?:ms|s|min) (?:of )?(?:wall|real)\b[^\n]*|(?:took|wall(?: time)?:?) [^\n]*")
_WRITERS = {"run": "", "sweep": "-sweep", "curves": "-curves"}
"""Commands with a result folder, and how its name ends."""


def steady(output: str, folder: str, shown: str) -> str:
    """Return ``output`` with the folder that was written to named ``shown`` and wall time left out."""
    lines = [WALL.sub("", line.replace(folder, shown)).rstrip() for line in output.strip("\n").splitlines()]
    return "\n".join(lines) + "\n"


def run(command: str) -> str:
    """Run a ``simkv`` command of the README from the root, results to a temporary folder; return what it prints."""
    words = shlex.split(command)
    simkv = Path(sys.executable).with_name("simkv")
    with tempfile.TemporaryDirectory() as scratch:
        words[0] = str(simkv)
        folder, shown = f"{scratch}/out", ""
        if words[1] in _WRITERS and "--out" not in words:
            words += ["--out", folder]
            shown = f"reports/{Path(words[2]).stem}{_WRITERS[words[1]]}"
        env = {"COLUMNS": "100", "NO_COLOR": "1", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command} ended with {done.returncode}:\n{done.stderr}")
    return steady(done.stdout, folder, shown)


def fence(page: str) -> str:
    """Return the first fence of text in a page."""
    found = re.search(r"```text\n(.*?)```\n", (ROOT / page).read_text("utf-8"), re.DOTALL)
    if found is None:
        raise RuntimeError(f"{page} has no text to take over")
    return found[1]


def filled(text: str) -> str:
    """Return a README's text with every marked block filled anew."""
    text = COPIED.sub(lambda block: block[1] + fence(block["page"]) + block[4], text)
    return BLOCK.sub(lambda block: block[1] + run(block["command"]) + block[4], text)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(page.read_text("utf-8")), "utf-8")
