"""`gantrymq bench send|pull|latency`: its arguments; `bench_commands` does the work."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from gantrymq.cli.arguments import PROGRAM, CommandParser

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME: Final = f"{PROGRAM} bench"
DESCRIPTION: Final = "Put load on a broker of gantrymq or Apache RocketMQ, and measure it."
EPILOG: Final = f"""\
  {NAME} send                       as many sends as it answers, for ten seconds
  {NAME} send --batch 32 --body 1024
  {NAME} pull                       read all that `send` has left, from the start
  {NAME} latency                    one message at a time, to a consumer that waits
  {NAME} send --against 10.0.0.1:9876 --json > result.json

--against names a name server, all of whose masters take part, or one broker. Messages go to the
topic GantryBench, which is made if it is not there; delete it when you are content. Nothing else
is read or changed.

The load comes from one process on one core. If the result says that this core was busy, the broker
can do more than was measured: start several of these at once and add up.

exit status: 0 success, 1 a failed operation or refused requests, 2 bad usage"""

TEXTS: Final = {
    "send": (
        "as many sends as it answers",
        "Keep so many requests in flight on so many connections, and count the answers.",
    ),
    "pull": (
        "read a topic from its start",
        (
            "Read every queue of the topic from its first message to its end. Fill it with "
            f"`{NAME} send` first."
        ),
    ),
    "latency": (
        "one message at a time",
        (
            "Send one message after the other to a consumer that waits, and measure how long it "
            "takes until the broker has answered and until the consumer has it."
        ),
    ),
}
TOPIC: Final = "GantryBench"
SECONDS_MAX: Final = 86_400.0


def _number(name: str, least: int, most: int) -> object:
    def parse(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(
                f"{name} must be a number from {least} to {most}, not {text!r}"
            )
        return int(text)

    return parse


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= SECONDS_MAX:
        raise argparse.ArgumentTypeError(
            f"seconds must be above 0 and at most {SECONDS_MAX:g}, not {text!r}"
        )
    return seconds


def bench_parser() -> CommandParser:
    """Return the parser of `gantrymq bench`."""
    parser = CommandParser(
        prog=NAME,
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    send, pull, latency = (_add(commands, name, *texts) for name, texts in TEXTS.items())
    for one in (send, pull):
        _option(one, "--queues", 8, _number("queues", 1, 64), "N", "queues of the topic")
    _option(send, "--connections", 8, _number("connections", 1, 1000), "N", "connections")
    _option(send, "--in-flight", 64, _number("in flight", 1, 4096), "N", "requests on each")
    _option(send, "--batch", 1, _number("a batch", 1, 1024), "N", "messages in a request")
    for one in (send, latency):
        _option(one, "--body", 128, _number("body", 1, 4 << 20), "BYTES", "size of a message")
    _option(pull, "--count", 32, _number("count", 1, 1024), "N", "messages asked for at once")
    for one in (send, latency):
        _option(one, "--seconds", 10.0, _seconds, "S", "how long")
    _option(pull, "--seconds", 60.0, _seconds, "S", "how long at most")
    return parser


def _option(
    parser: CommandParser, name: str, default: float, kind: object, metavar: str, text: str
) -> None:
    parser.add_argument(
        name, type=kind, default=default, metavar=metavar,  # type: ignore[arg-type]
        help=f"{text} (default: {default:g})",
    )  # fmt: skip


def _add(
    commands: argparse._SubParsersAction[CommandParser], name: str, summary: str, text: str
) -> CommandParser:
    parser = commands.add_parser(name, help=summary, description=text, allow_abbrev=False)
    parser.add_argument(
        "--against", metavar="ADDR",
        help="name server or broker, host:port (default: $NAMESRV_ADDR, or 127.0.0.1:9876)",
    )  # fmt: skip
    parser.add_argument("--topic", default=TOPIC, help=f"where to (default: {TOPIC})")
    parser.add_argument("--json", action="store_true", help="answer in JSON")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run `gantrymq bench` and return its exit status; bad usage raises SystemExit(2)."""
    parser = bench_parser()
    if not arguments:
        parser.print_help()
        return 0
    chosen = parser.parse_args(arguments)
    from gantrymq.cli import bench_commands  # noqa: PLC0415  (loads the transport)

    return bench_commands.run(chosen)
