"""Accounts of a test: one for each role, in a file as Apache has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gantrymq.wire.signing import signed_fields
from support.samples import binary_request, json_request

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

WHITE = "10.9.9.*"
FILE = f"""\
globalWhiteRemoteAddresses:
  - {WHITE}
accounts:
  - accessKey: without1
    secretKey: without-secret
  - accessKey: publisher
    secretKey: publisher-secret
    defaultTopicPerm: PUB
    defaultGroupPerm: PUB
  - accessKey: subscriber
    secretKey: subscriber-secret
    defaultTopicPerm: SUB
    defaultGroupPerm: SUB
  - accessKey: both-of-them
    secretKey: both-secret
    defaultTopicPerm: PUB|SUB
    defaultGroupPerm: SUB|PUB
  - accessKey: administrator
    secretKey: administrator-secret
    admin: true
  - accessKey: from-its-host
    secretKey: host-secret
    whiteRemoteAddress: 10.8.8.8
"""
SECRETS = tuple(
    line.split()[1] for line in FILE.splitlines() if line.strip().startswith("secretKey")
)


class Signer(NamedTuple):
    """Who signs the requests of a test."""

    access_key: str
    secret_key: str
    security_token: str | None = None


WITHOUT = Signer("without1", "without-secret")
PUBLISHER = Signer("publisher", "publisher-secret")
SUBSCRIBER = Signer("subscriber", "subscriber-secret")
BOTH = Signer("both-of-them", "both-secret")
ADMIN = Signer("administrator", "administrator-secret")
WRONG = Signer("administrator", "not-the-secret")
HOST = Signer("from-its-host", "anything")


def write_accounts(folder: Path, text: str = FILE) -> Path:
    """Write a file of accounts for its owner alone; return the folder."""
    path = folder / "plain_acl.yml"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return folder


def signed_request(
    signer: Signer | None,
    code: int,
    fields: Mapping[str, object],
    body: bytes = b"",
    *,
    binary: bool = False,
    flag: int = 0,
) -> bytes:
    """Return a request as a client with a hook for access control sends it."""
    texts = {name: str(value) for name, value in fields.items()}
    if signer is not None:
        texts = signed_fields(signer, texts, body)
    if not binary:
        return json_request(code, texts, body, flag=flag)
    short = code & 0xFFFF
    return binary_request(short - 0x10000 if short > 0x7FFF else short, texts, body, flag=flag)
