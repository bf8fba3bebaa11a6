"""`gantrymq broker drain` and `undrain`: a broker gets ready to be stopped, or takes part again.

Draining is a setting of the broker (`brokerDraining`), so that any admin tool can set it; this
command also waits until it may be stopped without a send that fails (`node.draining`).
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Final

from gantrymq.cli.arguments import FAILED, PROGRAM, SUCCESS, CommandParser
from gantrymq.cli.given import add_tls_options, cluster_tls

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.wire.command import Command

DRAIN: Final = f"""\
Get a running broker ready to be stopped, and wait until no client sends to it any more.

  {PROGRAM} broker drain 10.0.0.1:10911      another member of its group becomes master, or clients
                                          go to other masters
  {PROGRAM} broker undrain 10.0.0.1:10911    take part again; a restart does not do it

With access control, GANTRYMQ_ACCESS_KEY and GANTRYMQ_SECRET_KEY name an administrator.

exit status: 0 it may be stopped, 1 it could not be drained, 2 bad usage"""
DRAIN_S_MAX: Final = 90


def main(arguments: Sequence[str]) -> int:
    """Run `gantrymq broker drain` or `undrain`; return the exit status."""
    what = arguments[0]
    parser = CommandParser(prog=f"{PROGRAM} broker {what}", description=DRAIN, allow_abbrev=False)
    parser.add_argument("address", help="host:port of the broker")
    if what == "drain":
        parser.add_argument("--timeout", type=float, default=DRAIN_S_MAX, help="seconds to wait")
        parser.add_argument(
            "--alone", action="store_true", help="even if no other broker can take its sends"
        )
    add_tls_options(parser)
    chosen = parser.parse_args(arguments[1:])
    from gantrymq.errors import GantryError  # noqa: PLC0415
    from gantrymq.node import draining  # noqa: PLC0415

    try:
        sign, tls = _signing(), cluster_tls(chosen)
        if what == "drain":
            asyncio.run(draining.drain(
                chosen.address, chosen.timeout, alone=chosen.alone, sign=sign, tls=tls
            ))  # fmt: skip
            sys.stdout.write(f"{chosen.address} is drained: it may be stopped\n")
        else:
            asyncio.run(draining.undrain(chosen.address, sign, tls))
            sys.stdout.write(f"{chosen.address} takes part again\n")
    except GantryError as error:
        sys.stderr.write(f"{PROGRAM} broker {what}: {error}\n")
        return FAILED
    return SUCCESS


def _signing() -> Callable[[Command], Command] | None:
    """Return what signs requests, if the environment has an account."""
    from gantrymq.client.settings import credentials_of  # noqa: PLC0415
    from gantrymq.wire.signing import signed  # noqa: PLC0415

    access = os.environ.get("GANTRYMQ_ACCESS_KEY")
    credentials = credentials_of(access, os.environ.get("GANTRYMQ_SECRET_KEY"), None)
    if credentials is None:
        return None
    return lambda request: signed(credentials, request)
