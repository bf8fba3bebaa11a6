"""What every test run does: say which kernels it tests, and leave nothing out silently."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gantrymq
from support import hypothesis_profiles, kernels, tools
from support.kernels import kernel

if TYPE_CHECKING:
    from collections.abc import Generator

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
    """Name the kernels under test, and in CI what may be left out."""
    lines = [f"gantrymq {gantrymq.__version__}, {kernels.header_line()}"]
    if tools.required():
        allowed = [f"{name} ({why})" for name, why in tools.SKIPS_ALLOWED_IN_CI.items()]
        lines.append(f"CI=true: a skip is a failure, except of: {', '.join(allowed) or 'none'}")
    return lines


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where CI=true, fail a test that skips itself, for whatever reason."""
    report = yield
    if not hasattr(report, "wasxfail"):  # an expected failure has run
        _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Do the same for a module that skips itself."""
    report = yield
    _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and tools.required() and report.nodeid not in tools.SKIPS_ALLOWED_IN_CI:
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: {why}; with CI=true no test may be left out"


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
