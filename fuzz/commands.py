"""Command lines: whatever the words are, one sentence and a status, never a trace.

No command reaches anything: servers only print their settings, every connection is refused before
it is tried, and no word leads out of a folder of its own.
"""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from fuzz.twins import DisagreementError
from gantrymq.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator

WORDS_MAX: Final = 20
NOWHERE: Final = "127.0.0.1:1"
FILES_MAX: Final = 20
"""In the folder; then it is emptied."""
PRINTED: Final = ("broker", "namesrv")
"""Servers; they are told to print their settings and leave."""
ASKING: Final = ("topic", "group", "message", "dlq", "cluster", "client", "explain", "doctor",
                 "admin", "apply")  # fmt: skip
"""Those that ask a cluster."""
LOCAL: Final = ("store", "user", "completion")
ROLES: Final = (*PRINTED, *ASKING, *LOCAL, "")
LEFT_ALONE: Final = frozenset({"demo", "drain", "undrain", "startMonitoring"})
"""Commands that start processes, wait for somebody who is there, or have no end."""


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="gantrymq-fuzz-")


def arguments(data: bytes) -> str:
    """Run a command line: the first byte says which command, and NUL stands between words."""
    role = ROLES[(data[0] if data else 0) % len(ROLES)]
    # As the system hands them to Python: bytes that are no UTF-8 become halves of pairs.
    words = [os.fsdecode(word) for word in data[1:].split(b"\0") if word][:WORDS_MAX]
    words = [word.replace("/", "x").replace("..", "x") for word in words]
    if any(word in LEFT_ALONE for word in words):
        return "left alone"
    line = [role, *words] if role else words
    if role in PRINTED:
        line.append("-p")
    elif role in ASKING:
        line += ["-n", NOWHERE, "--timeout", "1"]
    elif not role:
        line = [word for word in line if word.startswith("-")]
    return f"{role} {_run(line)}"


async def _refused(*_arguments: object, **_options: object) -> NoReturn:
    raise ConnectionRefusedError("nobody is asked here")


@contextmanager
def _apart() -> Iterator[None]:
    """Be in a folder of one's own, without a network and without a terminal."""
    folder = Path(_folder().name)
    if len(list(folder.iterdir())) > FILES_MAX:
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    before = Path.cwd(), sys.stdin, asyncio.BaseEventLoop.create_connection
    os.chdir(folder)
    sys.stdin = io.StringIO()
    asyncio.BaseEventLoop.create_connection = _refused  # type: ignore[method-assign]
    try:
        yield
    finally:
        os.chdir(before[0])
        sys.stdin = before[1]
        asyncio.BaseEventLoop.create_connection = before[2]  # type: ignore[method-assign]


def _run(line: list[str]) -> str:
    raw, told = io.BytesIO(), io.BytesIO()
    # As a terminal has them: what cannot be written fails on one, and is escaped on the other.
    out = io.TextIOWrapper(raw, "utf-8")
    said = io.TextIOWrapper(told, "utf-8", errors="backslashreplace")
    try:
        with _apart(), redirect_stdout(out), redirect_stderr(said):
            status = main(line)
    except SystemExit as error:
        status = int(error.code or 0)
    out.flush()
    said.flush()
    text = told.getvalue().decode() or raw.getvalue().decode()
    if status not in {0, 1, 2} or (status and not text) or "Traceback" in text:
        raise DisagreementError(f"status {status} and {text!r}")
    return f"{status} {text[:60]}"


TARGETS: Final = {"arguments": arguments}
