"""Who may log in: names, roles, and passwords as salted scrypt hashes, in one file of mode 0600.

The file is read again when it has changed, so that a command beside the running dashboard takes
effect at once. Whoever's entry has changed is logged out: a session holds the entry's mark.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import re
import secrets
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.errors import GantryError, InvalidValue
from gantrymq.model.roles import Role

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE: Final = "accounts.json"
COST: Final = 2**14
BLOCK: Final = 8
SALT_BYTES: Final = 16
HASH_BYTES: Final = 32
PASSWORD_CHARACTERS_MIN: Final = 8
PASSWORD_CHARACTERS_MAX: Final = 256
ACCOUNTS_MAX: Final = 1_000
FILE_BYTES_MAX: Final = 1024 * 1024
LOCK_TRIES_MAX: Final = 250
LOCK_WAIT_S: Final = 0.02
_NAME: Final = re.compile(r"[A-Za-z0-9._@-]{1,64}")


class Account(msgspec.Struct, frozen=True):
    """An entry of the file."""

    name: str
    role: Role
    salt: str
    hash: str
    cost: int = COST

    @property
    def mark(self) -> str:
        """Return what changes whenever the entry does."""
        return f"{self.salt}:{self.role.text}"


class BadAccounts(GantryError):
    """The file cannot be used."""


NOBODY: Final = Account("", Role.VIEWER, "00" * SALT_BYTES, "00" * HASH_BYTES)
"""Whose hash is computed for a name that there is not, so that a guesser learns nothing."""


def derive(password: str, salt: bytes, cost: int = COST) -> bytes:
    """Return the hash of a password. Takes a twentieth of a second, on purpose."""
    return hashlib.scrypt(
        password.encode(), salt=salt, n=cost, r=BLOCK, p=1, dklen=HASH_BYTES, maxmem=64 << 20
    )


def make_account(name: str, role: Role, password: str) -> Account:
    """Return a new entry.

    Raises:
        InvalidValue: the name or the password will not do.
    """
    if _NAME.fullmatch(name) is None:
        raise InvalidValue(
            f"{name[:64]!r} cannot be a name: give up to 64 letters, digits and . _ @ -"
        )
    if not PASSWORD_CHARACTERS_MIN <= len(password) <= PASSWORD_CHARACTERS_MAX:
        raise InvalidValue(
            f"a password has {PASSWORD_CHARACTERS_MIN} to {PASSWORD_CHARACTERS_MAX} characters,"
            f" not {len(password)}"
        )
    salt = secrets.token_bytes(SALT_BYTES)
    return Account(name, role, salt.hex(), derive(password, salt).hex())


def is_right(account: Account, password: str) -> bool:
    """Tell whether a password is the account's."""
    if len(password) > PASSWORD_CHARACTERS_MAX:
        return False
    found = derive(password, bytes.fromhex(account.salt), account.cost)
    return hmac.compare_digest(found, bytes.fromhex(account.hash))


class Accounts:
    """The file, and what was read of it last."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        # One value, since a thread that changes a password reads the file too.
        self._last: tuple[tuple[int, int, int] | None, dict[str, Account]] = None, {}

    def get(self, name: str) -> Account | None:
        """Return an account, or None."""
        return self.all().get(name)

    def all(self) -> dict[str, Account]:
        """Return all accounts by name, as the file has them now.

        Raises:
            BadAccounts: it cannot be read.
        """
        try:
            state = self.path.stat()
        except FileNotFoundError:
            self._last = None, {}
            return {}
        except OSError as error:
            raise BadAccounts(f"{self.path}: {error.strerror or error}") from None
        stamp = state.st_mtime_ns, state.st_size, state.st_ino
        last, found = self._last
        if stamp != last:
            found = self._read(state.st_size)
            self._last = stamp, found
        return found

    def _read(self, size: int) -> dict[str, Account]:
        if size > FILE_BYTES_MAX:
            raise BadAccounts(f"{self.path} has {size} bytes: it is no file of accounts")
        try:
            listed = msgspec.json.decode(self.path.read_bytes(), type=list[Account])
        except OSError as error:
            raise BadAccounts(f"{self.path}: {error.strerror or error}") from None
        except (ValueError, RecursionError) as error:  # also what is no UTF-8
            raise BadAccounts(f"{self.path} is no file of accounts: {error}") from None
        return {each.name: each for each in listed}

    def put(self, account: Account) -> None:
        """Add an account, or change it.

        Raises:
            InvalidValue: there are too many.
        """
        with self._locked() as listed:
            told = {**listed, account.name: account}
            if len(told) > ACCOUNTS_MAX:
                raise InvalidValue(f"there are {ACCOUNTS_MAX} accounts already: delete one first")
            self._write(told)

    def change(self, account: Account, mark: str) -> None:
        """Change an account that still is what it was when the change was begun.

        Raises:
            InvalidValue: somebody else has deleted or changed it meanwhile.
        """
        with self._locked() as listed:
            known = listed.get(account.name)
            if known is None or known.mark != mark:
                raise InvalidValue(f"the account {account.name!r} was changed meanwhile")
            self._write({**listed, account.name: account})

    def delete(self, name: str) -> None:
        """Delete an account.

        Raises:
            InvalidValue: there is none of that name.
        """
        with self._locked() as listed:
            if listed.pop(name, None) is None:
                raise InvalidValue(f"there is no account {name!r}")
            self._write(listed)

    @contextmanager
    def _locked(self) -> Iterator[dict[str, Account]]:
        """Give what the file has, while no other process and no other thread changes it.

        The lock is on the folder: the file itself is another one after each change.

        Raises:
            BadAccounts: somebody holds the lock for long, or the file cannot be read.
        """
        make_folder(self.path.parent)
        handle = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._lock(handle)
            try:
                size = self.path.stat().st_size
            except FileNotFoundError:
                yield {}
            else:
                yield self._read(size)
        finally:
            os.close(handle)

    def _lock(self, handle: int) -> None:
        pause = threading.Event()  # nobody sets it
        for _ in range(LOCK_TRIES_MAX):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pause.wait(LOCK_WAIT_S)
            else:
                return
        raise BadAccounts(f"{self.path} is being changed by another process: try again")

    def _write(self, accounts: dict[str, Account]) -> None:
        """Write the file, whole or not at all."""
        make_folder(self.path.parent)
        beside = self.path.with_name(f".{FILE}.{secrets.token_hex(4)}")
        text = msgspec.json.format(msgspec.json.encode(list(accounts.values())), indent=2)
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(text + b"\n")
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)


def make_folder(path: Path) -> None:
    """Make a folder that nobody else looks into."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)


def generated_password() -> str:
    """Return a password that nobody guesses and a person can type: 20 letters, about 94 bits."""
    letters = "abcdefghijkmnpqrstuvwxyz23456789"
    text = "".join(secrets.choice(letters) for _ in range(20))
    return "-".join(text[at : at + 5] for at in range(0, 20, 5))
