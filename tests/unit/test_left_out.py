"""Tests that need a program: a named skip without it, a failure in CI, and both are counted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import tools
from support.tools import Tool

ROOT = Path(__file__).parents[2]
TOOLCHAIN = "tests/interop/test_toolchain.py"


def run(folder: Path, ci: str) -> subprocess.CompletedProcess[str]:
    """Run the toolchain's tests on a machine that has nothing but Python."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", TOOLCHAIN]
    environment = {**os.environ, "PATH": str(folder), "CI": ci}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_a_missing_program_is_a_named_skip(tmp_path: Path) -> None:
    done = run(tmp_path, ci="")
    assert done.returncode == 0
    assert "= left out =" in done.stdout
    assert "1 x tool etcd: not installed (package etcd-server)" in done.stdout
    assert "1 x tool chromium: not installed (package chromium)" in done.stdout


def test_in_ci_it_is_a_failure(tmp_path: Path) -> None:
    done = run(tmp_path, ci="true")
    assert done.returncode == 1
    assert "tool etcd: not installed (package etcd-server); with CI=true" in done.stdout
    assert "left out =" not in done.stdout


def test_a_program_may_be_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "java"
    program.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    table = {
        "java": Tool(("java",), "-version", 17, "a-jdk"),
        "old": Tool(("java",), "-version", 8),
    }
    assert tools.problem("java", table) == "version 11 found, 17 needed (package a-jdk)"
    assert tools.problem("old", table) is None


def test_an_unknown_name_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        tools.problem("no such tool")
