"""Accounts (4.9), users and policies (5.x)."""

from gantrymq.wire.fields import Header


class UpdateAclConfigRequest(Header, frozen=True, kw_only=True):
    """UPDATE_AND_CREATE_ACL_CONFIG; lists are joined by commas."""

    access_key: str
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: bool | None = None
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: str | None = None
    group_perms: str | None = None


class DeleteAclConfigRequest(Header, frozen=True, kw_only=True):
    """DELETE_ACL_CONFIG."""

    access_key: str


class AclVersionResponse(Header, frozen=True, kw_only=True):
    """GET_BROKER_CLUSTER_ACL_INFO."""

    version: str
    """Data version as JSON."""
    broker_name: str
    broker_addr: str
    cluster_name: str
    all_acl_file_version: str | None = None


class UpdateGlobalWhiteAddressesRequest(Header, frozen=True, kw_only=True):
    """UPDATE_GLOBAL_WHITE_ADDRS_CONFIG."""

    global_white_addrs: str
    acl_file_full_path: str


class UserRequest(Header, frozen=True, kw_only=True):
    """AUTH_CREATE_USER, AUTH_UPDATE_USER, AUTH_DELETE_USER and AUTH_GET_USER."""

    username: str | None = None


class ListUsersRequest(Header, frozen=True, kw_only=True):
    """AUTH_LIST_USER."""

    filter: str | None = None


class SubjectRequest(Header, frozen=True, kw_only=True):
    """AUTH_CREATE_ACL, AUTH_UPDATE_ACL and AUTH_GET_ACL."""

    subject: str | None = None


class DeleteAclRequest(Header, frozen=True, kw_only=True):
    """AUTH_DELETE_ACL."""

    subject: str | None = None
    policy_type: str | None = None
    resource: str | None = None


class ListAclsRequest(Header, frozen=True, kw_only=True):
    """AUTH_LIST_ACL."""

    subject_filter: str | None = None
    resource_filter: str | None = None
