"""Sub-commands about the users and rules of 5.x."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gantrymq.cli.output import Answer, Table
from gantrymq.wire.bodies.auth import (
    ACL,
    ACLS,
    USER,
    USERS,
    AclInfo,
    Policy,
    PolicyEntry,
    UserInfo,
)
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.acl import (
    DeleteAclRequest,
    ListAclsRequest,
    ListUsersRequest,
    SubjectRequest,
    UserRequest,
)
from gantrymq.wire.response_errors import NoMessage

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given
    from gantrymq.wire.fields import Header

USER_HEADS = ("#UserName", "#Password", "#UserType", "#UserStatus")
ACL_HEADS = ("#Subject", "#PolicyType", "#Resource", "#Actions", "#SourceIp", "#Decision")
HIDDEN = "***"


async def _addresses(session: Session, given: Given) -> list[str]:
    return await session.targets(given.maybe("brokerAddr"), given.maybe("clusterName"))


async def _tell(
    session: Session, given: Given, code: RequestCode, header: Header, body: bytes, done: str
) -> Answer:
    addresses = await _addresses(session, given)
    for address in addresses:
        await session.remote.call(address, code, header, body)
    lines = [done.format(address) for address in addresses]
    return Answer([*lines], {"brokers": addresses})


def _user_table(users: list[UserInfo]) -> Table:
    rows = [
        (each.username, HIDDEN if each.password else "", each.user_type, each.user_status)
        for each in users
    ]
    return Table(USER_HEADS, rows)


def _acl_table(acls: list[AclInfo]) -> Table:
    rows = [
        (
            acl.subject, policy.policy_type, entry.resource, ",".join(entry.actions or ()),
            ",".join(entry.source_ips or ()), entry.decision,
        )
        for acl in acls
        for policy in acl.policies or ()
        for entry in policy.entries or ()
    ]  # fmt: skip
    return Table(ACL_HEADS, rows)


async def create_user(session: Session, given: Given) -> Answer:
    """Make a user."""
    name = given.text("username")
    user = UserInfo(
        username=name, password=given.text("password"), user_type=given.maybe("userType")
    )
    header, body = UserRequest(username=name), USER.encode(user)
    done = "create user to {} success."
    return await _tell(session, given, RequestCode.AUTH_CREATE_USER, header, body, done)


async def update_user(session: Session, given: Given) -> Answer:
    """Change a user; what is not given stays."""
    name = given.text("username")
    user = UserInfo(
        username=name,
        password=given.maybe("password"),
        user_type=given.maybe("userType"),
        user_status=given.maybe("userStatus"),
    )
    header, body = UserRequest(username=name), USER.encode(user)
    done = "update user to {} success."
    return await _tell(session, given, RequestCode.AUTH_UPDATE_USER, header, body, done)


async def delete_user(session: Session, given: Given) -> Answer:
    """Delete a user."""
    header = UserRequest(username=given.text("username"))
    done = "delete user from {} success."
    return await _tell(session, given, RequestCode.AUTH_DELETE_USER, header, b"", done)


async def _user(session: Session, address: str, name: str) -> UserInfo | None:
    header = UserRequest(username=name)
    answered = await session.remote.call(address, RequestCode.AUTH_GET_USER, header)
    return USER.decode(answered.body) if answered.body else None


async def _users(session: Session, address: str, pattern: str | None) -> list[UserInfo]:
    header = ListUsersRequest(filter=pattern)
    answered = await session.remote.call(address, RequestCode.AUTH_LIST_USER, header)
    return list(USERS.decode(answered.body)) if answered.body else []


async def get_user(session: Session, given: Given) -> Answer:
    """Say about a user."""
    name = given.text("username")
    for address in await _addresses(session, given):
        user = await _user(session, address, name)
        if user is not None:
            return Answer([_user_table([user])])
    raise NoMessage(f"there is no user {name}")


async def list_user(session: Session, given: Given) -> Answer:
    """Say all users."""
    address = (await _addresses(session, given))[0]
    return Answer([_user_table(await _users(session, address, given.maybe("filter")))])


async def copy_user(session: Session, given: Given) -> Answer:
    """Copy users from one broker to another."""
    source, target = given.text("fromBroker"), given.text("toBroker")
    names = given.words("usernames") or [
        each.username or "" for each in await _users(session, source, None)
    ]
    lines = []
    for name in names:
        user = await _user(session, source, name)
        if user is None:
            raise NoMessage(f"{source} has no user {name}")
        known = await _user(session, target, name)
        code = RequestCode.AUTH_UPDATE_USER if known else RequestCode.AUTH_CREATE_USER
        await session.remote.call(target, code, UserRequest(username=name), USER.encode(user))
        lines.append(f"copy user of {name} from {source} to {target} success.")
    return Answer([*lines], {"from": source, "to": target, "users": names})


def _acl_of(given: Given) -> AclInfo:
    entries = tuple(
        PolicyEntry(
            resource=resource,
            actions=tuple(given.words("actions")),
            source_ips=tuple(given.words("sourceIp")) or None,
            decision=given.text("decision"),
        )
        for resource in given.words("resources")
    )
    policy = Policy(policy_type="Custom", entries=entries)
    return AclInfo(subject=given.text("subject"), policies=(policy,))


async def create_acl(session: Session, given: Given) -> Answer:
    """Make rules."""
    acl = _acl_of(given)
    header, body = SubjectRequest(subject=acl.subject), ACL.encode(acl)
    done = "create acl to {} success."
    return await _tell(session, given, RequestCode.AUTH_CREATE_ACL, header, body, done)


async def update_acl(session: Session, given: Given) -> Answer:
    """Change rules."""
    acl = _acl_of(given)
    header, body = SubjectRequest(subject=acl.subject), ACL.encode(acl)
    done = "update acl to {} success."
    return await _tell(session, given, RequestCode.AUTH_UPDATE_ACL, header, body, done)


async def delete_acl(session: Session, given: Given) -> Answer:
    """Delete the rules of a subject, or those about some resources."""
    subject, resources = given.text("subject"), given.words("resources") or [""]
    answer = Answer()
    for resource in resources:
        header = DeleteAclRequest(subject=subject, resource=resource or None)
        done = "delete acl from {} success."
        answer = await _tell(session, given, RequestCode.AUTH_DELETE_ACL, header, b"", done)
    return answer


async def _acl(session: Session, address: str, subject: str) -> AclInfo | None:
    header = SubjectRequest(subject=subject)
    answered = await session.remote.call(address, RequestCode.AUTH_GET_ACL, header)
    return ACL.decode(answered.body) if answered.body else None


async def _acls(
    session: Session, address: str, subject: str | None, resource: str | None
) -> list[AclInfo]:
    header = ListAclsRequest(subject_filter=subject, resource_filter=resource)
    answered = await session.remote.call(address, RequestCode.AUTH_LIST_ACL, header)
    return list(ACLS.decode(answered.body)) if answered.body else []


async def get_acl(session: Session, given: Given) -> Answer:
    """Say the rules of a subject."""
    subject = given.text("subject")
    for address in await _addresses(session, given):
        acl = await _acl(session, address, subject)
        if acl is not None:
            return Answer([_acl_table([acl])], msgspec.to_builtins(acl))
    raise NoMessage(f"there are no rules of {subject}")


async def list_acl(session: Session, given: Given) -> Answer:
    """Say all rules."""
    address = (await _addresses(session, given))[0]
    found = await _acls(session, address, given.maybe("subject"), given.maybe("resource"))
    return Answer([_acl_table(found)])


async def copy_acl(session: Session, given: Given) -> Answer:
    """Copy rules from one broker to another."""
    source, target = given.text("fromBroker"), given.text("toBroker")
    subjects = given.words("subjects") or [
        each.subject or "" for each in await _acls(session, source, None, None)
    ]
    lines = []
    for subject in subjects:
        acl = await _acl(session, source, subject)
        if acl is None:
            raise NoMessage(f"{source} has no rules of {subject}")
        known = await _acl(session, target, subject)
        code = RequestCode.AUTH_UPDATE_ACL if known else RequestCode.AUTH_CREATE_ACL
        await session.remote.call(target, code, SubjectRequest(subject=subject), ACL.encode(acl))
        lines.append(f"copy acl of {subject} from {source} to {target} success.")
    return Answer([*lines], {"from": source, "to": target, "subjects": subjects})
