"""What a job is: declared options, a plan, a run, a check, and a report that they fill.

Options are a `msgspec.Struct`: its fields are the job's flags (`name_server` is `--name-server`)
and the keys of its spec file, with their types, bounds and help texts, declared once. `plan` only
looks and writes nothing; `run` does the work; `check` says whether what is there is right, and can
be run alone. All three fill the report of their context.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from gantrymq.clock import Clock, SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from gantrymq.spark.launch.progress import TaskProgress
    from gantrymq.spark.report.values import Report


class Options(msgspec.Struct, kw_only=True, frozen=True, rename="kebab"):
    """What all options have in common; fields are declared by each job."""


OptionsT = TypeVar("OptionsT", bound=Options)


class Context:
    """What a job works with: a session, made when it is first asked for, a clock and its report."""

    def __init__(
        self,
        report: Report,
        session: Callable[[], SparkSession],
        clock: Clock | None = None,
    ) -> None:
        self.report = report
        self.clock = clock or SystemClock()
        self._make = session
        self._session: SparkSession | None = None

    @property
    def spark(self) -> SparkSession:
        """Return the session; jobs that only look at metadata never ask for it."""
        if self._session is None:
            self._session = self._make()
        return self._session

    @property
    def cores(self) -> int:
        """Return how many tasks run at the same time; a guess where Spark does not say."""
        from gantrymq.spark.launch.session import cores_of  # noqa: PLC0415

        return cores_of(self.spark)

    @property
    def has_session(self) -> bool:
        """Tell whether a session was asked for."""
        return self._session is not None

    def progress(self, label: str) -> TaskProgress:
        """Return a line on the terminal for the time of a `with` block."""
        from gantrymq.spark.launch.progress import TaskProgress  # noqa: PLC0415

        return TaskProgress(self.spark, label)


@dataclass(frozen=True)
class Job(Generic[OptionsT]):
    """One job; a module has it as `JOB`."""

    name: str
    summary: str
    text: str
    options: type[OptionsT]
    plan: Callable[[OptionsT, Context], None]
    run: Callable[[OptionsT, Context], None]
    check: Callable[[OptionsT, Context], None]
