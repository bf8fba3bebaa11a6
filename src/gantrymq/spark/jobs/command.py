"""Running a job from a command line: `gantrymq pipeline run JOB`, and a job given to spark-submit.

Status 0: done, and all checks passed. 1: it failed, a check failed, or problems were found. 2: bad
usage. The report is written in every case in which a job has begun.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec

from gantrymq.clock import SystemClock
from gantrymq.errors import GantryError
from gantrymq.spark.jobs.arguments import (
    BadOptions,
    Common,
    add_common,
    add_options,
    common_options,
    read_options,
    shown_options,
)
from gantrymq.spark.jobs.job import Context, Job, Options
from gantrymq.spark.launch.session import make_session
from gantrymq.spark.report.html import report_html
from gantrymq.spark.report.tables import write_tables
from gantrymq.spark.report.text import report_text
from gantrymq.spark.report.values import Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.clock import Clock

SUCCESS: Final = 0
FAILED: Final = 1
BAD_USAGE: Final = 2


class JobParser(argparse.ArgumentParser):
    """Says in one line what is wrong."""

    def error(self, message: str) -> NoReturn:
        """Print the complaint and leave with status 2."""
        self.exit(BAD_USAGE, f"{self.prog}: {message}; try `{self.prog} --help`\n")


def job_parser(job: Job[Any], program: str) -> JobParser:
    """Return the parser of one job's command line."""
    parser = JobParser(
        prog=program,
        description=job.text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_options(parser, job.options)
    add_common(parser)
    return parser


def run_command(job: Job[Any], arguments: Sequence[str], program: str) -> int:
    """Run a job with a command line; return the exit status. Bad usage raises SystemExit(2)."""
    parser = job_parser(job, program)
    chosen = parser.parse_args(arguments)
    try:
        common = common_options(chosen)
        options = read_options(job, chosen)
    except BadOptions as error:
        parser.error(str(error))
    try:
        report = run_job(job, options, common)
    except KeyboardInterrupt:
        sys.stderr.write(f"{program}: interrupted\n")
        return FAILED
    write_report(report, common)
    if report.state == "failed":
        sys.stderr.write(f"{program}: {report.problems[-1]}\n")
    return SUCCESS if report.is_good else FAILED


def main(job: Job[Any]) -> NoReturn:
    """Run a job as a program of its own: what `spark-submit` starts."""
    raise SystemExit(run_command(job, sys.argv[1:], f"gantrymq {job.name}"))


def run_job(
    job: Job[Any], options: Options, common: Common | None = None, clock: Clock | None = None
) -> Report:
    """Run a job and return its report; what it cannot do is said in the report."""
    common, clock = common or Common(), clock or SystemClock()
    report = Report(job.name, shown_options(options), started_ms=clock.now_ms())
    began = clock.monotonic()
    session = partial(
        make_session,
        f"gantrymq {job.name}",
        master=common.master,
        remote=common.remote,
        settings=common.settings,
    )
    context = Context(report, session, clock)
    try:
        _do(job, options, common, context)
    except GantryError as error:
        _fail(report, str(error))
    except OSError as error:
        _fail(report, f"{error.filename or job.name}: {error.strerror or error}")
    except Exception as error:
        if not _is_sparks(error):
            raise
        _fail(report, f"Spark: {_first_line(error)}")
    report.seconds = round(clock.monotonic() - began, 3)
    return report


def _do(job: Job[Any], options: Options, common: Common, context: Context) -> None:
    report = context.report
    if common.check_only:
        job.check(options, context)
        report.state = "checked"
        return
    job.plan(options, context)
    if common.dry_run:
        return
    job.run(options, context)
    report.state = "done"
    if not common.no_check:
        job.check(options, context)


def _fail(report: Report, why: str) -> None:
    report.state = "failed"
    report.add_problem("; ".join(why.splitlines()))


def _is_sparks(error: Exception) -> bool:
    try:
        from pyspark.errors import PySparkException  # noqa: PLC0415
    except ImportError:
        return False
    return isinstance(error, PySparkException) or type(error).__module__.startswith("py4j.")


def _first_line(error: Exception) -> str:
    """Return what a failed Spark job says, without the traces of two languages.

    A task that failed in Python has its own last line of the Python trace.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith(("gantrymq.", "pyspark.errors", "OSError"))]
    return (ours or lines or [type(error).__name__])[0]


def write_report(report: Report, common: Common) -> None:
    """Write a report in the forms that were asked for, and print one."""
    encoded = msgspec.json.format(msgspec.json.encode(report), indent=2)
    if common.report is not None:
        common.report.parent.mkdir(parents=True, exist_ok=True)
        common.report.write_bytes(encoded + b"\n")
    if common.html is not None:
        common.html.parent.mkdir(parents=True, exist_ok=True)
        common.html.write_text(report_html(report), encoding="utf-8")
    if common.tables is not None:
        write_tables(report, common.tables)
    if common.as_json:
        sys.stdout.write(encoded.decode() + "\n")
    elif report.state != "failed" and (text := report_text(report)):
        sys.stdout.write(text + "\n")
    sys.stdout.flush()
