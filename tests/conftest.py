"""What every test run does: say which kernels it tests, and leave nothing out silently."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import gantrymq
from support import hypothesis_profiles, kernels, tools
from support.kernels import kernel

__all__ = ["kernel"]  # a fixture: a test that takes it runs once with each kernel

ROOT = Path(__file__).parent.parent


def pytest_configure() -> None:
    """Refuse a run that would test something else than it seems to."""
    package = Path(gantrymq.__file__).resolve().parent
    if package != (ROOT / "src" / "gantrymq").resolve():
        raise pytest.UsageError(f"gantrymq is {package}, not this clone's; run `make clean setup`")
    problem = kernels.kernel_problem()
    if problem and not kernels.readable_allowed():
        raise pytest.UsageError(problem)
    hypothesis_profiles.register()


def pytest_report_header() -> list[str]:
    """Name the kernels under test."""
    return [f"gantrymq {gantrymq.__version__}, {kernels.header_line()}"]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose program is missing, by name; where CI=true, fail it."""
    for marker in item.iter_markers("tool"):
        (name,) = marker.args
        why = tools.problem(name)
        if why is None:
            continue
        if tools.required():
            pytest.fail(f"tool {name}: {why}; with CI=true no test may be left out", pytrace=False)
        pytest.skip(f"tool {name}: {why}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count the tests that were left out, by what they lacked."""
    skips: Counter[str] = Counter()
    for report in terminalreporter.getreports("skipped"):
        if isinstance(report.longrepr, tuple):
            skips[report.longrepr[2].removeprefix("Skipped: ")] += 1
    if skips:
        terminalreporter.section("left out")
        for why, count in sorted(skips.items()):
            terminalreporter.line(f"{count} x {why}")
