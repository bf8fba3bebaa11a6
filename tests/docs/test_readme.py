"""Every command in the pages is run, or is a make target that the checks themselves run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from gantrymq.kernel import kernel
from support import markdown
from support.markdown import Block, Command

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

COVERED_BLOCKS_MAX = 3
"""Blocks that are not run here. Raise it only for one that really cannot be."""


class Placed(NamedTuple):
    """A block with the page it stands on."""

    page: Path
    block: Block

    def __str__(self) -> str:
        """Return a test id: `README.md:12`."""
        return f"{self.page.relative_to(ROOT)}:{self.block.line}"


PLACED = [
    Placed(page, block)
    for page in PAGES
    for block in markdown.blocks(page.read_text(encoding="utf-8"))
]
ONE_PROGRAM = {
    ROOT / "docs" / name for name in ("client.md", "moving.md", "security.md", "spark.md")
}
"""Pages whose blocks are one program, which a test of its own runs: `test_client_pages.py` ..."""
RUNNABLE = [
    placed
    for placed in PLACED
    if placed.block.kind in {"bash", "console", "python"} and placed.page not in ONE_PROGRAM
]
COVERED = [placed for placed in RUNNABLE if placed.block.covered_by]
RUN_HERE = [placed for placed in RUNNABLE if not placed.block.covered_by]


def run(program: list[str], folder: Path) -> str:
    """Run a program in an empty folder, with this environment on the path; return its output."""
    here = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{here}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        program,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_output(command: Command, printed: str) -> None:
    """Compare with the page; the pages show the compiled kernel, which a machine may lack."""
    assert command.output is not None
    promised = command.output.replace("kernel: compiled", f"kernel: {kernel.KERNEL_NAME}")
    assert printed == promised


@pytest.mark.parametrize("placed", RUN_HERE, ids=str)
def test_block_does_what_the_page_says(placed: Placed, tmp_path: Path) -> None:
    if placed.block.kind == "python":
        run([sys.executable, "-c", placed.block.text], tmp_path)
        return
    assert placed.block.commands
    for command in placed.block.commands:
        printed = run(["bash", "-euo", "pipefail", "-c", command.line], tmp_path)
        if command.output is not None:
            check_output(command, printed)


@pytest.mark.parametrize("placed", COVERED, ids=str)
def test_covered_block_names_make_targets(placed: Placed) -> None:
    """What is not run here is nothing but the targets that the comment names, and they exist."""
    targets = set(
        re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    used = set()
    for command in placed.block.commands:
        program, *words = command.line.partition("#")[0].split()
        assert program == "make"
        used |= {word for word in words if re.fullmatch(r"[a-z]+", word)}
    assert used
    assert used <= targets
    assert {f"make {target}" for target in used} == set(placed.block.covered_by)


def test_what_is_not_run_is_counted() -> None:
    assert len(COVERED) <= COVERED_BLOCKS_MAX
    readme = [placed for placed in PLACED if placed.page.name == "README.md"]
    lines = [command.line for placed in readme for command in placed.block.commands]
    assert "make test" in lines
    assert "gantrymq --version" in lines
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_links_lead_somewhere() -> None:
    broken = [
        f"{page.name}: {target}"
        for page in [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "SECURITY.md"]
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


SAMPLE = """
```console
$ one --x
out 1
out 2
$ two
$ three
out
```
text
<!-- runs in CI: make a, make b -->
```bash
# remark
make a
make b \\
  X=1
```
```
drawing
```
"""


def test_pages_are_read_as_they_are_meant() -> None:
    console, bash, drawing = markdown.blocks(SAMPLE)
    assert (console.kind, console.line, console.covered_by) == ("console", 2, ())
    assert console.commands == [
        Command("one --x", "out 1\nout 2\n"),
        Command("two", None),
        Command("three", "out\n"),
    ]
    assert (bash.kind, bash.covered_by) == ("bash", ("make a", "make b"))
    assert [command.line.split() for command in bash.commands] == [
        ["make", "a"],
        ["make", "b", "X=1"],
    ]
    assert (drawing.kind, drawing.text) == ("", "drawing\n")


def test_a_wrong_promise_is_found() -> None:
    with pytest.raises(AssertionError):
        check_output(Command("gantrymq --version", "gantrymq 9.9.9\n"), "gantrymq 0.1.0\n")
