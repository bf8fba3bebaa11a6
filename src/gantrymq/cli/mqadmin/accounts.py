"""Sub-commands about the accounts of 4.9."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gantrymq.cli.output import Answer, Table
from gantrymq.wire.bodies.auth import ACL_CONFIG
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.acl import (
    AclVersionResponse,
    DeleteAclConfigRequest,
    UpdateAclConfigRequest,
    UpdateGlobalWhiteAddressesRequest,
)

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given
    from gantrymq.wire.fields import Header


async def _tell(
    session: Session, given: Given, code: RequestCode, header: Header, done: str
) -> Answer:
    addresses = await session.targets(
        given.maybe("brokerAddr"), given.maybe("clusterName"), slaves=True
    )
    for address in addresses:
        await session.remote.call(address, code, header)
    lines = [done.format(address) for address in addresses]
    return Answer([*lines], {"brokers": addresses})


async def update_acl_config(session: Session, given: Given) -> Answer:
    """Make an account, or change it."""
    header = UpdateAclConfigRequest(
        access_key=given.text("accessKey"),
        secret_key=given.text("secretKey"),
        white_remote_address=given.maybe("whiteRemoteAddress"),
        admin=given.yes("admin") if given.maybe("admin") else None,
        default_topic_perm=given.maybe("defaultTopicPerm"),
        default_group_perm=given.maybe("defaultGroupPerm"),
        topic_perms=given.maybe("topicPerms"),
        group_perms=given.maybe("groupPerms"),
    )
    code = RequestCode.UPDATE_AND_CREATE_ACL_CONFIG
    return await _tell(
        session, given, code, header, "create or update plain access config to {} success."
    )


async def delete_acl_config(session: Session, given: Given) -> Answer:
    """Delete an account."""
    header = DeleteAclConfigRequest(access_key=given.text("accessKey"))
    done = "delete plain access config account from {} success."
    return await _tell(session, given, RequestCode.DELETE_ACL_CONFIG, header, done)


async def update_global_white_addr(session: Session, given: Given) -> Answer:
    """Say which addresses need no account."""
    header = UpdateGlobalWhiteAddressesRequest(
        global_white_addrs=given.text("globalWhiteRemoteAddresses"),
        acl_file_full_path=given.maybe("aclFileFullPath") or "",
    )
    code = RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG
    return await _tell(
        session, given, code, header, "update global white remote addresses to {} success."
    )


async def cluster_acl_config_version(session: Session, given: Given) -> Answer:
    """Say how new the accounts of each broker are."""
    addresses = await session.targets(
        given.maybe("brokerAddr"), given.maybe("clusterName"), slaves=True
    )
    rows = []
    for address in addresses:
        answered = await session.remote.call(
            address, RequestCode.GET_BROKER_CLUSTER_ACL_INFO, answer=AclVersionResponse
        )
        told = answered.header
        rows.append((told.cluster_name, told.broker_name, told.broker_addr, told.version))
    heads = ("#Cluster Name", "#Broker Name", "#Broker Addr", "#AclConfigVersion")
    return Answer([Table(heads, rows), "get cluster's plain access config version success."])


async def get_acl_config(session: Session, given: Given) -> Answer:
    """Say all accounts."""
    addresses = await session.targets(given.maybe("brokerAddr"), given.maybe("clusterName"))
    answer = Answer()
    data: dict[str, object] = {}
    for address in addresses:
        answered = await session.remote.call(address, RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG)
        told = ACL_CONFIG.decode(answered.body)
        data[address] = msgspec.to_builtins(told)
        answer.parts.append(f"globalWhiteRemoteAddresses: {list(told.global_white_addrs)}")
        answer.parts.append(Table(
            ("#AccessKey", "#Admin", "#Addresses", "#DefaultTopic", "#DefaultGroup", "#TopicPerms",
             "#GroupPerms"),
            [(each.access_key, each.admin, each.white_remote_address, each.default_topic_perm,
              each.default_group_perm, ",".join(each.topic_perms or ()),
              ",".join(each.group_perms or ())) for each in told.plain_access_configs],
        ))  # fmt: skip
    answer.data = data
    return answer
