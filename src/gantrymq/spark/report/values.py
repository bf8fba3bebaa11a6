"""A job's report: one value that every form of it is made from."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from gantrymq.version import VERSION

Cell: TypeAlias = str | int | float | bool | None
Row: TypeAlias = dict[str, Cell]

ROWS_MAX: Final = 10_000
"""Rows of one table in a report; what a job finds beyond is in its own output."""
PROBLEMS_MAX: Final = 1000


class Check(msgspec.Struct, rename="camel"):
    """Something that must hold after a job, and whether it does."""

    name: str
    passed: bool
    said: str
    """What was compared, with figures."""


class Series(msgspec.Struct, rename="camel"):
    """The values of one line or one set of bars."""

    name: str
    values: list[float]


class Plot(msgspec.Struct, rename="camel"):
    """A picture of some series over common labels."""

    title: str
    kind: Literal["bars", "lines"]
    labels: list[str]
    series: list[Series]
    unit: str = ""


class Report(msgspec.Struct, rename="camel"):
    """What was done, what was found, and whether it is right."""

    job: str
    options: dict[str, object]
    version: str = VERSION
    state: Literal["planned", "done", "checked", "failed"] = "planned"
    started_ms: int = 0
    seconds: float = 0.0
    plan: list[str] = msgspec.field(default_factory=list)
    """What a run does, in sentences; all there is after a dry run."""
    figures: dict[str, Cell] = msgspec.field(default_factory=dict)
    tables: dict[str, list[Row]] = msgspec.field(default_factory=dict)
    plots: list[Plot] = msgspec.field(default_factory=list)
    checks: list[Check] = msgspec.field(default_factory=list)
    problems: list[str] = msgspec.field(default_factory=list)
    """What somebody should look at: damage found, rules broken."""
    problem_count: int = 0
    rows_left_out: dict[str, int] = msgspec.field(default_factory=dict)
    """Rows that a table would have had beyond its bound."""

    @property
    def is_good(self) -> bool:
        """Tell whether every check passed and nothing was found."""
        return (
            self.state != "failed"
            and not self.problem_count
            and all(check.passed for check in self.checks)
        )

    def add_problem(self, what: str) -> None:
        """Note something that somebody should look at."""
        self.problem_count += 1
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(what)

    def add_check(self, name: str, passed: bool, said: str) -> None:
        """Note whether something holds."""
        self.checks.append(Check(name, passed, said))

    def add_table(self, name: str, rows: list[Row]) -> None:
        """Note a table; rows beyond the bound are counted."""
        self.tables[name] = rows[:ROWS_MAX]
        if len(rows) > ROWS_MAX:
            self.rows_left_out[name] = len(rows) - ROWS_MAX
