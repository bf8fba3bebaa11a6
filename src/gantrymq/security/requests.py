"""Requests 50 to 54 while access control is on: accounts, read and changed in their files.

They need an administrator, as everything does that `needs` does not name. A secret goes in and
never comes out: whoever asks for the accounts gets stars. A file is named by a request only to
choose among those that there are, so that no path comes from the network.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.errors import InvalidValue, shown
from gantrymq.model.offsets import DataVersion
from gantrymq.security.account_file import AccountFile, Entry, make_entry
from gantrymq.security.addresses import read_pattern
from gantrymq.wire.bodies.auth import ACL_CONFIG, AclConfig, PlainAccess
from gantrymq.wire.bodies.topic import DATA_VERSION
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.acl import (
    AclVersionResponse,
    DeleteAclConfigRequest,
    UpdateAclConfigRequest,
    UpdateGlobalWhiteAddressesRequest,
)
from gantrymq.wire.response_errors import BrokerNotExist, PollingFull, PollingTimeout

if TYPE_CHECKING:
    from gantrymq.security.account_files import AccountFiles
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Handler, Peer

HIDDEN: Final = "******"
"""What stands where a secret would."""


class AccountRequests:
    """Answers requests about accounts. Owned by the event loop's thread."""

    def __init__(self, files: AccountFiles, *, name: str, address: str, cluster: str) -> None:
        self._files = files
        self._name = name
        self._address = address
        self._cluster = cluster

    @property
    def handlers(self) -> dict[int, Handler]:
        """Return what is handled here."""
        return {
            RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: self.update,
            RequestCode.DELETE_ACL_CONFIG: self.delete,
            RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: self.set_white,
            RequestCode.GET_BROKER_CLUSTER_ACL_INFO: self.version,
            RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: self.accounts,
        }

    def update(self, request: Command, _peer: Peer) -> Answer:
        """Make an account, or change one; what is not named of it stays."""
        asked = UpdateAclConfigRequest.decode(request.fields)
        try:
            path, known = self._find(asked.access_key)
            file = self._files.files.get(path, AccountFile())
            self._files.replace(path, file.with_entry(_changed(asked, known)))
        except InvalidValue as error:
            raise PollingFull(str(error)) from None  # 209, UPDATE_AND_CREATE_ACL_CONFIG_FAILED
        return request.response()

    def delete(self, request: Command, _peer: Peer) -> Answer:
        """Delete an account."""
        asked = DeleteAclConfigRequest.decode(request.fields)
        try:
            path, known = self._find(asked.access_key)
            if known is None:
                raise PollingTimeout(f"there is no account {shown(asked.access_key)}")
            self._files.replace(path, self._files.files[path].without(asked.access_key))
        except InvalidValue as error:
            raise PollingTimeout(str(error)) from None  # 210, DELETE_ACL_CONFIG_FAILED
        return request.response()

    def set_white(self, request: Command, _peer: Peer) -> Answer:
        """Say anew which addresses need no account, in one file."""
        asked = UpdateGlobalWhiteAddressesRequest.decode({"aclFileFullPath": "", **request.fields})
        named = asked.acl_file_full_path.strip()
        path = Path(named) if named else self._files.main_file
        texts = split_patterns(asked.global_white_addrs)
        try:
            if path not in self._files.files and path != self._files.main_file:
                raise BrokerNotExist(f"{shown(named)} is not an account file of this broker")
            file = self._files.files.get(path, AccountFile())
            white = tuple(map(read_pattern, texts))
            self._files.replace(path, replace(file, white_texts=texts, white=white))
        except InvalidValue as error:
            raise BrokerNotExist(str(error)) from None  # 211, UPDATE_GLOBAL_WHITE_ADDRS_...
        return request.response()

    def version(self, request: Command, _peer: Peer) -> Answer:
        """Answer the versions of the files."""
        files = self._files.files
        versions = {
            str(path): msgspec.Raw(DATA_VERSION.encode(_version(file)))
            for path, file in files.items()
        }
        main = files.get(self._files.main_file, AccountFile())
        header = AclVersionResponse(
            version=DATA_VERSION.encode(_version(main)).decode(),
            broker_name=self._name,
            broker_addr=self._address,
            cluster_name=self._cluster,
            all_acl_file_version=msgspec.json.encode(versions).decode(),
        )
        return request.response(fields=header.encode())

    def accounts(self, request: Command, _peer: Peer) -> Answer:
        """Answer all accounts, without their secrets."""
        files = self._files.files.values()
        config = AclConfig(
            global_white_addrs=tuple(text for file in files for text in file.white_texts),
            plain_access_configs=tuple(
                shown_account(one) for file in files for one in file.entries
            ),
        )
        return request.response(body=ACL_CONFIG.encode(config))

    def _find(self, access_key: str) -> tuple[Path, Entry | None]:
        """Return the file that an account is in, or should be, and the account."""
        for path, file in self._files.files.items():
            for entry in file.entries:
                if entry.account.access_key == access_key:
                    return path, entry
        return self._files.main_file, None


def _version(file: AccountFile) -> DataVersion:
    return DataVersion(0, file.timestamp_ms, file.counter)


def shown_account(entry: Entry) -> PlainAccess:
    """Return an account as anybody may see it who may see accounts."""
    account = entry.account
    return PlainAccess(
        access_key=account.access_key,
        secret_key=HIDDEN,
        white_remote_address=account.white_text or None,
        admin=account.admin,
        default_topic_perm=entry.topic_default,
        default_group_perm=entry.group_default,
        topic_perms=entry.topic_perms,
        group_perms=entry.group_perms,
    )


def split_patterns(text: str) -> tuple[str, ...]:
    """Split `a,b,10.0.0.{1,2}` at the commas that are not in braces."""
    found, depth, start = [], 0, 0
    for place, one in enumerate(text):
        if one in "{}":
            depth += 1 if one == "{" else -1
        elif one == "," and depth == 0:
            found.append(text[start:place])
            start = place + 1
    return tuple(part.strip() for part in (*found, text[start:]) if part.strip())


def _listed(text: str | None) -> tuple[str, ...] | None:
    """Return the parts of a list that a header has; None if it has none."""
    if text is None:
        return None
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _changed(asked: UpdateAclConfigRequest, known: Entry | None) -> Entry:
    """Return an account as a request wants it."""
    topic_perms, group_perms = _listed(asked.topic_perms), _listed(asked.group_perms)
    if known is None:
        return make_entry(
            access_key=asked.access_key,
            secret_key=asked.secret_key or "",
            white=asked.white_remote_address or "",
            admin=bool(asked.admin),
            topic_default=asked.default_topic_perm,
            group_default=asked.default_group_perm,
            topic_perms=topic_perms,
            group_perms=group_perms,
        )
    old, white = known.account, asked.white_remote_address
    secret = asked.secret_key if asked.secret_key not in {None, "", HIDDEN} else None
    return make_entry(
        access_key=asked.access_key,
        secret_key=secret or old.secret.reveal(),
        white=old.white_text if white is None else white,
        admin=old.admin if asked.admin is None else asked.admin,
        topic_default=asked.default_topic_perm or known.topic_default,
        group_default=asked.default_group_perm or known.group_default,
        topic_perms=known.topic_perms if topic_perms is None else topic_perms,
        group_perms=known.group_perms if group_perms is None else group_perms,
    )
