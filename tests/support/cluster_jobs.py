"""A program that runs some jobs on a Spark master, one after another, and writes reports."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from gantrymq.spark.jobs import load_job
from gantrymq.spark.jobs.arguments import Common
from gantrymq.spark.jobs.command import run_job

NAMES = ("audit", "archive", "rebuild-cq")
SMALL = {
    "spark.executor.memory": "512m", "spark.driver.memory": "512m", "spark.cores.max": "2",
    "spark.executor.cores": "1", "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1", "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}  # fmt: skip


def main(master: str, root: str, config: str, to: Path) -> int:
    """Run them; return 0 if all were good."""
    store = {"path": root, "config": config}
    jobs = {
        "audit": store,
        "archive": {
            "path": [root], "broker-conf": config, "topic-pattern": ".*", "to": str(to / "lake"),
        },
        "rebuild-cq": {**store, "to": str(to / "cq")},
        "rebuild-index": {**store, "to": str(to / "ix"), "tag-keys": True},
    }  # fmt: skip
    status = 0
    for name, options in jobs.items():
        job = load_job(name)
        common = Common(master=master, settings=SMALL)
        if master.startswith("connect:"):
            common = Common(remote=master.removeprefix("connect:"))
        report = run_job(job, msgspec.convert(options, job.options), common)
        (to / f"{name}.json").write_bytes(msgspec.json.encode(report))
        if not report.is_good:
            sys.stderr.write(f"{name}: {report.problems} {report.checks}\n")
            status = 1
    return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4])))
