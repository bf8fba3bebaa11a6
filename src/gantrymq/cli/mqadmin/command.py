"""Reads the arguments of `gantrymq admin SUBCOMMAND` by the table, and runs its function."""

from __future__ import annotations

import math
import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

from gantrymq.cli.arguments import FAILED, PROGRAM, SUCCESS, CommandParser
from gantrymq.cli.mqadmin.table import LEFT_OUT, SPECS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gantrymq.cli.mqadmin.table import Spec

NAME: Final = f"{PROGRAM} admin"
_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")
_REPEATS: Final = frozenset({"clusterList", "haStatus", "clusterRT", "getSyncStateSet",
                             "getBrokerEpoch"})  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Run `gantrymq admin` and return its exit status; bad usage raises SystemExit(2)."""
    if not arguments or arguments[0] in {"-h", "--help"}:
        sys.stdout.write(help_text())
        return SUCCESS
    name, *rest = arguments
    if name == "help":
        if not rest:
            sys.stdout.write(help_text())
            return SUCCESS
        name, rest = rest[0], ["--help"]
    if name in LEFT_OUT:
        sys.stderr.write(f"{NAME} {name}: {LEFT_OUT[name]}\n")
        return FAILED
    spec = SPECS.get(name)
    if spec is None:
        return _unknown(name)
    parser = parser_of(name, spec)
    chosen = parser.parse_args(rest)
    from gantrymq.cli.asking import run  # noqa: PLC0415

    command = getattr(import_module(f"gantrymq.cli.mqadmin.{spec.module}"), function_name(name))
    return run(f"{NAME} {name}", chosen, command, _interval(parser, name, chosen))


def _unknown(name: str) -> int:
    import difflib  # noqa: PLC0415

    near = difflib.get_close_matches(name, SPECS, 1, 0.5)
    hint = f"; did you mean {near[0]}?" if near else ""
    CommandParser(prog=NAME).error(f"there is no sub-command {name!r}{hint}")


def _interval(parser: CommandParser, name: str, chosen: argparse.Namespace) -> float | None:
    """Return how often the command is to be repeated, which some of mqadmin's are."""
    text = getattr(chosen, "interval", None) if name in _REPEATS else None
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 < seconds < math.inf:  # not a number is neither
        parser.error(f"--interval is {text!r}: give seconds")
    return seconds


def function_name(command: str) -> str:
    """Return `topic_status` for `topicStatus`."""
    return _CAPITAL.sub("_", command).lower().replace("_m_q", "_mq").replace("_r_t", "_rt").replace(
        "_c_q", "_cq").replace("rocks_d_b", "rocksdb").replace("_i_d", "_id")  # fmt: skip


def options_of(spec: Spec) -> list[tuple[list[str], str, bool, bool]]:
    """Return for each option its flags, its name, whether it takes a value and must be given."""
    found = []
    for word in spec.options.split():
        flags, _mark, _rest = word.partition("=")
        short, _slash, name = flags.rstrip("!?").rpartition("/")
        name = name.removeprefix("--")
        written = [f"--{name}"] if not short else [short, f"--{name}"]
        found.append((written, name, "=" in word, word.endswith("!")))
    return found


def parser_of(name: str, spec: Spec) -> CommandParser:
    """Return the parser of a sub-command."""
    from gantrymq.cli.given import add_session_options  # noqa: PLC0415

    parser = CommandParser(
        prog=f"{NAME} {name}",
        description=f"{spec.about[:1].upper()}{spec.about[1:]}.",
        epilog="exit status: 0 success, 1 it failed or a part of it did, 2 bad usage",
        allow_abbrev=False,
        conflict_handler="resolve",
    )
    own = parser.add_argument_group("options of the command")
    for flags, long_name, takes_value, is_needed in options_of(spec):
        if flags[0] == "-c" and long_name == "cplus":
            # 4.9: a flag. 5.x: the name of a cluster. What it says is of no use here.
            own.add_argument(*flags, dest=long_name, nargs="?", const="true")
        elif takes_value:
            own.add_argument(*flags, dest=long_name, required=is_needed, metavar="VALUE")
        else:
            own.add_argument(*flags, dest=long_name, action="store_true")
    shared = parser.add_argument_group("options of every command")
    add_session_options(shared)
    return parser


def help_text() -> str:
    """Return what `gantrymq admin --help` prints."""
    width = max(map(len, SPECS)) + 1
    listed = "\n".join(f"  {name:<{width}} {spec.about}" for name, spec in SPECS.items())
    return f"""\
usage: {NAME} SUBCOMMAND [-n HOST:PORT] [options] [--json]

mqadmin's commands under mqadmin's own names and flags, against gantrymq and Apache RocketMQ.
`{NAME} SUBCOMMAND --help` has the options of one.

{listed}

Not here, each with the reason when it is called:
  {", ".join(LEFT_OUT)}

exit status: 0 success, 1 it failed or a part of it did, 2 bad usage
"""
