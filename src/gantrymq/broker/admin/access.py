"""Accounts, users and policies while nobody checks them, as with an Apache broker that has ACL off.

4.9 (50 to 54) fails to change a file that there is not, and has no accounts to show. 5.x (3001 to
3010) has no store of users: every request fails, whatever it asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.broker.answers import answer
from gantrymq.model.offsets import DataVersion
from gantrymq.wire.bodies.auth import ACL_CONFIG, AclConfig
from gantrymq.wire.bodies.topic import DATA_VERSION
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.acl import AclVersionResponse
from gantrymq.wire.response_errors import (
    BrokerNotExist,
    NoPermission,
    PollingFull,
    PollingTimeout,
)

if TYPE_CHECKING:
    from gantrymq.broker.admin.parts import AdminParts
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Handler, Peer

OFF: Final = "access control is off on this broker: there are no accounts, users or policies"
_USERS: Final = (
    RequestCode.AUTH_CREATE_USER,
    RequestCode.AUTH_UPDATE_USER,
    RequestCode.AUTH_DELETE_USER,
    RequestCode.AUTH_GET_USER,
    RequestCode.AUTH_LIST_USER,
    RequestCode.AUTH_CREATE_ACL,
    RequestCode.AUTH_UPDATE_ACL,
    RequestCode.AUTH_DELETE_ACL,
    RequestCode.AUTH_GET_ACL,
    RequestCode.AUTH_LIST_ACL,
)


class AccessRequests:
    """Answers requests about accounts."""

    def __init__(self, parts: AdminParts) -> None:
        self._parts = parts

    @property
    def handlers(self) -> dict[int, Handler]:
        """Return what is handled here."""
        return {
            RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: self.not_changed,
            RequestCode.DELETE_ACL_CONFIG: self.not_deleted,
            RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: self.not_listed,
            RequestCode.GET_BROKER_CLUSTER_ACL_INFO: self.version,
            RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: self.accounts,
            **dict.fromkeys(_USERS, self.no_users),
        }

    def not_changed(self, _request: Command, _peer: Peer) -> Answer:
        """Refuse to make or change an account, with 4.9's code."""
        raise PollingFull(OFF)

    def not_deleted(self, _request: Command, _peer: Peer) -> Answer:
        """Refuse to delete an account, with 4.9's code."""
        raise PollingTimeout(OFF)

    def not_listed(self, _request: Command, _peer: Peer) -> Answer:
        """Refuse to change which addresses need no account, with 4.9's code."""
        raise BrokerNotExist(OFF)

    def version(self, request: Command, _peer: Peer) -> Answer:
        """Answer the version of accounts that there are not."""
        settings = self._parts.settings.now
        header = AclVersionResponse(
            version=DATA_VERSION.encode(DataVersion()).decode(),
            broker_name=settings.name,
            broker_addr=self._parts.address,
            cluster_name=settings.cluster,
            all_acl_file_version="{}",
        )
        return answer(request, fields=header.encode())

    def accounts(self, request: Command, _peer: Peer) -> Answer:
        """Answer that there are no accounts."""
        return answer(request, body=ACL_CONFIG.encode(AclConfig()))

    def no_users(self, _request: Command, _peer: Peer) -> Answer:
        """Refuse everything about users and policies."""
        raise NoPermission(OFF)
