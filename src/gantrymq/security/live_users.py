"""The users of a server: read from their file, and looked at again while it runs.

Once a second whoever owns the clock calls `tick`. A file that has changed, or whose key has, holds
as soon as it can be used as a whole. Otherwise the old users stay and the log says why, also where
the file has gone: a slip of an editor must not lock everybody out, and must not let anybody in. A
file that was not there when the server started is taken when it comes.

Owned by the event loop's thread; the file is small, and opening a secret takes microseconds.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue
from gantrymq.security import user_file
from gantrymq.security.account_files import YOUNG_MS, Stamp
from gantrymq.security.sealing import read_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from gantrymq.clock import Clock
    from gantrymq.security.sealing import SealKey
    from gantrymq.security.users import User

log = logging.getLogger(__name__)

FILE_NAME: Final = "users.toml"
KEY_SUFFIX: Final = ".key"


class LiveUsers:
    """The users that hold now."""

    def __init__(self, path: Path, key_path: Path, clock: Clock, *, required: bool) -> None:
        """Read the file; unless it is `required` there may be none yet.

        Raises:
            InvalidValue: it is required and missing, or it cannot be used.
        """
        self.path = path
        self._key_path = key_path
        self._clock = clock
        self.check: Callable[[Mapping[str, User]], None] = _anything
        """Asked about new users before they hold; raises InvalidValue where they may not."""
        self.users: Mapping[str, User] = {}
        self._content: bytes | None = None
        self._failed: tuple[Stamp | None, Stamp | None] | None = None
        """Both files as they looked when they could not be taken over."""
        self._complaint = ""
        self._stamps = self._look()
        if self._stamps[0] is not None:
            self._content, self.users = self._load()
        elif required:
            raise InvalidValue(
                f"usersFile is {path}, and there is no such file; `gantrymq user add NAME --role "
                f"admin --file {path}` makes it"
            )

    @property
    def is_there(self) -> bool:
        """Tell whether there is a file, of users or of none."""
        return self._content is not None

    def tick(self) -> bool:
        """Take over what has changed; tell whether anything has."""
        stamps = self._look()
        if stamps == self._failed or not self._may_differ(stamps):
            return False
        try:
            if stamps[0] is None:
                raise InvalidValue(f"{self.path} has gone")  # noqa: TRY301 - said as the others
            content, users = self._load()
            if content == self._content and users == self.users:
                self._stamps, self._failed, self._complaint = stamps, None, ""
                return False
            self.check(users)
        except InvalidValue as error:
            self._complain(stamps, str(error))
            return False
        self._content, self.users, self._stamps = content, users, stamps
        self._failed, self._complaint = None, ""
        log.warning("the file of users has changed: %d users", len(users))
        return True

    def _may_differ(self, stamps: tuple[Stamp | None, Stamp | None]) -> bool:
        if stamps[0] is None and self._content is None:
            return False
        young_ns = (self._clock.now_ms() - YOUNG_MS) * 1_000_000
        return stamps != self._stamps or any(
            stamp is not None and stamp.modified_ns > young_ns for stamp in stamps
        )

    def _complain(self, stamps: tuple[Stamp | None, Stamp | None], problem: str) -> None:
        """Say once why the users stay as they are."""
        self._failed = stamps
        if problem != self._complaint:
            self._complaint = problem
            log.error("the file of users is not taken over, and the old users stay: %s", problem)

    def _look(self) -> tuple[Stamp | None, Stamp | None]:
        return _stamp(self.path), _stamp(self._key_path)

    def _load(self) -> tuple[bytes, dict[str, User]]:
        try:
            with self.path.open("rb") as file:
                content = file.read(user_file.FILE_BYTES_MAX + 1)
        except OSError as error:
            raise InvalidValue(f"{self.path} cannot be read: {error.strerror}") from None
        try:
            found = user_file.read(content)
            key: SealKey | None = None
            if any(entry.sealed for entry in found.users.values()):
                key = read_key(self._key_path)
            users = user_file.built_users(found, key)
        except InvalidValue as error:
            raise InvalidValue(f"{self.path}: {error}") from None
        return content, users


def key_path_of(path: Path) -> Path:
    """Return where the key of a file of users is, unless it is said: beside it."""
    return path.with_suffix(KEY_SUFFIX)


def _anything(_users: Mapping[str, User]) -> None:
    """Have nothing against it."""


def _stamp(path: Path) -> Stamp | None:
    try:
        seen = path.stat()
    except OSError:
        return None
    return Stamp(seen.st_mtime_ns, seen.st_size, seen.st_ino)
