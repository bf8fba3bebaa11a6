"""`gantrymq server`, `namesrv` and `broker`: their arguments; `serving` does the work.

The work is imported when arguments are good, so that help and complaints answer at once.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.cli.arguments import PROGRAM, CommandParser

if TYPE_CHECKING:
    from collections.abc import Sequence

SERVER: Final = f"""\
Run a name server, a broker and a dashboard in this process, with everything under one directory.

  {PROGRAM} server                       on this machine, data in ./gantrymq-data
  {PROGRAM} server --data /srv/mq -c broker.conf
                                      with settings of an Apache RocketMQ broker

Stop it with Ctrl-C or SIGTERM: requests under way are answered, everything is brought to the disk.
exit status: 0 stopped cleanly, 1 it could not start or stop as it should, 2 bad usage"""

NAMESRV: Final = f"""\
Run a name server. Name servers know nothing of each other: start two or three, and give clients
and brokers all their addresses.

  {PROGRAM} namesrv                      on port 9876
  {PROGRAM} namesrv -c namesrv.conf      with Apache RocketMQ's settings (listenPort, kvConfigPath)

exit status: 0 stopped cleanly, 1 it could not start, 2 bad usage"""

BROKER: Final = f"""\
Run a broker. It takes the settings files of an Apache RocketMQ broker as they are.

  {PROGRAM} broker -n 10.0.0.1:9876;10.0.0.2:9876 -c broker.conf
  {PROGRAM} broker -p -c broker.conf     print every setting that would hold, and leave
  {PROGRAM} broker -m -c broker.conf     print those that differ from the default, and leave
  {PROGRAM} broker --shards 4 -c broker.conf
                                      four broker groups, a process each: NAME-0 to NAME-3
  {PROGRAM} broker drain ADDRESS         get a running one ready to be stopped; or undrain

exit status: 0 stopped cleanly, 1 it could not start or stop as it should, 2 bad usage"""

PORT_MAX: Final = 65535
SHARDS_MAX: Final = 64
NO_PORT: Final = -1


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > PORT_MAX:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to {PORT_MAX}, not {text!r}")
    return int(text)


def _metrics_port(text: str) -> int:
    return NO_PORT if text == "off" else _port(text)


def _shards(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= SHARDS_MAX:
        raise argparse.ArgumentTypeError(
            f"shards are a number from 1 to {SHARDS_MAX}, not {text!r}"
        )
    return int(text)


def _parser(name: str, text: str) -> CommandParser:
    parser = CommandParser(
        prog=f"{PROGRAM} {name}",
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "-c", "--config", type=Path, metavar="FILE", help="settings, as Apache RocketMQ has them"
    )
    parser.add_argument("--log", default="warning", metavar="LEVEL",
                        choices=("debug", "info", "warning", "error"),
                        help="log on standard error: debug, info, warning, error")  # fmt: skip
    parser.add_argument("--log-format", choices=("text", "json"),
                        help="lines of the log: text, or json, an object a line")  # fmt: skip
    parser.add_argument("--insecure", action="store_true",
                        help="let other machines in without access control: whoever reaches it may "
                        "read, write and administer")  # fmt: skip
    usual = "5557, or a free one" if name == "server" else "off"
    parser.add_argument("--metrics-port", type=_metrics_port, metavar="PORT",
                        help="port of /metrics, /healthz and /readyz on this machine; 0 is a free "
                        f"one, off is none (default: {usual})")  # fmt: skip
    return parser


def server_parser() -> CommandParser:
    """Return the parser of `gantrymq server`."""
    parser = _parser("server", SERVER)
    parser.add_argument(
        "--data", type=Path, default=Path("gantrymq-data"), metavar="DIR",
        help="where messages and settings are kept (default: ./gantrymq-data)",
    )  # fmt: skip
    parser.add_argument("--namesrv-port", type=_port, default=9876, metavar="PORT",
                        help="port of the name server (default: 9876)")  # fmt: skip
    parser.add_argument("--port", type=_port, metavar="PORT",
                        help="port of the broker (default: 10911)")  # fmt: skip
    parser.add_argument("--bind", metavar="ADDRESS", help="listen at this address alone (default: "
                        "127.0.0.1; with access control or --insecure all)")  # fmt: skip
    parser.add_argument("--dashboard-port", type=_port, default=8080, metavar="PORT",
                        help="port of the dashboard (default: 8080); 0: none")  # fmt: skip
    parser.add_argument("--dashboard-bind", default="127.0.0.1", metavar="ADDRESS",
                        help="where browsers reach it (default: 127.0.0.1)")  # fmt: skip
    return parser


def namesrv_parser() -> CommandParser:
    """Return the parser of `gantrymq namesrv`."""
    parser = _parser("namesrv", NAMESRV)
    parser.add_argument(
        "-p", "--print", action="store_true", help="print every setting that would hold, and leave"
    )
    return parser


def broker_parser() -> CommandParser:
    """Return the parser of `gantrymq broker`."""
    parser = _parser("broker", BROKER)
    parser.add_argument("-n", "--namesrv", metavar="ADDR;ADDR", help="name servers")
    parser.add_argument("-p", "--print", action="store_true", help="print all settings, and leave")
    parser.add_argument("-m", "--print-changed", action="store_true",
                        help="print what differs from the defaults, and leave")  # fmt: skip
    parser.add_argument("--shards", type=_shards, default=1, metavar="N",
                        help="run N broker groups, one process each")  # fmt: skip
    return parser


def server(arguments: Sequence[str]) -> int:
    """Run `gantrymq server`; return its exit status."""
    chosen = server_parser().parse_args(arguments)
    from gantrymq.cli import serving  # noqa: PLC0415  (loads broker and store)

    return serving.server(chosen)


def namesrv(arguments: Sequence[str]) -> int:
    """Run `gantrymq namesrv`; return its exit status."""
    chosen = namesrv_parser().parse_args(arguments)
    from gantrymq.cli import serving  # noqa: PLC0415

    return serving.namesrv(chosen)


def broker(arguments: Sequence[str]) -> int:
    """Run `gantrymq broker`, or its commands for one that runs; return the exit status."""
    if arguments and arguments[0] in {"drain", "undrain"}:
        from gantrymq.cli import draining  # noqa: PLC0415

        return draining.main(arguments)
    chosen = broker_parser().parse_args(arguments)
    from gantrymq.cli import serving  # noqa: PLC0415

    return serving.broker(chosen)
