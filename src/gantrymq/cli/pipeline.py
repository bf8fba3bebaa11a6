"""`gantrymq pipeline`: the jobs on Spark; `gantrymq.spark.jobs` has them.

The list and the help answer without Spark: it is loaded when a job is known and its options good.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from gantrymq.cli.arguments import BAD_USAGE, PROGRAM, SUCCESS

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME: Final = f"{PROGRAM} pipeline"

HELP: Final = f"""\
usage: {NAME} list [--json] | run JOB [options] | java

Jobs over topics and store directories, on Spark: on this machine, or on a cluster (--master,
--remote). Each says with --dry-run what it would do, checks its own result, and writes a report
as text, JSON (--report), Parquet (--tables) or a page with plots (--html).

first steps:
  {NAME} list                        which jobs there are
  {NAME} run audit --help            the options of one
  {NAME} run audit --path ./gantrymq-data/store
                                               every record of a store, checked
  {NAME} run archive --name-server 127.0.0.1:9876 --topic Orders --to ./lake
                                               a topic to Parquet files, each message once
  {NAME} java                        which Java and Python would be used

exit status: 0 success, 1 a failed operation or problems found, 2 bad usage
"""


def main(arguments: Sequence[str]) -> int:
    """Run `gantrymq pipeline` and return its exit status; bad usage raises SystemExit(2)."""
    if not arguments or arguments[0] in {"-h", "--help"}:
        sys.stdout.write(HELP)
        return SUCCESS
    command, *rest = arguments
    if command == "list":
        return _list(rest)
    if command == "java":
        return _java(rest)
    if command == "run":
        return _run(rest)
    return _complain(f"there is no command {command!r}")


def _complain(what: str) -> int:
    sys.stderr.write(f"{NAME}: {what}; try `{NAME} --help`\n")
    raise SystemExit(BAD_USAGE)


def _list(rest: Sequence[str]) -> int:
    from gantrymq.spark.jobs import JOB_MODULES  # noqa: PLC0415

    if rest not in ([], ["--json"]):
        return _complain(f"list takes --json and nothing else, not {rest[0]!r}")
    summaries = {name: summary for name, (_module, summary) in JOB_MODULES.items()}
    if rest:
        import json  # noqa: PLC0415

        sys.stdout.write(json.dumps(summaries) + "\n")
    else:
        sys.stdout.writelines(f"{name:<14} {text}\n" for name, text in summaries.items())
    return SUCCESS


def _java(rest: Sequence[str]) -> int:
    import os  # noqa: PLC0415

    from gantrymq.errors import GantryError  # noqa: PLC0415
    from gantrymq.spark.launch.java import find_java  # noqa: PLC0415

    if rest:
        return _complain(f"java takes no arguments, not {rest[0]!r}")
    try:
        java = find_java(os.environ)
    except GantryError as error:
        sys.stderr.write(f"{NAME} java: {error}\n")
        return 1
    sys.stdout.write(f"Java {java.version} of {java.origin}: {java.home}\n")
    sys.stdout.write(f"Python of driver and workers: {sys.executable}\n")
    return SUCCESS


def _run(rest: Sequence[str]) -> int:
    from gantrymq.spark.jobs import JOB_MODULES, load_job  # noqa: PLC0415

    if not rest or rest[0] in {"-h", "--help"}:
        return _complain(f"run wants a job: {', '.join(JOB_MODULES)}")
    name, *options = rest
    if name not in JOB_MODULES:
        return _complain(f"there is no job {name!r}; there are {', '.join(JOB_MODULES)}")
    from gantrymq.spark.jobs.command import run_command  # noqa: PLC0415

    return run_command(load_job(name), options, f"{NAME} run {name}")
