"""The `gantrymq` command: reads the arguments, answers, and returns an exit status.

Status 0 is success, 1 a failed operation, 2 bad usage; an error is one line that says what to do.
Anything that is slow to import is imported where it is used: `--help` must answer at once.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final, NoReturn

from gantrymq.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM: Final = "gantrymq"
BAD_USAGE: Final = 2

DESCRIPTION: Final = """\
RocketMQ in one pip install, with your topics as Spark tables."""

EPILOG: Final = f"""\
This is {VERSION}, a beginning: the package holds the wire codec and the record kernel, for use from
Python. It has no commands yet: name server, broker, client and tools come with later versions.

first steps:
  gantrymq --version          which version this is, and whether the fast (compiled) or the
                              readable kernel is in use
  python -c 'import gantrymq.wire.frame as frame; help(frame)'
                              how to split received bytes into frames

exit status: 0 success, 1 a failed operation, 2 bad usage"""


class _Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line and say what to do."""

    def error(self, message: str) -> NoReturn:
        """Print the complaint and leave with status 2."""
        self.exit(BAD_USAGE, f"{PROGRAM}: {message}; try `{PROGRAM} --help`\n")


def _parser() -> _Parser:
    """Return the parser of the whole command line."""
    parser = _Parser(
        prog=PROGRAM,
        usage="gantrymq [--help] [--version]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )
    parser.add_argument("-h", "--help", action="store_true", help="show this text")
    parser.add_argument(
        "-V", "--version", action="store_true", help="show the version and the kernel in use"
    )
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def version_line() -> str:
    """Return what `--version` prints: the version and which kernel is in use."""
    from gantrymq.kernel import kernel  # noqa: PLC0415  (loads the compiled part; --help needs none)

    return f"{PROGRAM} {VERSION} (kernel: {kernel.KERNEL_NAME})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; bad usage raises SystemExit(2)."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if chosen.version:
        sys.stdout.write(version_line() + "\n")
    elif chosen.help or chosen.command is None:
        parser.print_help()
    else:
        parser.error(f"there is no command {chosen.command!r} in version {VERSION}")
    return 0
