"""Jobs of the pipeline, run in the session of the test process."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from gantrymq.spark.jobs import load_job
from gantrymq.spark.jobs.arguments import Common
from gantrymq.spark.jobs.command import run_job
from gantrymq.spark.launch.session import make_session
from support.spark import QUICK_JAVA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from gantrymq.spark.report.values import Report

MASTER = "local[2,3]"
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
}
IN_TESTS = Common(master=MASTER, settings=SETTINGS)


@cache
def spark_session() -> SparkSession:
    """Return the one session of this process."""
    return make_session("gantrymq tests", master=MASTER, settings=SETTINGS)


def run(name: str, common: Common = IN_TESTS, **options: Any) -> Report:  # noqa: ANN401  (each job has its own)
    """Run a job with options as a spec file has them; return its report."""
    job = load_job(name)
    given = {key.replace("_", "-"): value for key, value in options.items()}
    return run_job(job, msgspec.convert(given, job.options), common)


def run_well(name: str, **options: Any) -> Report:  # noqa: ANN401
    """Run a job that must succeed, with all its checks."""
    report = run(name, **options)
    assert report.is_good, (report.state, report.problems, report.checks)
    assert report.checks
    return report
