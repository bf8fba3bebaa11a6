"""A broker and its name server as somebody on the network sees them, and the files around them.

The folder has a file that nobody may touch beside the data; `files` says what is there, so that a
test can show that an attack changed nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Self

from gantrymq.testing.threaded import ThreadedBroker
from support.nodes import ask
from support.samples import send_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

    from gantrymq.wire.command import Command

DATA: Final = "a/b/c/data"
"""Deep enough that a name with several steps up still ends inside of the folder that is watched."""
PROGRAM_EVENTS: Final = (
    "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile", "os.system",
    "pty.spawn",
)  # fmt: skip
"""What the interpreter says before it starts anything."""
EVIL_NAMES: Final = (
    "../evil",
    "../../evil",
    "../../../../evil",
    "/evil",
    "a/../../evil",
    "..",
    ".",
    "evil\0",
    "..\\evil",
    "%2e%2e/evil",
    "evil\n",
)
"""Names that would leave a directory, or be no name at all, if they were made paths of."""


class Site:
    """A broker with its name server, and who attacks them."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.data = folder / DATA
        self.data.mkdir(parents=True)
        (folder / "a" / "private.txt").write_text("nobody touches this")
        self.broker = ThreadedBroker(directory=self.data, settings=settings)

    def __enter__(self) -> Self:
        """Start."""
        self.broker.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        self.broker.__exit__(kind, error, trace)

    def ask(self, code: int, fields: Mapping[str, str] | None = None, body: bytes = b"") -> Command:
        """Ask the broker over a connection of its own."""
        return self._ask(self.broker.address, code, fields, body)

    def ask_namesrv(
        self, code: int, fields: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Command:
        """Ask the name server over a connection of its own."""
        return self._ask(self.broker.namesrv, code, fields, body)

    @staticmethod
    def _ask(address: str, code: int, fields: Mapping[str, str] | None, body: bytes) -> Command:
        port = int(address.rpartition(":")[2])
        return asyncio.run(ask(port, code, fields or {}, body))

    def outside(self) -> dict[str, str]:
        """Return what lies in the folder outside of the data, and its digest."""
        return {
            name: digest for name, digest in files(self.folder).items() if not name.startswith(DATA)
        }


_started: list[str] = []
_hooks: list[object] = []
_is_watching = False


def _note(event: str, _arguments: object) -> None:
    if _is_watching and event.startswith(PROGRAM_EVENTS):
        _started.append(event)


@contextmanager
def watched_for_programs() -> Iterator[list[str]]:
    """Give a list of what this process starts meanwhile: programs, shells, copies of itself."""
    global _is_watching  # noqa: PLW0603  (a hook of the interpreter stays for ever, and there is one)
    if _note not in _hooks:
        sys.addaudithook(_note)
        _hooks.append(_note)
    _started.clear()
    _is_watching = True
    try:
        yield _started
    finally:
        _is_watching = False


def sending(topic: str, properties: str = "") -> dict[str, str]:
    """Return the fields of a send to queue 0."""
    fields = send_fields(b=topic, e="0", i=properties)
    return {name: str(value) for name, value in fields.items()}


def files(folder: Path) -> dict[str, str]:
    """Return every path below a folder, with a digest of what a file holds."""
    return {
        path.relative_to(folder).as_posix(): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "directory"
        )
        for path in sorted(folder.rglob("*"))
    }
