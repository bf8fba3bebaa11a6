"""What wheel and source distribution hold, from a build of both with rubbish lying about."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from typing import NamedTuple

import pytest

from tidy.rules import NOT_OURS, ROOT

RUBBISH = (
    "src/gantrymq/kernel/_native.html",
    "src/gantrymq/kernel/_native.pyi.orig",
    "src/gantrymq/wire/__pycache__/frame.cpython-311.pyc",
    "src/gantrymq/wire/frame.pyo",
    "tests/unit/__pycache__/x.cpython-311.pyc",
    "tests/golden/wire/java/x.jsonl",
    "fuzz/corpus/x",
)
BUILD = "from setuptools import build_meta as b; b.build_sdist('out'); b.build_wheel('out')"


class Built(NamedTuple):
    """The names of the files in each, from the root of the clone or of site-packages."""

    wheel: set[str]
    sdist: set[str]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("package") / "clone"
    left_out = shutil.ignore_patterns(*NOT_OURS, "golden", "*.so", "*.egg-info", "_native.c", ".*")
    shutil.copytree(ROOT, folder, ignore=left_out)
    shutil.copytree(ROOT / ".ci", folder / ".ci")
    for name in RUBBISH:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x", encoding="utf-8")
    subprocess.run(
        [sys.executable, "-c", BUILD],
        cwd=folder,
        # Translating the kernel makes the C file; compiling it would make nothing but time pass.
        env={**os.environ, "CC": "false", "GANTRYMQ_PURE": "", "PYTHONPATH": ""},
        capture_output=True,
        check=True,
        timeout=300,
    )
    assert (folder / "src/gantrymq/kernel/_native.c").exists()
    (wheel,) = (folder / "out").glob("*.whl")
    (sdist,) = (folder / "out").glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    with tarfile.open(sdist) as packed:
        in_sdist = {item.name.partition("/")[2] for item in packed if item.isfile()}
    return Built(in_wheel, in_sdist)


def sources(folder: str, *suffixes: str) -> set[str]:
    """Return the files of the clone with these suffixes."""
    found = (path for path in (ROOT / folder).rglob("*") if path.suffix in suffixes)
    return {path.relative_to(ROOT).as_posix() for path in found}


def test_the_wheel_holds_the_modules_and_nothing_else(built: Built) -> None:
    modules = {name.removeprefix("src/") for name in sources("src", ".py")}
    packaged = {name for name in built.wheel if ".dist-info/" not in name}
    pages = sources("src/gantrymq/dashboard/static", ".html", ".css", ".js", ".json", ".svg")
    pages = {name.removeprefix("src/") for name in pages}
    assert packaged == modules | pages | {"gantrymq/py.typed"}
    assert "gantrymq/dashboard/static/js/pages/overview.js" in pages
    assert {name.rpartition("/")[2] for name in built.wheel - packaged} >= {"LICENSE", "NOTICE"}


def test_the_source_distribution_holds_what_builds_and_tests(built: Built) -> None:
    files = {
        ".ci/run", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "MANIFEST.in",
        "Makefile", "NOTICE", "README.md", "SECURITY.md", "fuzz/requirements.lock",
        "pyproject.toml", "requirements.lock", "setup.py", "src/gantrymq/py.typed",
    }  # fmt: skip
    files |= sources("src", ".py", ".pyx", ".pxi", ".js", ".css") | sources("docs", ".md")
    files |= sources("contrib", ".json")
    files |= sources("tools", ".sh", ".py") | sources("bench", ".py") | sources("fuzz", ".py")
    files |= {name for name in sources("tests", ".py") if not name.startswith("tests/golden/")}
    assert files - built.sdist == set()


def test_nothing_made_is_in_either(built: Built) -> None:
    made = ("__pycache__", ".pyc", ".pyo", ".pyd", ".so", "_native.c", "_native.html", ".orig")
    for name in built.wheel | built.sdist:
        assert not any(part in name for part in made if not name.endswith(".pyx")), name
        assert not name.startswith(("tests/golden/", "fuzz/corpus/")), name
