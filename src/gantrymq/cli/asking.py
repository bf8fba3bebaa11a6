"""Runs one command against a cluster: opens a session, waits, prints, and turns errors into words.

Status 0: done. 1: it failed, or a part of it did: what was found is printed all the same, and what
was not is named on standard error (with `--json`, beside what was found). 2: bad usage.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from gantrymq.cli.arguments import BAD_USAGE, FAILED
from gantrymq.cli.given import Given, session_of
from gantrymq.cli.output import show
from gantrymq.errors import GantryError, InvalidValue, visible

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Awaitable, Callable

    from gantrymq.admin.session import Session
    from gantrymq.cli.output import Answer

Command = "Callable[[Session, Given], Awaitable[Answer]]"


def run(
    program: str,
    chosen: Namespace,
    command: Callable[[Session, Given], Awaitable[Answer]],
    interval_s: float | None = None,
) -> int:
    """Run a command to its end, or every `interval_s` until Ctrl-C; return the exit status."""
    try:
        return asyncio.run(_run(chosen, command, interval_s))
    except InvalidValue as error:
        return _fail(program, error, BAD_USAGE, as_json=chosen.json)
    except GantryError as error:
        return _fail(program, error, FAILED, as_json=chosen.json)
    except KeyboardInterrupt:
        return FAILED


async def _run(
    chosen: Namespace,
    command: Callable[[Session, Given], Awaitable[Answer]],
    interval_s: float | None,
) -> int:
    session = session_of(chosen)
    async with session:
        given = Given(chosen, session.clock)
        while True:
            status = show(await command(session, given), as_json=chosen.json)
            if interval_s is None:
                return status
            sys.stdout.flush()
            await asyncio.sleep(interval_s)


def _fail(program: str, error: GantryError, status: int, *, as_json: bool) -> int:
    text = "; ".join([*str(error).splitlines(), *getattr(error, "__notes__", [])])
    if as_json:
        import json  # noqa: PLC0415

        told = {"error": {"kind": type(error).__name__, "text": text}}
        code = getattr(error, "code", None)
        if code is not None:
            told["error"]["code"] = int(code)  # type: ignore[assignment]
        sys.stdout.write(json.dumps(told, ensure_ascii=False) + "\n")
    sys.stderr.write(f"{program}: {visible(text)}\n")
    return status
