"""Access control of one process: its account files, the check, and who the process itself is.

A broker asks name servers, a slave its master, a member of a group its successor. Where those check
too, the broker signs with an account of its own file (`aclBrokerAccessKey`). Name server, broker
and dashboard of one process use an account that is made when the process starts and is nowhere
else.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.broker.protection import protect
from gantrymq.errors import InvalidValue
from gantrymq.model.names import TRACE_TOPIC
from gantrymq.security.access import Access
from gantrymq.security.account_files import AccountFiles
from gantrymq.security.requests import AccountRequests
from gantrymq.wire.signing import signed

if TYPE_CHECKING:
    from gantrymq.broker.broker import Broker
    from gantrymq.broker.settings import BrokerSettings
    from gantrymq.clock import Clock
    from gantrymq.security.accounts import Account
    from gantrymq.store.settings import StoreSettings
    from gantrymq.wire.command import Command

LOOK_S: Final = 1.0
"""Between two looks at the account files."""


class NodeAccess:
    """What a process needs for access control. Owned by the event loop's thread."""

    def __init__(
        self, place: Path, clock: Clock, *, own_key: str = "", trace_topic: str = TRACE_TOPIC
    ) -> None:
        """Read the account files; `own_key` names the account that this process signs with.

        Raises:
            InvalidValue: they cannot be used, or the account is none that may do everything.
        """
        self.files = AccountFiles(place, clock)
        self.access = Access(lambda: self.files.rules, clock, trace_topic=trace_topic)
        self._own_key = own_key
        self._made: Account | None = None
        if own_key and not self.files.account(own_key).may_everything:
            raise InvalidValue(
                f"aclBrokerAccessKey is {own_key!r}, and that account is no administrator without "
                "permissions by name: name servers and masters would refuse this broker"
            )

    def be_one_process(self) -> Account:
        """Return the account of all parts of this process, made for it."""
        if self._made is None:
            self._made = self.access.own_account()
        return self._made

    def sign(self, request: Command) -> Command:
        """Return a request of this process as others let it pass; as it is, without an account."""
        if self._own_key:
            account = self.files.rules.accounts.get(self._own_key)
            return request if account is None else signed(account, request)
        return request if self._made is None else signed(self._made, request)

    def tick(self) -> None:
        """Look at the files again."""
        self.files.tick()

    def protect(self, broker: Broker, address: str, now: float) -> None:
        """Stand in front of a broker that is open and does not listen yet."""
        settings = broker.settings.now
        requests = AccountRequests(
            self.files, name=settings.name, address=address, cluster=settings.cluster
        )
        protect(broker.router, broker.service, broker.store, self.access, requests.handlers)
        broker.schedule.every("account files", LOOK_S, self.tick, now)


def accounts_place(settings: BrokerSettings, store: StoreSettings) -> Path:
    """Return where a broker's account files are: beside its tables, unless it is said."""
    return Path(settings.acl_path).expanduser() if settings.acl_path else store.paths.config


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
            accounts_place(settings, store),
            clock,
            own_key=settings.acl_own_key,
            trace_topic=settings.trace_topic,
        )
    except InvalidValue as error:
        raise InvalidValue(f"aclEnable is true, and {error}") from None
