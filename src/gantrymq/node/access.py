"""Access control of one process: its accounts and users, the check, and who the process itself is.

A broker asks name servers, a slave its master, a member of a group its successor. Where those check
too, the broker signs with an account of its own files (`aclBrokerAccessKey`). Name server, broker
and dashboard of one process use an account that is made when the process starts and is nowhere
else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.broker.protection import protect
from gantrymq.errors import InvalidValue, shown
from gantrymq.model.names import TRACE_TOPIC
from gantrymq.model.roles import Role
from gantrymq.security.access import Access
from gantrymq.security.account_files import SUFFIXES, AccountFiles
from gantrymq.security.live_users import FILE_NAME, LiveUsers, key_path_of
from gantrymq.security.requests import AccountRequests
from gantrymq.wire.signing import signed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.broker.broker import Broker
    from gantrymq.broker.settings import BrokerSettings
    from gantrymq.clock import Clock
    from gantrymq.namesrv.settings import NamesrvSettings
    from gantrymq.security.accounts import Account, Principal, Rules
    from gantrymq.security.users import User
    from gantrymq.store.settings import StoreSettings
    from gantrymq.wire.command import Command

LOOK_S: Final = 1.0
"""Between two looks at the files."""


@dataclass(frozen=True, slots=True)
class AccessPlaces:
    """Where the files of access control are."""

    accounts: Path
    """Directory of plain_acl.yml, or one such file."""
    users: Path
    key: Path
    """What secrets of users are sealed with."""
    users_required: bool = False
    """Whether somebody named the file of users: then it must be there."""


def access_places(accounts: Path, users_file: str = "", key_file: str = "") -> AccessPlaces:
    """Return where the files are: those of users beside the others, unless it is said."""
    folder = accounts.parent if accounts.suffix in SUFFIXES else accounts
    users = Path(users_file).expanduser() if users_file else folder / FILE_NAME
    key = Path(key_file).expanduser() if key_file else key_path_of(users)
    return AccessPlaces(accounts, users, key, users_required=bool(users_file))


class NodeAccess:
    """What a process needs for access control. Owned by the event loop's thread."""

    def __init__(
        self,
        places: AccessPlaces,
        clock: Clock,
        *,
        own_key: str = "",
        trace_topic: str = TRACE_TOPIC,
    ) -> None:
        """Read the files; `own_key` names the account that this process signs with.

        Raises:
            InvalidValue: they cannot be used, or the account is none that may do everything.
        """
        self.users = LiveUsers(places.users, places.key, clock, required=places.users_required)
        self.files = AccountFiles(places.accounts, clock, required=not self.users.is_there)
        self._check(self.files.rules, self.users.users)
        self.files.check = lambda rules: self._check(rules, self.users.users)
        self.users.check = lambda users: self._check(self.files.rules, users)
        self._joined = _joined(self.files.rules, self.users.users)
        self.access = Access(lambda: self.rules, clock, trace_topic=trace_topic)
        self._own_key = own_key
        self._made: Account | None = None
        if own_key:
            self._check_own(own_key)

    @property
    def rules(self) -> Rules:
        """Return the accounts and users that hold now."""
        rules, users = self.files.rules, self.users.users
        joined = self._joined
        if joined.accounts is not rules.accounts or joined.users is not users:
            joined = self._joined = _joined(rules, users)
        return joined

    def _check(self, rules: Rules, users: Mapping[str, Principal]) -> None:
        """Refuse accounts and users that cannot be together.

        Raises:
            InvalidValue: a name is in both, or nobody is an administrator.
        """
        twice = sorted(rules.accounts.keys() & users.keys())
        if twice:
            raise InvalidValue(
                f"the access key {shown(twice[0])} is in {self.users.path} and in an account file; "
                "it can be in one of them only: remove it from the other"
            )
        white = rules.white
        is_white = bool(white.everybody or white.single or white.ranges)
        if not users:
            if self.users.is_there and not rules.accounts and not is_white:
                raise InvalidValue(
                    f"{self.users.path} has no users, and there is no account file; make one with "
                    f"`gantrymq user add NAME --role admin --file {self.users.path}`"
                )
            return
        both = (*rules.accounts.values(), *users.values())
        if not is_white and not any(one.level is Role.ADMIN for one in both):
            raise InvalidValue(
                f"nobody is an administrator: none of the {len(users)} users of {self.users.path} "
                "has the role admin, and no account has admin: true; make one with "
                f"`gantrymq user add NAME --role admin --file {self.users.path}`"
            )

    def _check_own(self, own_key: str) -> None:
        account = self.rules.find(own_key)
        if account is None:
            raise InvalidValue(
                f"no account of {self.files.main_file} and no user of {self.users.path} has the "
                f"access key {shown(own_key)}, which is aclBrokerAccessKey"
            )
        if not account.may_everything or account.secret is None:
            raise InvalidValue(
                f"aclBrokerAccessKey is {own_key!r}, and that account is no administrator without "
                "permissions by name, or has no secret: name servers and masters would refuse "
                "this broker"
            )

    def be_one_process(self) -> Account:
        """Return the account of all parts of this process, made for it."""
        if self._made is None:
            self._made = self.access.own_account()
        return self._made

    def sign(self, request: Command) -> Command:
        """Return a request of this process as others let it pass; as it is, without an account."""
        if self._own_key:
            account = self.rules.find(self._own_key)
            return request if account is None else _signed(account, request)
        return request if self._made is None else signed(self._made, request)

    def tick(self) -> None:
        """Look at the files again."""
        self.files.tick()
        self.users.tick()

    def protect(self, broker: Broker, address: str, now: float) -> None:
        """Stand in front of a broker that is open and does not listen yet."""
        settings = broker.settings.now
        requests = AccountRequests(
            self.files, name=settings.name, address=address, cluster=settings.cluster
        )
        protect(
            broker.router, broker.service, broker.store, self.access, requests.handlers,
            broker.limiting.users,
        )  # fmt: skip
        broker.schedule.every("account files", LOOK_S, self.tick, now)


def _joined(rules: Rules, users: Mapping[str, User]) -> Rules:
    """Return accounts and users together."""
    certificates = {name: user for user in users.values() for name in user.certificates}
    return replace(rules, users=users, certificates=certificates)


@dataclass(frozen=True, slots=True)
class _Signing:
    """Whoever is judged, as one who signs."""

    access_key: str
    secret_key: str
    security_token: None = None


def _signed(account: Principal, request: Command) -> Command:
    if account.secret is None:
        return request
    return signed(_Signing(account.access_key, account.secret.reveal()), request)


def accounts_place(settings: BrokerSettings, store: StoreSettings) -> Path:
    """Return where a broker's account files are: beside its tables, unless it is said."""
    return Path(settings.acl_path).expanduser() if settings.acl_path else store.paths.config


def broker_places(settings: BrokerSettings, store: StoreSettings) -> AccessPlaces:
    """Return where all files of a broker's access control are."""
    return access_places(
        accounts_place(settings, store), settings.users_file, settings.users_key_file
    )


def opened_access(
    settings: BrokerSettings, store: StoreSettings, clock: Clock
) -> NodeAccess | None:
    """Return access control as a broker's settings want it; None if it is off.

    Raises:
        InvalidValue: it cannot be begun.
    """
    if not settings.acl:
        return None
    try:
        return NodeAccess(
            broker_places(settings, store),
            clock,
            own_key=settings.acl_own_key,
            trace_topic=settings.trace_topic,
        )
    except InvalidValue as error:
        raise InvalidValue(f"aclEnable is true, and {error}") from None


def opened_namesrv_access(settings: NamesrvSettings, beside: Path, clock: Clock) -> NodeAccess:
    """Return access control of a name server; its files lie `beside` others unless it is said.

    Raises:
        InvalidValue: it cannot be begun.
    """
    accounts = Path(settings.acl_path).expanduser() if settings.acl_path else beside
    places = access_places(accounts, settings.users_file, settings.users_key_file)
    try:
        return NodeAccess(places, clock)
    except InvalidValue as error:
        raise InvalidValue(f"aclEnable is true, and {error}") from None
