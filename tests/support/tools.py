"""Programs that some tests need and a machine may lack.

`@pytest.mark.tool("etcd")` makes a test a named skip where the program is missing or too old, and a
failure when CI=true, where nothing may be left out (`tests/conftest.py` does both). `path("etcd")`
is what to run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from typing import NamedTuple

JAVA_MIN = 17


class Tool(NamedTuple):
    """A program: the names it may have, how to ask for its version, the lowest one that will do."""

    programs: tuple[str, ...]
    version_option: str = ""
    major_min: int = 0
    package: str = ""


TOOLS = {
    "java": Tool(("java",), "-version", JAVA_MIN, "openjdk-17-jdk-headless"),
    "javac": Tool(("javac",), "-version", JAVA_MIN, "openjdk-17-jdk-headless"),
    "mvn": Tool(("mvn",), package="maven"),
    "go": Tool(("go",), package="golang-go"),
    "node": Tool(("node",), package="nodejs"),
    "npm": Tool(("npm",), package="npm"),
    "etcd": Tool(("etcd",), package="etcd-server"),
    "chromium": Tool(("chromium", "chromium-browser"), package="chromium"),
}


SKIPS_ALLOWED_IN_CI: dict[str, str] = {}
"""Node ids of tests that may be left out even when CI=true, and why; a run prints it first."""


def required() -> bool:
    """Say whether a test that is left out is a failure here."""
    return os.environ.get("CI") == "true"


def problem(name: str, table: dict[str, Tool] = TOOLS) -> str | None:
    """Return why a program cannot be used, or None. An unknown name raises KeyError."""
    tool = table[name]
    found = _find(tool.programs)
    if found is None:
        return f"not installed (package {tool.package})"
    if tool.major_min:
        major = _major_version(found, tool.version_option)
        if major < tool.major_min:
            return f"version {major} found, {tool.major_min} needed (package {tool.package})"
    return None


def path(name: str) -> str:
    """Return the program to run."""
    found = _find(TOOLS[name].programs)
    if found is None:
        raise FileNotFoundError(name)
    return found


def _find(programs: tuple[str, ...]) -> str | None:
    return next((found for program in programs if (found := shutil.which(program))), None)


@cache
def _major_version(program: str, option: str) -> int:
    """Return the first number that the program says about itself; 0 when it says none."""
    done = subprocess.run(
        [program, option], capture_output=True, text=True, check=False, timeout=60
    )
    number = re.search(r"\d+", done.stdout + done.stderr)
    return int(number.group()) if number else 0
