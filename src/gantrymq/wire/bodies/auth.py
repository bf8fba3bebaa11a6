"""Users and rights: the files of 4.9 as a table (54), the users and rules of 5.x (3001 to 3010)."""

from typing import Final

from gantrymq.wire.bodies.codec import JsonBody
from gantrymq.wire.bodies.schema import Body


class PlainAccess(Body, frozen=True, kw_only=True):
    """4.9: one account."""

    access_key: str = ""
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: tuple[str, ...] | None = None
    group_perms: tuple[str, ...] | None = None


class AclConfig(Body, frozen=True, kw_only=True):
    """4.9: all accounts and the addresses that need none (54)."""

    global_white_addrs: tuple[str, ...] = ()
    plain_access_configs: tuple[PlainAccess, ...] = ()


class UserInfo(Body, frozen=True, kw_only=True):
    """5.x: a user; what is None is not changed by an update."""

    username: str | None = None
    password: str | None = None
    user_type: str | None = None
    """Super or Normal."""
    user_status: str | None = None
    """enable or disable."""


class PolicyEntry(Body, frozen=True, kw_only=True):
    """5.x: what may, or may not, be done with a resource, and from where."""

    resource: str | None = None
    actions: tuple[str, ...] | None = None
    source_ips: tuple[str, ...] | None = None
    decision: str | None = None


class Policy(Body, frozen=True, kw_only=True):
    """5.x: rules of one kind, Custom or Default."""

    policy_type: str | None = None
    entries: tuple[PolicyEntry, ...] | None = None


class AclInfo(Body, frozen=True, kw_only=True):
    """5.x: the rules of one subject, `User:name`."""

    subject: str | None = None
    policies: tuple[Policy, ...] | None = None


ACL_CONFIG: Final = JsonBody(AclConfig)
USER: Final = JsonBody(UserInfo)
USERS: Final = JsonBody(tuple[UserInfo, ...])
ACL: Final = JsonBody(AclInfo)
ACLS: Final = JsonBody(tuple[AclInfo, ...])
