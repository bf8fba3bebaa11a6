"""Where groups were before they were moved from the dashboard: a bounded number of small files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.admin.offsets import Undo
from gantrymq.dashboard.accounts import make_folder
from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from pathlib import Path

FILES_MAX: Final = 200
_ID: Final = re.compile(r"[0-9]{1,20}")


class UndoFiles:
    """The files, named by the time of the move."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, undo: Undo) -> str:
        """Keep where a group was; return the name of it.

        Raises:
            InvalidValue: it cannot be written.
        """
        try:
            make_folder(self._folder)
            number = undo.made_at_ms
            while (path := self._folder / f"{number}.json").exists():
                number += 1
            path.write_bytes(msgspec.json.encode(undo) + b"\n")
            path.chmod(0o600)
            for old in self._files()[FILES_MAX:]:
                old.unlink(missing_ok=True)
        except OSError as error:
            raise InvalidValue(f"{error.strerror or error}; nothing was moved") from None
        return str(number)

    def drop(self, name: str) -> None:
        """Forget one: what it is for did not happen."""
        (self._folder / f"{name}.json").unlink(missing_ok=True)

    def get(self, name: str) -> Undo:
        """Return one.

        Raises:
            InvalidValue: there is none.
        """
        path = self._folder / f"{name}.json"
        if _ID.fullmatch(name) is None or not path.is_file():
            raise InvalidValue(f"there is nothing to undo under {name[:64]!r}")
        try:
            return msgspec.json.decode(path.read_bytes(), type=Undo)
        except (OSError, ValueError, RecursionError) as error:  # also what is no UTF-8
            raise InvalidValue(f"{path} cannot be read: {error}") from None

    def of_group(self, group: str) -> list[tuple[str, Undo]]:
        """Return those of a group, newest first; files that cannot be read are left out."""
        found = []
        for path in self._files():
            try:
                undo = self.get(path.stem)
            except InvalidValue:
                continue
            if undo.group == group:
                found.append((path.stem, undo))
        return found

    def _files(self) -> list[Path]:
        if not self._folder.is_dir():
            return []
        found = [each for each in self._folder.iterdir() if _ID.fullmatch(each.stem)]
        return sorted(found, key=lambda each: int(each.stem), reverse=True)
