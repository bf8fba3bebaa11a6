"""What every table with a file under `config/` has: whether it has changed, and its text.

A table is changed on the event loop and written by a worker. Between the two stands `snapshot`: it
takes a picture in next to no time and returns a function that turns the picture into bytes, which
may run on any thread. `changes` counts, so that a change made while an older picture was being
written is never taken for saved.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar, cast

import msgspec

from gantrymq.wire.bodies.codec import JsonBody
from gantrymq.wire.bodies.reading import read

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_BARE_KEY: Final = re.compile(rb"([{,][ \t\r\n]*+)(-?[0-9]++)[ \t\r\n]*+:")
"""An integer as a key. Quotes put into the middle of a text leave no JSON, so none goes unseen."""


class SavedState(ABC):
    """A table with a file of its own. Owned by one task, except what `snapshot` returns."""

    file_name: ClassVar[str]
    """In the store's `config/`."""
    is_journaled: ClassVar[bool] = False
    """Whether its changes are in the log, too, where there is a journal."""
    is_checked: ClassVar[bool] = False
    """Whether its file ends with a check sum. A changed digit of an offset is as good a number as
    the one before, and whoever believes it passes over messages. Files that operators change by
    hand have none."""

    def __init__(self) -> None:
        self._changes = 0
        self._saved = 0

    @property
    def changes(self) -> int:
        """Return how many changes there have been."""
        return self._changes

    @property
    def is_dirty(self) -> bool:
        """Say whether something is not in the file."""
        return self.changes != self._saved

    def mark_saved(self, changes: int) -> None:
        """Learn that everything up to a count of changes is in the file."""
        self._saved = max(self._saved, changes)

    def want_saved(self) -> None:
        """Count as changed although nothing has: the file is to be written anew."""
        self._changes += 1

    def encode(self) -> bytes:
        """Return the content of the file."""
        return self.snapshot()()

    @abstractmethod
    def snapshot(self) -> Callable[[], bytes]:
        """Take a picture of the table; the function returned makes bytes of it, on any thread."""

    @abstractmethod
    def load(self, content: bytes) -> None:
        """Take over the content of a file; nothing is changed if it raises.

        Raises:
            ContentError: it is not the file it should be; names the field.
        """


def with_quoted_keys(content: bytes) -> bytes:
    """Return JSON whose integer keys have the quotes that Apache's writer leaves out."""
    return _BARE_KEY.sub(rb'\1"\2":', content)


def read_file(kind: type[T], content: bytes, name: str) -> T:
    """Return a config file as a value.

    A body from the network has a bound on its entries. A file of ours is as large as we let the
    table become, and must be readable whatever that is; so the bound is left out where the text is
    strict JSON but for its keys. Whatever else fastjson reads goes the way of bodies.

    Raises:
        ContentError: it is not JSON, or not of this type; names the field.
    """
    try:
        tree: object = msgspec.json.decode(with_quoted_keys(content))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return JsonBody(kind, name).decode(content)
    return cast("T", read(kind, tree, name))
