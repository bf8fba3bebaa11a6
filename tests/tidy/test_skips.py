"""What a run of the tests refuses: skips in CI, empty parameters, a kernel that nobody asked for.

Each case is a pytest of its own, with this project's settings and conftest, on a file written here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gantrymq.kernel import available

ROOT = Path(__file__).parents[2]

SKIPS = """
import pytest
def test_runs(): assert pytest
@pytest.mark.skip(reason="no mood")
def test_marked(): assert pytest
@pytest.mark.skipif(True, reason="no mood")
def test_conditional(): assert pytest
def test_inside(): pytest.skip("no mood")
@pytest.fixture
def lazy(): pytest.skip("no mood")
def test_fixture(lazy): assert pytest
@pytest.mark.xfail(reason="known")
def test_known(): assert not pytest
"""
MODULE_SKIPS = "import pytest\npytest.skip('no mood', allow_module_level=True)\n"
MODULE_LACKS = "import pytest\npytest.importorskip('no_such_module')\n"
EMPTY = """
import pytest
@pytest.mark.parametrize("x", [])
def test_x(x): assert x
"""


def run(folder: Path, text: str, *options: str, **variables: str) -> tuple[int, str]:
    """Run a test file as this project runs its own; return status and output."""
    path = folder / "test_sample.py"
    path.write_text(text, encoding="utf-8")
    config = ["-c", str(ROOT / "pyproject.toml"), f"--rootdir={folder}", "-p", "conftest"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *config, *options]
    unset = ("CI", "GANTRYMQ_KERNEL", "GANTRYMQ_ALLOW_READABLE")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    python_path = os.pathsep.join(map(str, (ROOT / "tests", ROOT / "src", ROOT)))
    if len(available()) == 1:
        kept["GANTRYMQ_ALLOW_READABLE"] = "1"
    done = subprocess.run(
        [*command, str(path)],
        cwd=ROOT,
        env={**kept, "PYTHONPATH": python_path, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["alone", "workers"])
def test_in_ci_every_skip_is_a_failure(tmp_path: Path, options: tuple[str, ...]) -> None:
    status, text = run(tmp_path, SKIPS, *options, CI="true")
    assert status == 1
    # What is skipped before it begins counts as an error, the rest as failed.
    assert "1 failed, 1 passed, 1 xfailed, 3 errors" in text
    assert text.count("no mood; with CI=true no test may be left out") >= 4
    assert "CI=true: a skip is a failure, except of: none" in text


@pytest.mark.parametrize("text", [MODULE_SKIPS, MODULE_LACKS])
def test_in_ci_a_module_may_not_skip_itself(tmp_path: Path, text: str) -> None:
    status, printed = run(tmp_path, text, CI="true")
    assert status == 2
    assert "with CI=true no test may be left out" in printed


def test_what_is_allowed_by_name_is_skipped_and_said(tmp_path: Path) -> None:
    text = """
import pytest
from support import tools
tools.SKIPS_ALLOWED_IN_CI["test_sample.py::test_inside"] = "there is no moon"
def test_inside(): pytest.skip("no moon")
def test_other(): pytest.skip("no mood")
"""
    status, printed = run(tmp_path, text, CI="true")
    assert status == 1
    assert "1 failed, 1 skipped" in printed
    assert "1 x no moon" in printed


def test_elsewhere_a_skip_is_counted(tmp_path: Path) -> None:
    status, text = run(tmp_path, SKIPS)
    assert status == 0
    assert "1 passed, 4 skipped, 1 xfailed" in text
    assert "4 x no mood" in text


def test_no_parameters_is_an_error(tmp_path: Path) -> None:
    status, text = run(tmp_path, EMPTY)
    assert status == 2
    assert "Empty parameter set" in text


PLAIN = "def test_x(tmp_path): assert tmp_path\n"


def test_a_kernel_chosen_by_a_variable_is_refused(tmp_path: Path) -> None:
    has_compiled = len(available()) > 1
    why = "GANTRYMQ_KERNEL=readable chose the readable" if has_compiled else "kernel is missing"
    status, text = run(tmp_path, PLAIN, GANTRYMQ_KERNEL="readable", GANTRYMQ_ALLOW_READABLE="")
    assert status == 4
    assert why in text
    assert run(tmp_path, PLAIN)[0] == 0


def test_and_said_where_it_is_allowed(tmp_path: Path) -> None:
    status, text = run(tmp_path, PLAIN, GANTRYMQ_KERNEL="readable", GANTRYMQ_ALLOW_READABLE="1")
    assert status == 0
    head = next(line for line in text.splitlines() if line.startswith("gantrymq "))
    assert "chosen: readable -- " in head
