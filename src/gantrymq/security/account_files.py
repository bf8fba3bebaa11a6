"""The account files of a server: found, read together, looked at again, and written.

    PLACE/plain_acl.yml      Apache's file
    PLACE/acl/**/*.yml       more of them, each with accounts of its own

PLACE may also name one file. Once a second whoever owns the clock calls `tick`, which looks whether
a file has another time, length or number, has come or has gone; one that was written a moment ago
is read anyway, for a second change can have the same time. New files hold as soon as all of them
can be read. Otherwise the old rules stay, and the log says why: a slip of an editor must not lock
everybody out, and must not let anybody in.

Owned by the event loop's thread; the files are small, and reading them is a matter of microseconds.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import InvalidValue, shown
from gantrymq.security import account_file
from gantrymq.security.account_file import FILE_BYTES_MAX, AccountFile
from gantrymq.security.accounts import Account, Rules
from gantrymq.security.addresses import Addresses
from gantrymq.security.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from gantrymq.clock import Clock

log = logging.getLogger(__name__)

PLAIN_FILE: Final = "plain_acl.yml"
MORE_FOLDER: Final = "acl"
SUFFIXES: Final = frozenset({".yml", ".yaml"})
FILES_MAX: Final = 1000
YOUNG_MS: Final = 3_000
"""A file that was written so recently may be written again without looking different."""
OTHERS_MAY_READ: Final = 0o077


class Stamp(NamedTuple):
    """How a file looks from outside."""

    modified_ns: int
    size: int
    number: int


class Read(NamedTuple):
    """One file as it was read."""

    content: bytes
    file: AccountFile


class AccountFiles:
    """All account files of one server, and the rules that they make."""

    def __init__(self, place: Path, clock: Clock, *, required: bool = True) -> None:
        """Read the files; where they are not `required` there may be none to begin with.

        Raises:
            InvalidValue: there is none, one cannot be read, or together they make no sense.
        """
        self._place = place
        self._clock = clock
        self._required = required
        self.check: Callable[[Rules], None] = _anything
        """Asked about new rules before they hold; raises InvalidValue where they may not."""
        self._stamps = self._look()
        self._read = self._load(self._stamps)
        self._failed: Mapping[Path, Stamp] | None = None
        """The files as they looked when they could not be taken over."""
        self._complaint = ""
        self.rules = joined_rules({path: one.file for path, one in self._read.items()})
        self._warn()

    @property
    def main_file(self) -> Path:
        """Return the file that new accounts go to."""
        is_file = self._place.suffix in SUFFIXES
        return self._place if is_file else self._place / PLAIN_FILE

    @property
    def files(self) -> dict[Path, AccountFile]:
        """Return what each file says."""
        return {path: one.file for path, one in self._read.items()}

    def account(self, access_key: str) -> Account:
        """Return an account.

        Raises:
            InvalidValue: there is none with this key.
        """
        found = self.rules.accounts.get(access_key)
        if found is None:
            raise InvalidValue(
                f"no account of {self._place} has the access key {shown(access_key)}"
            )
        return found

    # -- looking again ----------------------------------------------------------------------------

    def tick(self) -> bool:
        """Take over what has changed; tell whether anything has."""
        try:
            stamps = self._look()
            if stamps == self._failed or not self._may_differ(stamps):
                return False
            fresh = self._load(stamps)
            same = {path: one.content for path, one in fresh.items()} == {
                path: one.content for path, one in self._read.items()
            }
            self._stamps = stamps
            if same:
                self._failed, self._complaint = None, ""
                return False
            rules = joined_rules({path: one.file for path, one in fresh.items()})
            self.check(rules)
        except InvalidValue as error:
            self._complain(str(error))
            return False
        self._read, self.rules = fresh, rules
        self._failed, self._complaint = None, ""
        log.warning("the account files have changed: %d accounts", len(rules.accounts))
        self._warn()
        return True

    def _may_differ(self, stamps: Mapping[Path, Stamp]) -> bool:
        young_ns = (self._clock.now_ms() - YOUNG_MS) * 1_000_000
        return stamps != self._stamps or any(
            stamp.modified_ns > young_ns for stamp in stamps.values()
        )

    def _complain(self, problem: str) -> None:
        """Say once why the rules stay as they are."""
        try:
            self._failed = self._look()
        except InvalidValue:
            self._failed = None
        if problem != self._complaint:
            self._complaint = problem
            log.error("the account files are not taken over, and the old rules stay: %s", problem)

    def _look(self) -> dict[Path, Stamp]:
        """Return the files that there are.

        Raises:
            InvalidValue: none, or too many, or a directory cannot be read.
        """
        found: dict[Path, Stamp] = {}
        try:
            for path in self._paths():
                seen = path.stat()
                found[path] = Stamp(seen.st_mtime_ns, seen.st_size, seen.st_ino)
                if len(found) > FILES_MAX:
                    raise InvalidValue(f"{self._place} has more than {FILES_MAX} account files")
        except OSError as error:
            raise InvalidValue(f"{error.filename} cannot be read: {error.strerror}") from None
        if not found and self._required:
            raise InvalidValue(
                f"there is no account file: {self.main_file} is missing, and so is every *.yml in "
                f"{self.main_file.parent / MORE_FOLDER}; `gantrymq user add` makes a file of users"
            )
        self._required = self._required or bool(found)  # what was there must not get lost
        return found

    def _paths(self) -> Iterator[Path]:
        if self.main_file.is_file():
            yield self.main_file
        more = self._place / MORE_FOLDER
        if self.main_file != self._place and more.is_dir():
            yield from sorted(
                path for path in more.rglob("*") if path.suffix in SUFFIXES and path.is_file()
            )

    def _load(self, stamps: Mapping[Path, Stamp]) -> dict[Path, Read]:
        found = {}
        for path in stamps:
            try:
                with path.open("rb") as file:
                    content = file.read(FILE_BYTES_MAX + 1)
                found[path] = Read(content, account_file.read(content))
            except OSError as error:
                raise InvalidValue(f"{path} cannot be read: {error.strerror}") from None
            except InvalidValue as error:
                raise InvalidValue(f"{path}: {error}") from None
        return found

    def _warn(self) -> None:
        """Say what is allowed and hardly meant."""
        for path in self._read:
            with suppress(OSError):
                if path.stat().st_mode & OTHERS_MAY_READ:
                    log.warning("%s holds secrets that other users may read: chmod 600", path)
        if self.rules.white.everybody:
            log.warning("globalWhiteRemoteAddresses lets every address do everything, unsigned")
        for account in self.rules.accounts.values():
            if account.white.everybody:
                log.warning(
                    "whoever names the account %s may do everything, unsigned: its "
                    "whiteRemoteAddress is every address", account.access_key,
                )  # fmt: skip

    # -- writing ----------------------------------------------------------------------------------

    def replace(self, path: Path, file: AccountFile) -> None:
        """Write one file, whole or not at all, and let it hold at once.

        Raises:
            InvalidValue: with it the files would make no sense, or it cannot be written.
        """
        fresh = file.changed(self._clock.now_ms())
        rules = joined_rules(self.files | {path: fresh})
        self.check(rules)
        content = account_file.written(fresh)
        account_file.read(content)  # what cannot be read again is not written
        try:
            write_whole(path, content)
        except OSError as error:
            raise InvalidValue(f"{path} cannot be written: {error.strerror or error}") from None
        self._read = self._read | {path: Read(content, fresh)}
        self._stamps = self._look()
        self._failed, self.rules = None, rules


def _anything(_rules: Rules) -> None:
    """Have nothing against it."""


def joined_rules(files: Mapping[Path, AccountFile]) -> Rules:
    """Return the rules that several files make together.

    Raises:
        InvalidValue: an account is in two of them, or there is nobody who could ever come in.
    """
    accounts: dict[str, Account] = {}
    owners: dict[str, Path] = {}
    white: list[Addresses] = []
    for path, file in files.items():
        white += file.white
        for entry in file.entries:
            key = entry.account.access_key
            if key in owners:
                raise InvalidValue(
                    f"the access key {shown(key)} is in {owners[key]} and in {path}; "
                    "it can be in one file only"
                )
            owners[key], accounts[key] = path, entry.account
    everybody = Addresses(
        any(one.everybody for one in white),
        frozenset().union(*(one.single for one in white)),
        tuple(kept for one in white for kept in one.ranges),
    )
    if files and not accounts and not (everybody.everybody or everybody.single or everybody.ranges):
        raise InvalidValue(
            f"{', '.join(map(str, files))}: there is neither an account nor a white address, so "
            "that nobody could come in"
        )
    return Rules(everybody, accounts)
