"""Jobs on Spark: which there are, and what those that ran have reported. Spark is not needed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.dashboard.calls import Endpoint, problem_data
from gantrymq.errors import InvalidValue
from gantrymq.model.roles import Role
from gantrymq.spark.jobs import JOB_MODULES
from gantrymq.spark.report.values import Report

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.dashboard.calls import Call

REPORTS_MAX: Final = 100
"""The newest files of the folder; older ones are not looked at."""
FILES_MAX: Final = 10_000
REPORT_BYTES_MAX: Final = 8 * 1024 * 1024
TABLE_ROWS_MAX: Final = 100


async def list_jobs(call: Call) -> object:
    """Return the jobs that there are."""
    folder = call.parts.settings.reports
    rows = [{"name": name, "about": text} for name, (_module, text) in JOB_MODULES.items()]
    return {"rows": rows, "reports": None if folder is None else str(folder)}


async def list_runs(call: Call) -> object:
    """Return the last runs, as their reports tell; None where no folder was given."""
    folder = call.parts.settings.reports
    if folder is None:
        return {"rows": None, **problem_data([])}
    found, problems = await asyncio.to_thread(_read_all, folder)
    return {"rows": [_row(name, each) for name, each in found], **problem_data(problems)}


def _newest(folder: Path) -> list[Path]:
    try:
        listed = [path for path, _ in zip(folder.glob("*.json"), range(FILES_MAX), strict=False)]
        return sorted(listed, key=lambda path: path.stat().st_mtime, reverse=True)[:REPORTS_MAX]
    except OSError as error:
        raise InvalidValue(f"{folder}: {error.strerror or error}") from None


def _read(path: Path) -> Report:
    if path.stat().st_size > REPORT_BYTES_MAX:
        raise InvalidValue(f"{path.name} has more than {REPORT_BYTES_MAX} bytes")
    try:
        return msgspec.json.decode(path.read_bytes(), type=Report)
    except (ValueError, RecursionError) as error:  # also what is no UTF-8
        raise InvalidValue(str(error)) from None


def _read_all(folder: Path) -> tuple[list[tuple[str, Report]], list[str]]:
    if not folder.is_dir():
        raise InvalidValue(f"{folder} is no folder")
    found, problems = [], []
    for path in _newest(folder):
        try:
            found.append((path.name, _read(path)))
        except (OSError, InvalidValue) as error:
            problems.append(f"{path.name} is no report: {error}")
    return found, problems


def _row(name: str, report: Report) -> dict[str, object]:
    return {
        "file": name, "job": report.job, "state": report.state, "isGood": report.is_good,
        "startedMs": report.started_ms, "seconds": report.seconds,
        "problems": report.problem_count,
        "failedChecks": sum(not check.passed for check in report.checks),
    }  # fmt: skip


async def show_run(call: Call) -> object:
    """Return one report."""
    folder, name = call.parts.settings.reports, call.text("file")
    is_name = name.isprintable() and "/" not in name and not name.startswith(".")
    if folder is None or not is_name or not name.endswith(".json"):
        raise InvalidValue("there is no such report")
    try:
        report = await asyncio.to_thread(_read, folder / name)
    except (OSError, InvalidValue) as error:
        raise InvalidValue(f"{name[:128]} is no report: {error}") from None
    return {
        **_row(name, report),
        "plan": report.plan, "figures": report.figures, "told": report.problems[:TABLE_ROWS_MAX],
        "checks": [
            {"name": each.name, "passed": each.passed, "said": each.said} for each in report.checks
        ],
        "options": {key: str(value) for key, value in report.options.items()},
        "tables": {key: rows[:TABLE_ROWS_MAX] for key, rows in report.tables.items()},
        "rowsLeftOut": {
            key: len(rows) - TABLE_ROWS_MAX
            for key, rows in report.tables.items()
            if len(rows) > TABLE_ROWS_MAX
        },
    }  # fmt: skip


ENDPOINTS: Final = (
    Endpoint("GET", "/api/pipelines", Role.VIEWER, list_jobs),
    Endpoint("GET", "/api/pipelines/runs", Role.VIEWER, list_runs),
    Endpoint("GET", "/api/pipelines/run", Role.VIEWER, show_run),
)
