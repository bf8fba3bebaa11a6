"""The command line: what it prints, where, and with which status."""

from __future__ import annotations

import inspect
import os
import resource
import subprocess
import sys

import pytest

from gantrymq.cli.main import main
from gantrymq.kernel import kernel
from gantrymq.version import VERSION
from gantrymq.wire import frame

START_SECONDS_MAX = 0.1
"""What nobody notices."""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "gantrymq", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version_names_the_kernel(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([option]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"gantrymq {VERSION} (kernel: {kernel.KERNEL_NAME})\n"
    assert printed.err == ""


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], []])
def test_help_teaches(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("usage: gantrymq")
    assert "first steps:" in printed.out
    assert "import gantrymq.wire.frame as frame" in printed.out
    assert inspect.getdoc(frame)
    assert "exit status: 0 success, 1 a failed operation, 2 bad usage" in printed.out
    assert printed.err == ""


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["sever"], "'sever'"),
        (["serve", "--data", "x"], "'serve'"),
        (["--vers"], "--vers"),
        (["--no-such-option"], "--no-such-option"),
    ],
)
def test_bad_usage_is_one_line_that_says_what_to_do(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    printed = capsys.readouterr()
    assert stopped.value.code == 2
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert named in printed.err
    assert "gantrymq --help" in printed.err


def test_as_a_process() -> None:
    good, bad = run("--version"), run("nothing")
    assert good.returncode == 0
    # Where there is no compiled kernel, that is said once, on the other stream.
    assert (good.stderr == "") == (
        kernel.KERNEL_NAME == "compiled" or "GANTRYMQ_KERNEL" in os.environ
    )
    assert good.stdout.startswith(f"gantrymq {VERSION} (kernel: ")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.count("\n") == 1


def shell(line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which `gantrymq` is the command; its status is that of the command."""
    command = f'gantrymq() {{ "{sys.executable}" -m gantrymq "$@"; }}; {line}'
    return subprocess.run(
        ["/bin/bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


@pytest.mark.parametrize(
    ("option", "unbuffered"),
    [
        ("--version", ""),
        ("--version", "1"),
        ("--help", ""),
        ("--help", "1"),
        ("", ""),
        ("store", ""),
        ("store --help", ""),
        ("bench", ""),
        ("bench send --help", ""),
    ],
)
@pytest.mark.parametrize(
    ("redirected", "complaint"),
    [
        ("> /dev/full", "gantrymq: standard output: No space left on device\n"),
        ("| { exec <&-; sleep 0.3; }", ""),
        (">&-", "gantrymq: standard output is closed: open it, or send it to /dev/null\n"),
    ],
    ids=["full", "pipe", "closed"],
)
def test_output_that_nobody_takes(
    option: str, redirected: str, complaint: str, unbuffered: str
) -> None:
    wait = "sleep 0.1; " if redirected.startswith("|") else ""
    done = shell(f"{{ {wait}gantrymq {option}; }} {redirected}", PYTHONUNBUFFERED=unbuffered)
    assert (done.stdout, done.stderr) == ("", complaint)
    assert done.returncode == 1


@pytest.mark.parametrize("arguments", ["--version", "store inspect ."])
def test_a_kernel_that_nobody_knows(arguments: str) -> None:
    done = shell(f"gantrymq {arguments}", GANTRYMQ_KERNEL="bogus")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == ("gantrymq: GANTRYMQ_KERNEL is 'bogus': say 'compiled' or 'readable'\n")


def test_an_error_that_nobody_hears() -> None:
    assert shell("gantrymq --version > /dev/full 2>&1").returncode == 1


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_starts_at_once(option: str) -> None:
    """What the command costs beside the interpreter itself; processor time, for busy machines."""

    def seconds(*command: str) -> float:
        best = float("inf")
        for _ in range(5):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *command], capture_output=True, check=True, timeout=30)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
            best = min(best, spent)
        return best

    bare = seconds("-c", "pass")
    assert seconds("-m", "gantrymq", option) - bare < START_SECONDS_MAX


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from gantrymq.cli.main import main; main(['--help']);"
        "print([name for name in ('asyncio', 'msgspec', 'gantrymq.kernel') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.splitlines()[-1] == "[]"
