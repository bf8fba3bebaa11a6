"""A job's options from a command line and a spec file, checked; bad ones are one line that helps.

The flags are made from the fields of the options' struct: text, numbers, switches, choices, and
lists, which are flags given more than once. A spec file is TOML with the same names; what the
command line says goes on top of it.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from gantrymq.errors import GantryError

if TYPE_CHECKING:
    from gantrymq.spark.jobs.job import Job, Options, OptionsT

SECRETS: Final = frozenset({"secret-key", "access-key"})
"""Options whose values stand in no report."""


class BadOptions(GantryError):
    """Options that cannot be; the text says which and why."""


class Common(NamedTuple):
    """The options that every job has."""

    dry_run: bool = False
    check_only: bool = False
    no_check: bool = False
    report: Path | None = None
    html: Path | None = None
    tables: Path | None = None
    as_json: bool = False
    master: str | None = None
    remote: str | None = None
    settings: dict[str, str] = {}  # noqa: RUF012  (never changed)


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options that every job has."""
    group = parser.add_argument_group("for every job")
    group.add_argument("--spec", type=Path, metavar="FILE", help="options from a TOML file")
    group.add_argument("--dry-run", action="store_true", help="say what would be done; do nothing")
    group.add_argument("--check-only", action="store_true", help="only check what is there")
    group.add_argument("--no-check", action="store_true", help="leave out the check behind the run")
    group.add_argument("--report", type=Path, metavar="FILE", help="write the report as JSON")
    group.add_argument("--html", type=Path, metavar="FILE", help="write it as a page with plots")
    group.add_argument("--tables", type=Path, metavar="DIR", help="write its tables as Parquet")
    group.add_argument("--json", action="store_true", help="print the report as JSON")
    group.add_argument("--master", help="Spark master; local[*] unless given")
    group.add_argument("--remote", metavar="sc://HOST", help="a Spark Connect server")
    group.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark"
    )


def add_options(parser: argparse.ArgumentParser, options: type[Options]) -> None:
    """Add the options of one job, from the fields of its struct."""
    group = parser.add_argument_group("for this job")
    for field in msgspec.structs.fields(options):
        described = msgspec.inspect.type_info(field.type)
        text, plain = _described(described)
        needed = " (needed)" if field.required else _default_text(field)
        named: dict[str, Any] = {"dest": field.name, "help": f"{text}{needed}".replace("%", "%%")}
        if isinstance(plain, msgspec.inspect.BoolType):
            named |= {"action": argparse.BooleanOptionalAction, "default": None}
        elif isinstance(plain, msgspec.inspect.ListType | msgspec.inspect.VarTupleType):
            named |= {"action": "append", "metavar": "VALUE"}
        elif isinstance(plain, msgspec.inspect.LiteralType):
            named |= {"metavar": "|".join(map(str, plain.values))}
        else:
            named |= {"metavar": _METAVARS.get(type(plain), "TEXT")}
        group.add_argument(f"--{field.encode_name}", **named)


_METAVARS: Final[dict[type, str]] = {
    msgspec.inspect.IntType: "N",
    msgspec.inspect.FloatType: "NUMBER",
}


def _described(described: msgspec.inspect.Type) -> tuple[str, msgspec.inspect.Type]:
    """Return the help text of a field's type, and the type without wrappings."""
    text = ""
    while True:
        if isinstance(described, msgspec.inspect.Metadata):
            text = text or str((described.extra_json_schema or {}).get("description", ""))
            described = described.type
        elif isinstance(described, msgspec.inspect.UnionType):
            described = next(
                one for one in described.types if not isinstance(one, msgspec.inspect.NoneType)
            )
        else:
            return text, described


def _default_text(field: msgspec.structs.FieldInfo) -> str:
    default = field.default
    if default in {None, "", False, msgspec.NODEFAULT} or default == ():
        return ""
    return f" (default: {default})"


def read_options(job: Job[OptionsT], chosen: argparse.Namespace) -> OptionsT:
    """Return a job's options.

    Raises:
        BadOptions: the spec file cannot be read, or a value cannot be.
    """
    fields = msgspec.structs.fields(job.options)
    values = {} if chosen.spec is None else _spec_file(chosen.spec)
    for field in fields:
        value = getattr(chosen, field.name)
        if value is not None:
            values[field.encode_name] = value
    known = {field.encode_name for field in fields}
    if unknown := sorted(values.keys() - known):
        raise BadOptions(f"{job.name} has no option {unknown[0]!r}; it has {', '.join(known)}")
    try:
        return msgspec.convert(values, job.options, strict=False)
    except msgspec.ValidationError as error:
        raise BadOptions(_complaint(str(error))) from None


def _spec_file(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise BadOptions(f"--spec {path}: {error}") from None


def _complaint(text: str) -> str:
    """Turn what msgspec says into a sentence about an option."""
    if found := re.fullmatch(r"Object missing required field `([^`]+)`", text):
        return f"--{found[1]} is needed"
    if found := re.fullmatch(r"(.+) - at `\$\.([^`\[]+).*`", text):
        return f"--{found[2]}: {found[1][0].lower()}{found[1][1:]}"
    return text


def common_options(chosen: argparse.Namespace) -> Common:
    """Return the options that every job has.

    Raises:
        BadOptions: they contradict each other, or a setting is none.
    """
    if chosen.dry_run and chosen.check_only:
        raise BadOptions("--dry-run and --check-only: choose one")
    if chosen.master and chosen.remote:
        raise BadOptions("--master and --remote: choose one")
    settings = {}
    for one in chosen.conf:
        key, equals, value = one.partition("=")
        if not equals or not key:
            raise BadOptions(f"--conf {one!r}: KEY=VALUE is wanted")
        settings[key] = value
    return Common(
        chosen.dry_run, chosen.check_only, chosen.no_check, chosen.report, chosen.html,
        chosen.tables, chosen.json, chosen.master, chosen.remote, settings,
    )  # fmt: skip


def shown_options(options: Options) -> dict[str, object]:
    """Return options as a report repeats them: secrets are not there."""
    values: dict[str, object] = msgspec.to_builtins(options)
    return {
        name: "(hidden)" if name in SECRETS and value else value for name, value in values.items()
    }
