"""The `gantrymq` command: reads the arguments, answers, and returns an exit status.

Status 0 is success, 1 a failed operation, 2 bad usage; an error is one line that says what to do.
Anything that is slow to import is imported where it is used: `--help` must answer at once.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from gantrymq.cli.arguments import FAILED, PROGRAM, CommandParser
from gantrymq.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COLLECTED_AFTER: Final = 20_000
"""Objects after which the collector looks at a command that asks: what it loads stays to the end,
and the default of 700 has it looked through again and again. A server keeps the default."""

TRUST: Final = "--cluster-trust"
"""With it a command speaks TLS."""

DESCRIPTION: Final = """\
RocketMQ in one pip install, with your topics as Spark tables."""

EPILOG: Final = """\
commands:
  server                      run a name server, a broker and a dashboard in this process
  dashboard -n ADDR           serve the dashboard of any cluster; `gantrymq dashboard --help`
  namesrv                     run a name server
  broker                      run a broker; takes Apache RocketMQ's settings files
  broker drain|undrain ADDR   get one ready to be stopped without a failed send, or take it back
  user add|list|remove|passwd|rekey
                              who may do what, with access control; `gantrymq user --help`
  store inspect|verify|rebuild|export DIR
                              look at a store directory of gantrymq or Apache RocketMQ, check it,
                              mend it, or get the messages out of it; `gantrymq store --help`
  topic|group|message|dlq|cluster|client COMMAND
                              look at a cluster and change it; `gantrymq topic --help`
  explain message|group NAME  the whole life of a message or a group on one page
  doctor                      what is wrong between name server and broker
  apply -f FILE               make the topics and groups that a file declares; a plan first
  admin SUBCOMMAND            the same as Apache's mqadmin; `gantrymq admin --help`
  completion bash|zsh|fish    completion for a shell
  cluster demo                start a deployment on this machine, show it, and clean up
  pipeline list|run JOB       jobs on Spark: archive, audit, search...; `gantrymq pipeline --help`
  bench send|pull|latency     put load on a broker and measure it; `gantrymq bench --help`

first steps:
  gantrymq server             ready in a second; point any RocketMQ client at 127.0.0.1:9876
  gantrymq --version          which version this is, and whether the fast (compiled) or the
                              readable kernel is in use
  python -c 'import gantrymq.wire.frame as frame; help(frame)'
                              how to split received bytes into frames

exit status: 0 success, 1 a failed operation, 2 bad usage"""


# Each loads its module when it is called: `--help` and the others do not wait for it.


def _server(arguments: Sequence[str]) -> int:
    from gantrymq.cli import serve  # noqa: PLC0415

    return serve.server(arguments)


def _namesrv(arguments: Sequence[str]) -> int:
    from gantrymq.cli import serve  # noqa: PLC0415

    return serve.namesrv(arguments)


def _broker(arguments: Sequence[str]) -> int:
    from gantrymq.cli import serve  # noqa: PLC0415

    return serve.broker(arguments)


def _store(arguments: Sequence[str]) -> int:
    from gantrymq.cli import store  # noqa: PLC0415

    return store.main(arguments)


def _bench(arguments: Sequence[str]) -> int:
    from gantrymq.cli import bench  # noqa: PLC0415

    return bench.main(arguments)


def _dashboard(arguments: Sequence[str]) -> int:
    from gantrymq.cli import dashboard  # noqa: PLC0415

    return dashboard.main(arguments)


def _pipeline(arguments: Sequence[str]) -> int:
    from gantrymq.cli import pipeline  # noqa: PLC0415

    return pipeline.main(arguments)


def _cluster(arguments: Sequence[str]) -> int:
    """Load what a deployment needs only for those who want one."""
    if arguments and arguments[0] == "demo":
        from gantrymq.cli import cluster  # noqa: PLC0415

        return cluster.main(arguments)
    return _guessable("cluster", arguments)


def _admin(arguments: Sequence[str]) -> int:
    gc.set_threshold(COLLECTED_AFTER)
    from gantrymq.cli.mqadmin import command  # noqa: PLC0415

    return command.main(arguments)


def _user(arguments: Sequence[str]) -> int:
    from gantrymq.cli import users  # noqa: PLC0415

    return users.main(arguments)


def _guessable(noun: str, arguments: Sequence[str]) -> int:
    gc.set_threshold(COLLECTED_AFTER)
    from gantrymq.cli.daily import command  # noqa: PLC0415

    return command.main(noun, arguments)


_COMMANDS: Final[dict[str, Callable[[Sequence[str]], int]]] = {
    "server": _server,
    "namesrv": _namesrv,
    "broker": _broker,
    "store": _store,
    "bench": _bench,
    "cluster": _cluster,
    "admin": _admin,
    "dashboard": _dashboard,
    "user": _user,
    **{
        noun: partial(_guessable, noun)
        for noun in (
            "topic",
            "group",
            "quota",
            "message",
            "dlq",
            "client",
            "explain",
            "doctor",
            "apply",
            "completion",
        )
    },
    "pipeline": _pipeline,
}


_ASKING: Final = frozenset({"admin", "topic", "group", "message", "dlq", "client", "explain"})
"""Commands that ask a cluster, print the answer and end."""


def _load_asyncio(arguments: Sequence[str]) -> None:
    """Load it as it is where there is no TLS, for a process that speaks none.

    A tenth of what a command loads would be OpenSSL's.
    """
    if os.environ.get("GANTRYMQ_CLUSTER_TRUST") or "ssl" in sys.modules:
        return
    if not any(each.startswith(TRUST) for each in arguments):
        sys.modules["ssl"] = None  # type: ignore[assignment]
        import asyncio  # noqa: F401, PLC0415

        del sys.modules["ssl"]


def _parser() -> CommandParser:
    """Return the parser of the whole command line."""
    parser = CommandParser(
        prog=PROGRAM,
        usage="gantrymq [--help] [--version] [COMMAND ...]",
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
    if sys.stdout is None:
        return _fail("standard output is closed: open it, or send it to /dev/null")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names may be no text, and are shown
    try:
        try:
            status = _run(arguments)
        finally:
            # Here it can be said what went wrong; at the end of the interpreter it cannot.
            sys.stdout.flush()
            if arguments is None:  # a process of its own, which ends now: nothing is to be found
                gc.freeze()
    except BrokenPipeError:
        _drop_output()  # whoever reads it has had enough
        return FAILED
    except ImportError as error:
        return _fail(str(error))
    except OSError as error:
        _drop_output()
        return _fail(f"standard output: {error.strerror or error}")
    if arguments is None and not _ASKING.isdisjoint(sys.argv[1:2]):
        _leave(status)
    return status


def _leave(status: int) -> None:
    """End a process that has said all: to take it apart would cost it more than to drop it."""
    if "coverage" not in sys.modules:  # which writes at the end what it has seen
        sys.stderr.flush()
        os._exit(status)


def _drop_output() -> None:
    """Send what is still to be written nowhere, so that the interpreter ends in peace."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(why: str) -> int:
    """Say on one line what went wrong; return the status of a failed operation."""
    with suppress(OSError):  # there is nowhere left to say it
        sys.stderr.write(f"{PROGRAM}: {'; '.join(why.splitlines())}\n")
    return FAILED


def _run(arguments: Sequence[str] | None) -> int:
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if chosen.version:
        sys.stdout.write(version_line() + "\n")
    elif chosen.help or chosen.command is None:
        sys.stdout.write(parser.format_help())
    elif chosen.command in _COMMANDS:
        if arguments is None and chosen.command in _ASKING:
            _load_asyncio(chosen.rest)
        return _COMMANDS[chosen.command](chosen.rest)
    else:
        parser.error(f"there is no command {chosen.command!r} in version {VERSION}")
    return 0
