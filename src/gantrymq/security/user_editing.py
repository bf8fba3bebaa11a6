"""Changing a file of users, also under a server that runs: locked, checked, whole or not at all.

Two who change it at once wait for each other (a lock of its directory); the server reads what is
there after a change, never a part of it. What could not be read again is not written. The key file
is made for the first secret, and never replaced as a whole: without it the secrets that are there
are lost. `rekey` changes it in three steps, each of them a file that is replaced at once: the new
key beside the old one, the secrets under the new one, the old one gone. Whatever stops it, the two
files belong together, and the next `rekey` goes on.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue, shown
from gantrymq.security import user_file
from gantrymq.security.account_file import check_key
from gantrymq.security.accounts import Secret
from gantrymq.security.sealing import (
    begin_change,
    end_change,
    make_key,
    new_key_of,
    read_key,
)
from gantrymq.security.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gantrymq.security.sealing import SealKey
    from gantrymq.security.user_file import UserEntry, UserFile

GENERATED_BYTES: Final = 32
"""Of randomness in a secret that is made here."""


def generated_secret() -> Secret:
    """Return a secret that nobody can guess, and that a command line takes: no dash begins it."""
    return Secret(secrets.token_hex(GENERATED_BYTES))


class UserEditing:
    """One file of users and its key."""

    def __init__(self, path: Path, key_path: Path) -> None:
        self._path = path
        self._key_path = key_path

    def read(self) -> UserFile:
        """Return what the file says; nothing if there is none.

        Raises:
            InvalidValue: it cannot be read.
        """
        return user_file.read(self._content())

    @property
    def has_comments(self) -> bool:
        """Tell whether a change would lose comments."""
        head = user_file.HEAD.encode().splitlines()
        lines = self._content().splitlines()
        return any(line.lstrip().startswith(b"#") and line not in head for line in lines)

    def add(self, name: str, entry: UserEntry, secret: Secret | None) -> UserFile:
        """Add a user; return what the file says then.

        Raises:
            InvalidValue: there is such a user, or the file or the key cannot be used.
            OSError: the disk refuses.
        """
        user_file.check_name(name)
        with self._changing() as file:
            if name in file.users:
                raise InvalidValue(
                    f"{self._path} has a user {shown(name)} already; `gantrymq user passwd` gives "
                    "another secret, and the rest is changed in the file"
                )
            user_file.check_role(entry.role, file.roles, "the role")
            if secret is not None:
                entry = replace(entry, sealed=self._sealed(file, name, secret))
            return self._write(file.with_user(name, entry))

    def remove(self, name: str, *, even_last_admin: bool = False) -> UserFile:
        """Remove a user; return what the file says then.

        Raises:
            InvalidValue: there is none, or it is the last administrator.
            OSError: the disk refuses.
        """
        with self._changing() as file:
            self._find(file, name)
            if file.admins() == [name] and not even_last_admin:
                raise InvalidValue(
                    f"{shown(name)} is the only admin of {self._path}: a server would not take the "
                    "file; add another one first, or say --force where an account file has one"
                )
            return self._write(file.without(name))

    def change_secret(self, name: str, secret: Secret) -> UserFile:
        """Give a user another secret; the old one holds no longer.

        Raises:
            InvalidValue: there is no such user, or the file or the key cannot be used.
            OSError: the disk refuses.
        """
        with self._changing() as file:
            entry = self._find(file, name)
            others = file.without(name)
            entry = replace(entry, sealed=self._sealed(others, name, secret))
            return self._write(file.with_user(name, entry))

    def rekey(self) -> tuple[int, bool]:
        """Seal all secrets with a new key; return how many, and whether it ended an earlier change.

        Raises:
            InvalidValue: there are none, or the file or the key cannot be used.
            OSError: the disk refuses; what is there can be used, and this be called again.
        """
        with self._changing() as file:
            opened = _opened(file, read_key(self._key_path)) if _has_secrets(file) else {}
            if not opened:
                raise InvalidValue(f"{self._path} has no secrets that a key would be for")
            key, was_begun = begin_change(self._key_path)
            changed = file
            for name, secret in opened.items():
                entry = replace(file.users[name], sealed=key.seal(name, secret))
                changed = changed.with_user(name, entry)
            self._write(changed)
            now = _opened(self.read(), new_key_of(self._key_path))
            if now != opened:
                raise InvalidValue(f"{self._path} is not what was written; the old key is kept")
            end_change(self._key_path)
            return len(opened), was_begun

    def _find(self, file: UserFile, name: str) -> UserEntry:
        found = file.users.get(name)
        if found is None:
            known = ", ".join(sorted(file.users)) or "nobody"
            raise InvalidValue(f"{self._path} has no user {shown(name)}; it has {shown(known)}")
        return found

    def _content(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                return file.read(user_file.FILE_BYTES_MAX + 1)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise InvalidValue(f"{self._path} cannot be read: {error.strerror}") from None

    @contextmanager
    def _changing(self) -> Iterator[UserFile]:
        """Give the file to one who changes it, and to nobody else meanwhile."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        directory = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            try:
                file = self.read()
            except InvalidValue as error:
                raise InvalidValue(f"{self._path}: {error}") from None
            yield file
        finally:
            os.close(directory)

    def _sealed(self, others: UserFile, name: str, secret: Secret) -> str:
        check_key("the secret", secret.reveal(), f"the one of {shown(name)}")
        return self._key(others).seal(name, secret)

    def _key(self, others: UserFile) -> SealKey:
        """Return the key; one is made only where no secret needs another."""
        if not _has_secrets(others):
            return make_key(self._key_path)
        key = read_key(self._key_path)
        user_file.built_users(others, key)  # a key that does not fit would make two kinds of them
        return key

    def _write(self, file: UserFile) -> UserFile:
        content = user_file.written(file)
        if user_file.read(content) != file:
            raise InvalidValue(f"{self._path} would not be read as it is written")
        write_whole(self._path, content)
        return file


def _has_secrets(file: UserFile) -> bool:
    return any(entry.sealed for entry in file.users.values())


def _opened(file: UserFile, key: SealKey) -> dict[str, Secret]:
    """Return the secrets of those who have one."""
    users = user_file.built_users(file, key).items()
    return {name: user.secret for name, user in users if user.secret is not None}
