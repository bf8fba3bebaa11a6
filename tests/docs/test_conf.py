"""The example files have every setting that a server prints, with the value that would hold."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETTING = re.compile(r"^#([A-Za-z][\w.]*)=(.*)$", re.MULTILINE)
EXAMPLES = {"broker": "conf/broker.conf", "namesrv": "conf/namesrv.conf"}


def run(*command: str, home: str = "/") -> subprocess.CompletedProcess[str]:
    """Run a program of the clone."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "HOME": home}
    environment.pop("NAMESRV_ADDR", None)
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def printed(role: str, *arguments: str, home: str) -> dict[str, str]:
    """Return the settings that `-p` prints."""
    done = run("-m", "gantrymq", role, "-p", *arguments, home=home)
    assert done.returncode == 0, done.stderr
    lines = (line.partition("=") for line in done.stdout.splitlines())
    return {name: value for name, _, value in lines}


def in_file(role: str) -> dict[str, str]:
    """Return the settings of an example, with the # taken off, and TLS left out."""
    text = (ROOT / EXAMPLES[role]).read_text(encoding="utf-8")
    found = SETTING.findall(text)
    assert len(found) == len(dict(found)), "a setting stands there twice"
    return {name: value for name, value in found if not name.startswith("tls.")}


def test_the_files_are_what_the_sources_say() -> None:
    done = run("tools/example_settings.py", "--check")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("role", EXAMPLES)
def test_an_example_has_what_a_server_prints(role: str) -> None:
    home = "$HOME" if role == "broker" else "/"
    assert in_file(role) == printed(role, home=home)


@pytest.mark.parametrize("role", EXAMPLES)
def test_an_example_can_be_used(role: str, tmp_path: Path) -> None:
    """As it is, and with every line taken in: both mean the defaults."""
    usual = printed(role, home=str(tmp_path))
    assert printed(role, "-c", EXAMPLES[role], home=str(tmp_path)) == usual
    lines = [f"{name}={value}\n" for name, value in in_file(role).items()]
    everything = tmp_path / "all.conf"
    everything.write_text("".join(lines).replace("$HOME", str(tmp_path)), encoding="utf-8")
    assert printed(role, "-c", str(everything), home=str(tmp_path)) == usual


def test_a_mode_of_tls_is_understood(tmp_path: Path) -> None:
    text = (ROOT / EXAMPLES["broker"]).read_text(encoding="utf-8")
    assert "#tls.server.mode=permissive\n" in text
    wrong = tmp_path / "wrong.conf"
    wrong.write_text(text.replace("#tls.server.mode=permissive", "tls.server.mode=sometimes"))
    done = run("-m", "gantrymq", "broker", "-p", "-c", str(wrong))
    assert done.returncode == 1
    assert "tls.server.mode" in done.stderr


def test_the_settings_that_matter_exist() -> None:
    page = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"^## Settings that matter\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([a-z]+[A-Z]\w*)`", row)}
    assert len(named) > 10
    assert named <= in_file("broker").keys()
