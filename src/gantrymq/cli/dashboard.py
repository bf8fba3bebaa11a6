"""`gantrymq dashboard`: its arguments, accounts from the command line, and serving beside a broker.

What serves pages is an extra; it is imported when it is needed.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.cli.arguments import BAD_USAGE, FAILED, PROGRAM, CommandParser
from gantrymq.errors import GantryError, InvalidValue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.dashboard.serving import DashboardServer
    from gantrymq.dashboard.settings import DashboardSettings

NAME: Final = f"{PROGRAM} dashboard"
EXTRA: Final = f"the dashboard needs `pip install '{PROGRAM}[dashboard]'`"
FOLDER: Final = Path("gantrymq-dashboard")

HELP: Final = f"""\
Serve the dashboard of a cluster, gantrymq's or Apache RocketMQ's, to browsers.

  {NAME} -n 127.0.0.1:9876          at http://127.0.0.1:8080, for this machine alone
  {NAME} -n ... --read-only         nobody can change anything
  {NAME} user set anna --role operator --password-file anna.txt
                                         another account; roles are viewer, operator and admin
  {NAME} user list | user delete NAME

At the first start it makes the account admin and shows its password once.
exit status: 0 stopped cleanly, 1 it could not start, 2 bad usage"""

logger = logging.getLogger(__name__)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, not {text!r}")
    return int(text)


def parser() -> CommandParser:
    """Return the parser of `gantrymq dashboard`."""
    made = CommandParser(
        prog=NAME, description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )  # fmt: skip
    made.add_argument("-n", "--namesrv", metavar="ADDR;ADDR",
                      help="name servers; else NAMESRV_ADDR, else 127.0.0.1:9876")  # fmt: skip
    made.add_argument("--port", type=_port, default=8080, help="port for browsers (8080)")
    made.add_argument("--bind", default="127.0.0.1", metavar="ADDRESS",
                      help="listen here (127.0.0.1: this machine alone)")  # fmt: skip
    made.add_argument("--data", type=Path, default=FOLDER, metavar="DIR",
                      help="accounts, audit log, jobs (default: ./gantrymq-dashboard)")  # fmt: skip
    made.add_argument("--read-only", action="store_true", help="nobody can change anything")
    made.add_argument("--user", metavar="NAME", help="set this account's password at the start")
    made.add_argument("--password-file", type=Path, metavar="FILE",
                      help="the password of --user: the file's first line")  # fmt: skip
    made.add_argument("--no-login", action="store_true",
                      help="ask for no password; on loopback alone")  # fmt: skip
    made.add_argument("--host", action="append", default=[], metavar="NAME",
                      help="a name that browsers may call it by; more than once")  # fmt: skip
    made.add_argument("--proxy", action="append", default=[], metavar="ADDRESS",
                      help="a proxy, or a network of them, that says who asks"
                           " (X-Forwarded-For); more than once")  # fmt: skip
    made.add_argument("--tls-certificate", type=Path, metavar="PEM", help="speak HTTPS with it")
    made.add_argument("--tls-key", type=Path, metavar="PEM", help="and with its key")
    made.add_argument("--cluster-trust", metavar="PEM",
                      help="speak TLS to the cluster, trust who signs in this file")  # fmt: skip
    made.add_argument("--cluster-certificate", metavar="PEM", help="show the cluster this one")
    made.add_argument("--cluster-key", metavar="PEM", help="its key")
    made.add_argument("--reports", type=Path, metavar="DIR",
                      help="reports of `gantrymq pipeline run --report`, to be shown")  # fmt: skip
    made.add_argument("--access-key", metavar="KEY", help="sign requests; else GANTRYMQ_ACCESS_KEY")
    made.add_argument("--secret-key", metavar="KEY", help="with it; else GANTRYMQ_SECRET_KEY")
    return made


def main(arguments: Sequence[str]) -> int:
    """Run `gantrymq dashboard`; return its exit status."""
    if arguments and arguments[0] == "user":
        from gantrymq.cli import dashboard_users  # noqa: PLC0415

        return dashboard_users.main(arguments[1:])
    chosen = parser().parse_args(arguments)
    if not is_installed():
        sys.stderr.write(f"{NAME}: {EXTRA}\n")
        return FAILED
    try:
        settings = settings_of(chosen)
        if chosen.user is not None or chosen.password_file is not None:
            _set_first_user(chosen, settings)
        return _run(settings)
    except InvalidValue as error:
        sys.stderr.write(f"{NAME}: {error}\n")
        return BAD_USAGE
    except (GantryError, OSError) as error:
        sys.stderr.write(f"{NAME}: {error}\n")
        return FAILED


def is_installed() -> bool:
    """Tell whether the extra is there."""
    from importlib.util import find_spec  # noqa: PLC0415

    return find_spec("starlette") is not None and find_spec("uvicorn") is not None


def settings_of(chosen: argparse.Namespace) -> DashboardSettings:
    """Return what the options ask for.

    Raises:
        InvalidValue: they do not go together.
    """
    from gantrymq.cli.given import cluster_tls  # noqa: PLC0415
    from gantrymq.client.settings import credentials_of  # noqa: PLC0415
    from gantrymq.dashboard.settings import DashboardSettings, check_proxy  # noqa: PLC0415
    from gantrymq.wire.hosts import is_loopback  # noqa: PLC0415

    if chosen.no_login and not is_loopback(chosen.bind):
        raise InvalidValue("--no-login is for loopback alone: leave it out, or --bind 127.0.0.1")
    if (chosen.tls_certificate is None) != (chosen.tls_key is None):
        raise InvalidValue("--tls-certificate and --tls-key go together")
    access = chosen.access_key or os.environ.get("GANTRYMQ_ACCESS_KEY")
    secret = chosen.secret_key or os.environ.get("GANTRYMQ_SECRET_KEY")
    return DashboardSettings(
        namesrv=chosen.namesrv or os.environ.get("NAMESRV_ADDR") or "127.0.0.1:9876",
        data=chosen.data, bind=chosen.bind, port=chosen.port, read_only=chosen.read_only,
        login=not chosen.no_login, reports=chosen.reports, hosts=tuple(chosen.host),
        proxies=tuple(map(check_proxy, chosen.proxy)),
        certificate=chosen.tls_certificate, key=chosen.tls_key,
        credentials=credentials_of(access, secret, None), ssl=cluster_tls(chosen),
    )  # fmt: skip


def _set_first_user(chosen: argparse.Namespace, settings: DashboardSettings) -> None:
    """Set the password of `--user`; a new account is an admin."""
    from gantrymq.dashboard.accounts import Accounts, make_account  # noqa: PLC0415
    from gantrymq.model.roles import Role  # noqa: PLC0415

    if chosen.password_file is None:
        raise InvalidValue("--user needs --password-file")
    accounts = Accounts(settings.data)
    name = chosen.user or "admin"
    known = accounts.get(name)
    role = known.role if known is not None else Role.ADMIN
    account = make_account(name, role, read_password(chosen.password_file))
    if known is None:
        accounts.put(account)
    else:
        accounts.change(account, known.mark)


def read_password(path: Path) -> str:
    """Return the first line of a file.

    Raises:
        InvalidValue: it cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue(f"{path}: {error}") from None
    return lines[0] if lines else ""


def _run(settings: DashboardSettings) -> int:
    from gantrymq.dashboard.serving import DashboardServer  # noqa: PLC0415
    from gantrymq.node.lifecycle import run_node  # noqa: PLC0415

    server = DashboardServer(settings)

    def started() -> None:
        sys.stdout.write("\n".join(server.lines()) + "\n")
        sys.stdout.flush()

    return run_node(_Alone(server), started)


@dataclass
class _Alone:
    """A dashboard as a process of its own."""

    server: DashboardServer

    async def start(self) -> None:
        await self.server.start()

    async def stop(self) -> bool:
        await self.server.stop()
        return True


class Beside:
    """A dashboard beside a server in the same process: it comes after it, and never stops it.

    Its modules are loaded on a thread once the server answers, so that nobody waits for them; what
    goes wrong with it is said on one line, and the server goes on.
    """

    def __init__(self, settings: DashboardSettings, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._say = say
        self._server: DashboardServer | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start it in the background."""
        self._task = asyncio.ensure_future(self._start())

    async def _start(self) -> None:
        if not is_installed():
            self._say(f"no dashboard: {EXTRA}")
            return
        try:
            kind = await asyncio.to_thread(_load_serving)
            server = self._server = kind(self._settings)
            await server.start()
        except (GantryError, OSError) as error:
            self._say(f"no dashboard: {error}; --dashboard-port chooses another port, 0 has none")
            return
        except Exception:
            # Nobody waits for this task, so nobody else would ever tell.
            logger.exception("the dashboard failed to start")
            self._say("no dashboard: it failed to start, and the log says why")
            return
        self._say("\n".join(server.lines()))

    async def stop(self) -> None:
        """Stop it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._server is not None:
            await self._server.stop()


def _load_serving() -> type[DashboardServer]:
    from gantrymq.dashboard.serving import DashboardServer  # noqa: PLC0415

    return DashboardServer
