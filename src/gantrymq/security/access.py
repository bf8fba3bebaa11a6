"""The check in front of every handler: who asks, is it really they, and may they?

    1. the address is in globalWhiteRemoteAddresses        yes: everything
    2. the request has an access key, and there is such an account
    3. the address is in the account's whiteRemoteAddress  yes: everything
    4. the signature is that of the account's secret
    5. the account has what the request needs (`needs`)

Whatever does not pass is answered as Apache 4.9 does: SYSTEM_ERROR with the name of the exception
that its tools and clients look for, and behind it the cause. Owned by the event loop's thread.
"""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING, Final

from gantrymq.errors import shown
from gantrymq.model.names import TRACE_TOPIC
from gantrymq.security.accounts import Account, Permission, Secret, named
from gantrymq.security.addresses import read_address
from gantrymq.security.needs import Need, needs_of, topic_need
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.response_errors import SystemFailure
from gantrymq.wire.signing import ACCESS_KEY, SIGNATURE, is_signed

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.clock import Clock
    from gantrymq.security.accounts import Rules
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Peer

log = logging.getLogger(__name__)

EXCEPTION: Final = "org.apache.rocketmq.acl.common.AclException"
LOG_S: Final = 1.0
"""Between two lines about refusals: who is refused may ask as often as they like."""
_PERMISSIONS: Final = {Permission.PUB: "PUB", Permission.SUB: "SUB"}


class AccessRefused(SystemFailure):
    """A request may not be made by whoever made it."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{EXCEPTION}: {why}")
        self.why = why


class Access:
    """Judges requests by the rules that hold now."""

    def __init__(
        self, rules: Callable[[], Rules], clock: Clock, *, trace_topic: str = TRACE_TOPIC
    ) -> None:
        """Ask `rules` for every request; every account may write to `trace_topic`."""
        self._rules = rules
        self._clock = clock
        self._trace_topic = trace_topic
        self._own: dict[str, Account] = {}
        self._quiet_until = 0.0
        self.refused = 0
        """Requests that were refused."""

    def own_account(self) -> Account:
        """Return an account for the parts of this process, which no file and no other one has."""
        account = Account(
            access_key=f"gantrymq-{secrets.token_hex(8)}",
            secret=Secret(secrets.token_urlsafe(32)),
            admin=True,
        )
        self._own[account.access_key] = account
        return account

    def check(self, code: int, request: Command, peer: Peer) -> None:
        """Let a request pass; `code` is the whole one, where a binary header cuts it.

        Raises:
            AccessRefused: it may not be made.
            ContentError: what it is about cannot be read.
        """
        try:
            account = self._signer(request, peer)
            if account is not None:
                self._check_needs(account, code, request)
        except AccessRefused as error:
            self._note(code, peer, error)
            raise

    def check_read(self, request: Command, peer: Peer, topic: str) -> None:
        """Let a request that has passed `check` read of a topic that it does not name itself.

        Raises:
            AccessRefused: it may not.
        """
        self._check_topic(request, peer, topic, Permission.SUB)

    def check_write(self, request: Command, peer: Peer, topic: str) -> None:
        """Let it bring a message into such a topic.

        Raises:
            AccessRefused: it may not.
        """
        self._check_topic(request, peer, topic, Permission.PUB)

    def _check_topic(self, request: Command, peer: Peer, topic: str, wanted: Permission) -> None:
        try:
            account = self._account(request, peer)
            if account is not None:
                self._check_need(account, topic_need(topic, wanted))
        except AccessRefused as error:
            self._note(request.code, peer, error)
            raise

    def admits(self, address: str) -> bool:
        """Tell whether an address needs no account: for the port where logs are copied unsigned."""
        is_white = self._rules().white.has(read_address(address))
        if not is_white and self._may_log():
            log.warning(
                "%s is not among globalWhiteRemoteAddresses and may not copy the log", address
            )
        return is_white

    def _account(self, request: Command, peer: Peer) -> Account | None:
        """Return whose request it says it is; None if it comes from where all may do everything."""
        rules = self._rules()
        address = read_address(peer.address)
        if rules.white.has(address):
            return None
        key = request.fields.get(ACCESS_KEY)
        if not key:
            raise AccessRefused(
                f"the request is not signed, and {shown(peer.address)} is not among the addresses "
                "that need no account; give the client an access key and a secret key"
            )
        account = rules.accounts.get(key) or self._own.get(key)
        if account is None:
            raise AccessRefused(f"there is no account with the access key {shown(key)}")
        return None if account.white.has(address) else account

    def _signer(self, request: Command, peer: Peer) -> Account | None:
        """Return the account that a request is proved to be of; None as `_account`."""
        account = self._account(request, peer)
        if account is None or is_signed(account.secret_key, request.fields, request.body):
            return account
        what = "is wrong: another secret key" if SIGNATURE in request.fields else "is missing"
        raise AccessRefused(f"the signature of the account {account.access_key} {what}")

    def _check_needs(self, account: Account, code: int, request: Command) -> None:
        needs = needs_of(code, request)
        if needs.admin and not account.admin:
            raise AccessRefused(
                f"request {_code(code)} needs an administrator, and the account "
                f"{account.access_key} is none (admin: true)"
            )
        for need in needs.resources:
            self._check_need(account, need)

    def _check_need(self, account: Account, need: Need) -> None:
        if account.may(need.resource, need.wanted):
            return
        if need.resource == self._trace_topic and need.wanted == Permission.PUB:
            return
        wanted = " or ".join(text for one, text in _PERMISSIONS.items() if one & need.wanted)
        raise AccessRefused(
            f"the account {account.access_key} lacks the permission {wanted} for "
            f"{named(need.resource)}"
        )

    def _may_log(self) -> bool:
        now = self._clock.monotonic()
        if now < self._quiet_until:
            return False
        self._quiet_until = now + LOG_S
        return True

    def _note(self, code: int, peer: Peer, error: AccessRefused) -> None:
        self.refused += 1
        if self._may_log():
            log.warning(
                "request %s of %s is refused: %s; %d so far",
                _code(code), peer.address, error.why, self.refused,
            )  # fmt: skip


def _code(code: int) -> str:
    try:
        return f"{RequestCode(code).name} ({code})"
    except ValueError:
        return str(code)
