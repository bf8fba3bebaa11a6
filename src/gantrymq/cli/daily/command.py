"""Reads the arguments of a guessable command by the table, loads its module, and runs it."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from gantrymq.cli.arguments import PROGRAM, SUCCESS, CommandParser
from gantrymq.cli.daily.table import ALONE, NOUNS, SHOWN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gantrymq.cli.daily.table import Verb

STATUS = "exit status: 0 success, 1 it failed or a part of it did, 2 bad usage"


def main(noun: str, arguments: Sequence[str]) -> int:
    """Run `gantrymq NOUN ...` and return its exit status; bad usage raises SystemExit(2)."""
    if noun in ALONE:
        return _run(f"{PROGRAM} {noun}", ALONE[noun], arguments)
    verbs = NOUNS[noun]
    if not arguments or arguments[0] in {"-h", "--help"}:
        sys.stdout.write(help_of(noun, verbs))
        return SUCCESS
    name, *rest = arguments
    if name not in verbs:
        _unknown(noun, name, verbs)
    return _run(f"{PROGRAM} {noun} {name}", verbs[name], rest)


def _unknown(noun: str, name: str, verbs: Mapping[str, Verb]) -> NoReturn:
    known = ", ".join(verbs)
    CommandParser(prog=f"{PROGRAM} {noun}").error(f"there is no {name!r}: there are {known}")


def _run(program: str, verb: Verb, rest: Sequence[str]) -> int:
    parser = parser_of(program, verb)
    chosen = parser.parse_args(rest)
    from gantrymq.cli.asking import run  # noqa: PLC0415

    command = getattr(import_module(f"gantrymq.cli.daily.{verb.module}"), verb.function)
    return run(program, chosen, command)


def parser_of(program: str, verb: Verb) -> CommandParser:
    """Return the parser of a command."""
    from gantrymq.cli.given import add_session_options  # noqa: PLC0415

    about = f"{verb.about[:1].upper()}{verb.about[1:]}."
    parser = CommandParser(prog=program, description=about, epilog=STATUS, allow_abbrev=False)
    for word in verb.arguments.split():
        if not word.startswith("-"):
            optional = word.startswith("[")
            name = word.strip("[]")
            parser.add_argument(name, metavar=name, nargs="?" if optional else None)
            continue
        flags, equals, _rest = word.partition("=")
        flags_given = flags.split("/")
        name = flags_given[-1].removeprefix("--")
        if name == "property":
            parser.add_argument(*flags_given, dest=name, action="append", metavar="NAME=VALUE")
        elif equals:
            parser.add_argument(
                *flags_given, dest=name, required=word.endswith("!"), metavar=name.upper()
            )
        else:
            parser.add_argument(*flags_given, dest=name, action="store_true")
    add_session_options(parser.add_argument_group("options of every command"))
    return parser


def help_of(noun: str, verbs: Mapping[str, Verb]) -> str:
    """Return what `gantrymq NOUN --help` prints."""
    width = max(len(name) + len(positional(verb)) for name, verb in verbs.items()) + 2
    listed = "\n".join(
        f"  {f'{name} {positional(verb)}'.strip():<{width}} {verb.about}"
        for name, verb in verbs.items()
    )
    return f"""\
usage: {PROGRAM} {noun} COMMAND [-n HOST:PORT] [options] [--json]

{SHOWN[noun][:1].upper()}{SHOWN[noun][1:]}. `{PROGRAM} {noun} COMMAND --help` has the options.

{listed}

{STATUS}
"""


def positional(verb: Verb) -> str:
    """Return the arguments that are no options."""
    return " ".join(word for word in verb.arguments.split() if not word.startswith("-"))
