"""A short run of every fuzz target, and proof that the runner notices what it is there for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fuzz import builtin, limits, seeds, services
from fuzz.keep import KEPT, kept
from fuzz.targets import TARGETS
from fuzz.twins import KERNELS, DisagreementError, agree, outcome

from gantrymq.broker.queries import Queries
from gantrymq.errors import ProtocolError, RecordError
from support.samples import json_request

ROOT = Path(__file__).parents[2]
SECONDS = 1.0
SEEDS_MAX = 40
"""Of those that have many, every so many-th."""

NAMES = [
    "frame", "header", "body", "properties", "batch", "record", "broker", "namesrv", "replication",
    "tls", "metrics", "dashboard", "sql92", "settings", "accounts", "users", "declared", "config",
    "store", "arguments",
]  # fmt: skip
REGRESSIONS = sorted((ROOT / "fuzz" / "regressions").glob("*/*"))


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a machine that is busy with other tests for what it is."""
    monkeypatch.setattr(builtin, "INPUT_SECONDS_MAX", 5.0)


def test_the_targets_are_these() -> None:
    assert sorted(TARGETS) == sorted(seeds.SEEDS) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_bad_input_only_raises_what_it_may(name: str) -> None:
    inputs = seeds.for_target(name)
    inputs = inputs[:: -(-len(inputs) // SEEDS_MAX)]
    target = limits.bounded(TARGETS[name])
    report = builtin.fuzz(name, target, inputs, seconds=SECONDS, seed=1)
    assert [finding.what for finding in report.findings] == []
    assert inputs
    assert report.executions > len(inputs)
    assert report.corpus > len(inputs)


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_was_found_once_is_not_found_again(path: Path) -> None:
    target = limits.bounded(TARGETS[path.parent.name])
    with builtin.alarm_handler():
        _, finding = builtin.attempt(target, path.read_bytes())
    assert finding is None


@pytest.mark.parametrize("name", sorted(path.stem for path in KEPT.glob("*.txt")))
def test_what_is_kept_of_long_runs_does_no_harm(name: str) -> None:
    target = limits.bounded(TARGETS[name])
    inputs = kept(name)
    with builtin.alarm_handler():
        found = [builtin.attempt(target, data)[1] for data in inputs]
    assert inputs
    assert [finding.what for finding in found if finding is not None] == []


def test_a_disagreement_is_not_an_allowed_error() -> None:
    def complain(field: str) -> None:
        raise RecordError(field, "wrong")

    one, other = outcome(lambda: complain("a")), outcome(lambda: complain("b"))
    assert agree("same", [one, one]) == one
    with pytest.raises(DisagreementError):
        agree("different", [one, other])
    assert not issubclass(DisagreementError, ProtocolError)
    with pytest.raises(ZeroDivisionError):
        outcome(lambda: 1 // 0)


def test_an_error_of_ours_that_became_an_answer_is_a_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_arguments: object) -> None:
        raise IndexError("planted")

    monkeypatch.setattr(Queries, "max_offset", fail)
    services._lives._broker = None
    try:
        with pytest.raises(DisagreementError, match=r"request 30 .*IndexError\('planted'\)"):
            services.broker(json_request(30, {"topic": "T", "queueId": "0"}))
    finally:
        services._lives._broker = None


def test_every_kernel_is_compared() -> None:
    assert "readable" in {each.KERNEL_NAME for each in KERNELS}


PLANTED = """
import os, signal, sys, time
from fuzz import builtin, run, seeds, targets

def planted(data):
    if b"!" not in data:
        return "fine"
    {deed}

targets.TARGETS["planted"] = planted
seeds.SEEDS["planted"] = lambda: [b"a seed"]
builtin.FINDINGS_MAX = 1  # one is enough
run.STUCK_SECONDS_MAX = 2
sys.exit(run.main(["planted", "--seconds", "20", "--engine", "builtin", "--crashes", {folder!r}]))
"""

DEEDS = {
    "another error": ("raise IndexError('planted')", "crash", "IndexError: planted"),
    "a hang": ("while True: pass", "hang", "more than 1.0 s in planted"),
    "an allocation": ("return str(bytearray(1 << 33))", "crash", "MemoryError"),
    "memory": ("return str(len(b'x' * (272 << 20)))", "crash", "bytes of input took"),
    "a dead process": ("os.kill(os.getpid(), signal.SIGSEGV)", "crash", "died with status -11"),
    "stuck": (
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM]); time.sleep(60)",
        "hang",
        "stuck for 2 s",
    ),
}


@pytest.mark.parametrize(("deed", "kind", "what"), DEEDS.values(), ids=DEEDS.keys())
def test_the_runner_notices(deed: str, kind: str, what: str, tmp_path: Path) -> None:
    """A change that puts a `!` into the input comes soon; what the target does then is noticed."""
    program = PLANTED.format(deed=deed, folder=str(tmp_path / "found"))
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1, done.stderr
    assert f"{kind}{'es' if kind == 'crash' else 's'} 1" in done.stdout
    (text,) = (tmp_path / "found").glob("*.txt")
    assert text.name.startswith(f"planted-{kind}-")
    assert what in text.read_text(encoding="utf-8")
    assert b"!" in text.with_suffix("").read_bytes()
