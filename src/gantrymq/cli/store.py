"""`gantrymq store`: the arguments of the offline tools; `store_commands` does the work.

The work is imported when arguments are good, so that help and complaints answer at once.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.cli.arguments import PROGRAM, CommandParser

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME: Final = f"{PROGRAM} store"

DESCRIPTION: Final = """\
Look at a store directory, check it, mend it, or get the messages out of it.

The directory is the one that storePathRootDir names: it holds commitlog/, consumequeue/, index/.
It may be written by gantrymq or by Apache RocketMQ 4.9 or 5.x, stopped, crashed, or in use. All
commands but `rebuild` leave every byte of it as it is."""

EPILOG: Final = f"""\
first steps:
  {NAME} inspect /data/store                what is in it, which topics, was it stopped cleanly
  {NAME} verify /data/store                 is everything whole and does everything agree
  {NAME} export /data/store > all.jsonl     every message, one JSON object a line
  {NAME} rebuild /data/store                consume queues and index anew, from the commit log

File sizes are taken from the files. Give the broker's own configuration with -c if it sets
storePathCommitLog or messageDelayLevel, or if a command says that it cannot tell a size.

exit status: 0 success, 1 a failed operation or problems found, 2 bad usage"""

INSPECT: Final = """\
Show files, offsets, queues, checkpoint and index: as a broker would find them when it starts.
Of a store that crashed, or is in use, this is the state after recovery, which is made in memory."""

VERIFY: Final = """\
Check every record (check sum, lengths, offset, time), every queue entry against its record, every
record against its queue entry, and the index against both. Status 1 means that problems were found.

A store in use changes while it is looked at: stop the broker, or verify a snapshot."""

EXPORT: Final = """\
Print each message that a broker would serve from the directory, one JSON object a line, in the
order of the commit log. Bodies are given by length and SHA-256, as stored and, if they are
compressed, as sent."""

REBUILD: Final = """\
Make consume queues and index again from the commit log, which is only read. The old ones are kept
in DIR/replaced-TIME; remove them when you are content. Refused while a broker has the store open.

Topics that were deleted come back, for the log still has their records; --known-topics leaves out
what config/topics.json does not name."""


def store_parser() -> CommandParser:
    """Return the parser of `gantrymq store`."""
    parser = CommandParser(
        prog=NAME,
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add(commands, "inspect", "what there is in a store", INSPECT)
    _add(commands, "verify", "check everything against everything", VERIFY)
    rebuild = _add(commands, "rebuild", "make queues and index from the log", REBUILD)
    rebuild.add_argument(
        "--to", type=Path, metavar="OTHER", help="write to this empty directory, leave DIR alone"
    )
    rebuild.add_argument(
        "--known-topics", action="store_true", help="leave out topics that were deleted"
    )
    export = _add(commands, "export", "every message as JSON", EXPORT)
    export.add_argument(
        "--jsonl", action="store_true", help="one JSON object a line; there is no other form yet"
    )
    export.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to a file")
    return parser


def _add(
    commands: argparse._SubParsersAction[CommandParser], name: str, summary: str, text: str
) -> CommandParser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="the store")
    parser.add_argument(
        "-c", "--config", type=Path, metavar="FILE", help="the broker.conf it was written with"
    )
    parser.add_argument("--json", action="store_true", help="answer in JSON")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run `gantrymq store` and return its exit status; bad usage raises SystemExit(2)."""
    parser = store_parser()
    if not arguments:
        parser.print_help()
        return 0
    chosen = parser.parse_args(arguments)
    from gantrymq.cli.store_commands import Request, run  # noqa: PLC0415  (loads the store)

    return run(
        Request(
            command=chosen.command,
            directory=chosen.directory,
            config=chosen.config,
            as_json=chosen.json,
            target=getattr(chosen, "to", None),
            known_topics=getattr(chosen, "known_topics", False),
            output=getattr(chosen, "output", None),
        )
    )
