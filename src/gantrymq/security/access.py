"""The check in front of every handler: who asks, is it really they, and may they?

    1. the address is in globalWhiteRemoteAddresses        yes: everything
    2. the request has an access key, and there is such an account; without one, the verified
       certificate of its connection names a user: go to 5
    3. the address is in the account's whiteRemoteAddress  yes: everything
    4. the signature is that of the account's secret
    5. the account has what the request needs (`needs`, `levels`)

An account is one of Apache's files or a user of ours (`Principal`): the check is the same.

Whatever does not pass is answered as Apache 4.9 does: SYSTEM_ERROR with the name of the exception
that its tools and clients look for, and behind it the cause. Owned by the event loop's thread.
"""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING, Final

from gantrymq.errors import ContentError, shown
from gantrymq.model.names import TRACE_TOPIC
from gantrymq.model.roles import Role
from gantrymq.security.accounts import Account, Permission, Secret, named
from gantrymq.security.addresses import read_address
from gantrymq.security.levels import level_of
from gantrymq.security.needs import Need, managed_by, needs_of, topic_need
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.response_errors import SystemFailure
from gantrymq.wire.signing import ACCESS_KEY, SIGNATURE, is_signed

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.clock import Clock
    from gantrymq.security.accounts import Principal, Rules
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Peer

log = logging.getLogger(__name__)

EXCEPTION: Final = "org.apache.rocketmq.acl.common.AclException"
LOG_S: Final = 1.0
"""Between two lines about refusals: who is refused may ask as often as they like."""


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

    def check(self, code: int, request: Command, peer: Peer) -> Principal | None:
        """Let a request pass; `code` is the whole one, where a binary header cuts it.

        Returns whose it is; None if its address may do everything, unsigned.

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
        return None if account is None or account.access_key in self._own else account

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

    def _account(self, request: Command, peer: Peer) -> Principal | None:
        """Return whose request it says it is; None if it comes from where all may do everything."""
        rules = self._rules()
        address = read_address(peer.address)
        if rules.white.has(address):
            return None
        key = request.fields.get(ACCESS_KEY)
        if not key:
            return _certified(rules, peer)
        account = rules.find(key) or self._own.get(key)
        if account is None:
            raise AccessRefused(f"there is no account with the access key {shown(key)}")
        return None if account.white.has(address) else account

    def _signer(self, request: Command, peer: Peer) -> Principal | None:
        """Return the account that a request is proved to be of; None as `_account`."""
        account = self._account(request, peer)
        if account is None or not request.fields.get(ACCESS_KEY):
            return account  # a certificate has proved it
        if account.secret is None:
            raise AccessRefused(
                f"{account.title} has no secret to sign with: leave the access key out and come "
                "with its certificate, or make a secret with `gantrymq user passwd`"
            )
        if is_signed(account.secret.reveal(), request.fields, request.body):
            return account
        what = "is wrong: another secret key" if SIGNATURE in request.fields else "is missing"
        raise AccessRefused(f"the signature of {account.title} {what}")

    def _check_needs(self, account: Principal, code: int, request: Command) -> None:
        needs = needs_of(code, request)
        if needs.admin and account.level < level_of(code):
            self._check_managed(account, code, request)
        for need in needs.resources:
            self._check_need(account, need)

    def _check_managed(self, account: Principal, code: int, request: Command) -> None:
        """Let those change a topic or a group who may do so by its name."""
        if isinstance(account, Account):
            raise AccessRefused(
                f"request {_code(code)} needs an administrator, and {account.title} is none "
                "(admin: true)"
            )
        try:
            managed = managed_by(code, request)
        except ContentError:
            managed = ()  # whoever may do nothing here is told that, and not what else is wrong
        if managed and all(account.may(need.resource, need.wanted) for need in managed):
            return
        has = "has none" if account.level is Role.NONE else f"is {account.level.text}"
        also = "".join(f", or manage for {named(need.resource)}" for need in managed)
        raise AccessRefused(
            f"request {_code(code)} needs the role {level_of(code).text}{also}, and "
            f"{account.title} {has}"
        )

    def _check_need(self, account: Principal, need: Need) -> None:
        if account.may(need.resource, need.wanted):
            return
        if need.resource == self._trace_topic and need.wanted == Permission.PUB:
            return
        raise AccessRefused(
            f"{account.title} lacks the permission {account.lacks(need.wanted)} for "
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


def _certified(rules: Rules, peer: Peer) -> Principal:
    """Return the user that the peer's certificate names.

    Raises:
        AccessRefused: there is no certificate, or it names nobody or several.
    """
    if not peer.certificate:
        raise AccessRefused(
            f"the request is not signed, and {shown(peer.address)} is not among the addresses "
            "that need no account; give the client an access key and a secret key"
        )
    names = shown(", ".join(peer.certificate))
    users = {
        user.access_key: user
        for user in map(rules.certificates.get, peer.certificate)
        if user is not None
    }
    if not users:
        raise AccessRefused(
            f"the request is not signed, and no user has the certificate {names}; add the user, or "
            "name the certificate in the user's certificates"
        )
    if len(users) > 1:
        raise AccessRefused(
            f"the certificate {names} names several users: {shown(', '.join(users))}; sign the "
            "request, or let one user have it"
        )
    return next(iter(users.values()))


def _code(code: int) -> str:
    try:
        return f"{RequestCode(code).name} ({code})"
    except ValueError:
        return str(code)
