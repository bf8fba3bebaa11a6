"""`plain_acl.yml` of Apache 4.x: read strictly, written whole.

    globalWhiteRemoteAddresses:
      - 10.10.103.*
    accounts:
      - accessKey: producer1
        secretKey: "12345678"
        whiteRemoteAddress:
        admin: false
        defaultTopicPerm: DENY
        defaultGroupPerm: SUB
        topicPerms:
          - orders=PUB
        groupPerms:
          - billing=SUB
    dataVersion:                    # written by requests that change the file
      - counter: 3
        timestamp: 1700000000000

Apache's own files are read as they are. What its reader passes over in silence is an error here,
with its line: names that mean nothing, permissions that are none, accounts that are there twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, NoReturn

from gantrymq.errors import InvalidValue, shown
from gantrymq.model.names import retry_topic
from gantrymq.security.accounts import (
    KEY_CHARACTERS_MAX,
    KEY_CHARACTERS_MIN,
    Account,
    Permission,
    Secret,
    read_permission,
)
from gantrymq.security.addresses import NOBODY, Addresses, read_pattern
from gantrymq.security.yaml_subset import (
    Mapping,
    Nothing,
    Plain,
    Sequence,
    Text,
    Value,
    WrongYaml,
    parse,
    write,
)

FILE_BYTES_MAX: Final = 4 * 1024 * 1024
ACCOUNTS_MAX: Final = 10_000
RESOURCES_MAX: Final = 10_000
"""Of one account."""

_TOP: Final = frozenset({"globalWhiteRemoteAddresses", "accounts", "dataVersion"})
_OF_ACCOUNT: Final = frozenset(
    {
        "accessKey", "secretKey", "whiteRemoteAddress", "admin", "defaultTopicPerm",
        "defaultGroupPerm", "topicPerms", "groupPerms",
    }
)  # fmt: skip
_YES: Final = frozenset({"true", "yes", "on"})
_NO: Final = frozenset({"false", "no", "off"})
_NOT_TEXT: Final = re.compile(r"[-+]?(0[0-9xob_]|[0-9]*[.:_][0-9.:_]*$|[0-9.]+[eE])|\d{4}-\d\d?-\d")
"""Plain, and not what it looks like: a YAML reader makes other numbers, or times, of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An account as its file has it: texts that can be written again."""

    account: Account
    topic_default: str | None = None
    group_default: str | None = None
    topic_perms: tuple[str, ...] | None = None
    group_perms: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountFile:
    """What one file says."""

    white_texts: tuple[str, ...] = ()
    white: tuple[Addresses, ...] = ()
    entries: tuple[Entry, ...] = ()
    counter: int = 0
    timestamp_ms: int = 0

    def with_entry(self, entry: Entry) -> AccountFile:
        """Return the same with an account in place of the one with its key, or behind the last."""
        key = entry.account.access_key
        kept = tuple(one for one in self.entries if one.account.access_key != key)
        return replace(self, entries=(*kept, entry))

    def without(self, access_key: str) -> AccountFile:
        """Return the same without an account."""
        kept = tuple(one for one in self.entries if one.account.access_key != access_key)
        return replace(self, entries=kept)

    def changed(self, now_ms: int) -> AccountFile:
        """Return the same with the next version."""
        return replace(self, counter=self.counter + 1, timestamp_ms=now_ms)


# -- reading ---------------------------------------------------------------------------------------


def read(content: bytes) -> AccountFile:
    """Return what a file says.

    Raises:
        InvalidValue: it is no such file; the line is named.
    """
    if len(content) > FILE_BYTES_MAX:
        raise InvalidValue(f"{len(content)} bytes are too many for accounts: {FILE_BYTES_MAX}")
    try:
        source = content.decode()
    except UnicodeDecodeError as error:
        raise InvalidValue(f"byte {error.start} is not UTF-8") from None
    top = parse(source)
    if isinstance(top, Nothing):
        return AccountFile()
    names = _entries(top, _TOP, "the file")
    white = _texts(names.get("globalWhiteRemoteAddresses"), "globalWhiteRemoteAddresses")
    entries = _accounts(names.get("accounts"))
    counter, timestamp = _version(names.get("dataVersion"))
    return AccountFile(
        white_texts=tuple(text.value for text in white),
        white=tuple(map(_pattern, white)),
        entries=entries,
        counter=counter,
        timestamp_ms=timestamp,
    )


def _fail(line: int, problem: str) -> NoReturn:
    raise WrongYaml(line, problem)


def _pattern(text: Text) -> Addresses:
    try:
        return read_pattern(text.value)
    except InvalidValue as error:
        raise WrongYaml(text.line, str(error)) from None


def _entries(value: Value, known: frozenset[str], what: str) -> dict[str, Value]:
    if not isinstance(value, Mapping):
        _fail(value.line, f"{what} is no map of names")
    for name, one in value.entries.items():
        if name not in known:
            _fail(
                one.line, f"{shown(name)} means nothing here; known are {', '.join(sorted(known))}"
            )
    return value.entries


def _items(value: Value | None, name: str) -> list[Value]:
    if value is None or isinstance(value, Nothing):
        return []
    if not isinstance(value, Sequence):
        _fail(value.line, f"{name} is a list: write each one behind a dash")
    return value.items


def _texts(value: Value | None, name: str) -> list[Text]:
    found = []
    for item in _items(value, name):
        if not isinstance(item, Text):
            _fail(item.line, f"{name} is a list of texts")
        found.append(item)
    return found


def _accounts(value: Value | None) -> tuple[Entry, ...]:
    items = _items(value, "accounts")
    if len(items) > ACCOUNTS_MAX:
        raise InvalidValue(f"{len(items)} accounts are too many: at most {ACCOUNTS_MAX}")
    seen: dict[str, int] = {}
    found = []
    for item in items:
        entry = _account(item)
        key = entry.account.access_key
        if key in seen:
            _fail(item.line, f"the access key {shown(key)} is in line {seen[key]} already")
        seen[key] = item.line
        found.append(entry)
    return tuple(found)


def _account(value: Value) -> Entry:
    names = _entries(value, _OF_ACCOUNT, "an account")
    line = value.line
    white = _text(names, "whiteRemoteAddress", may_be_number=True)
    topic_perms, group_perms = names.get("topicPerms"), names.get("groupPerms")
    try:
        return make_entry(
            access_key=_text(names, "accessKey") or "",
            secret_key=_text(names, "secretKey") or "",
            white=white or "",
            admin=_flag(names.get("admin")),
            topic_default=_text(names, "defaultTopicPerm"),
            group_default=_text(names, "defaultGroupPerm"),
            topic_perms=None if topic_perms is None else _values(topic_perms, "topicPerms"),
            group_perms=None if group_perms is None else _values(group_perms, "groupPerms"),
        )
    except WrongYaml:
        raise
    except InvalidValue as error:
        raise WrongYaml(line, str(error)) from None


def _values(value: Value, name: str) -> tuple[str, ...]:
    return tuple(text.value for text in _texts(value, name))


def _text(names: dict[str, Value], name: str, *, may_be_number: bool = False) -> str | None:
    value = names.get(name)
    if value is None or isinstance(value, Nothing):
        return None
    if not isinstance(value, Text):
        _fail(value.line, f"{name} is one text")
    if not value.quoted and not may_be_number and _NOT_TEXT.match(value.value):
        _fail(value.line, f"{name} is plain and may be read as another number; put it in quotes")
    return value.value


def _flag(value: Value | None) -> bool:
    if value is None or isinstance(value, Nothing):
        return False
    if isinstance(value, Text) and value.value.lower() in _YES | _NO:
        return value.value.lower() in _YES
    _fail(value.line, "admin is true or false")


def _version(value: Value | None) -> tuple[int, int]:
    items = _items(value, "dataVersion")
    if not items:
        return 0, 0
    known = frozenset({"counter", "timestamp", "stateVersion"})
    names = _entries(items[0], known, "dataVersion")
    return _whole(names.get("counter")), _whole(names.get("timestamp"))


def _whole(value: Value | None) -> int:
    if isinstance(value, Text) and re.fullmatch(r"[0-9]{1,19}", value.value):
        return int(value.value)
    return 0


# -- one account -----------------------------------------------------------------------------------


def make_entry(
    *,
    access_key: str,
    secret_key: str,
    white: str = "",
    admin: bool = False,
    topic_default: str | None = None,
    group_default: str | None = None,
    topic_perms: tuple[str, ...] | None = None,
    group_perms: tuple[str, ...] | None = None,
) -> Entry:
    """Return an account.

    Raises:
        InvalidValue: a key is too short, a permission is none, or an address is no pattern.
    """
    check_key("accessKey", access_key, shown(access_key))
    check_key("secretKey", secret_key, f"the one of {shown(access_key)}")
    resources = _resources("topicPerms", topic_perms or ())
    groups = _resources("groupPerms", group_perms or ())
    resources |= {retry_topic(group): permission for group, permission in groups.items()}
    if len(resources) > RESOURCES_MAX:
        raise InvalidValue(f"{len(resources)} permissions of one account are too many")
    account = Account(
        access_key=access_key,
        secret=Secret(secret_key),
        white=read_pattern(white) if white else NOBODY,
        white_text=white,
        admin=admin,
        topic_default=_default("defaultTopicPerm", topic_default),
        group_default=_default("defaultGroupPerm", group_default),
        resources=resources,
    )
    return Entry(
        account=account,
        topic_default=topic_default,
        group_default=group_default,
        topic_perms=topic_perms,
        group_perms=group_perms,
    )


def check_key(name: str, text: str, which: str) -> None:
    """Refuse a key that Apache would refuse, or that no header can carry.

    Raises:
        InvalidValue: it is too short or too long. A secret is not repeated.
    """
    if not KEY_CHARACTERS_MIN <= len(text) <= KEY_CHARACTERS_MAX:
        raise InvalidValue(
            f"{name} ({which}) has {len(text)} characters; it must have more than 6 and at most "
            f"{KEY_CHARACTERS_MAX}"
        )


def _default(name: str, text: str | None) -> Permission:
    if text is None or not text.strip():
        return Permission.DENY
    try:
        return read_permission(text)
    except InvalidValue as error:
        raise InvalidValue(f"{name}: {error}") from None


def _resources(name: str, texts: tuple[str, ...]) -> dict[str, Permission]:
    found: dict[str, Permission] = {}
    for text in texts:
        resource, equals, permission = text.partition("=")
        resource = resource.strip()
        if not equals or not resource:
            raise InvalidValue(f"{name}: {shown(text)!r} is not NAME=PERMISSION")
        if resource in found:
            raise InvalidValue(f"{name}: {shown(resource)} stands there twice")
        try:
            found[resource] = read_permission(permission)
        except InvalidValue as error:
            raise InvalidValue(f"{name}: {shown(resource)}: {error}") from None
    return found


# -- writing ---------------------------------------------------------------------------------------


def written(file: AccountFile) -> bytes:
    """Return the file's content; comments are lost, as when Apache writes it."""
    top: dict[str, Plain] = {}
    if file.white_texts:
        top["globalWhiteRemoteAddresses"] = list(file.white_texts)
    top["accounts"] = [_written(entry) for entry in file.entries]
    top["dataVersion"] = [{"counter": file.counter, "timestamp": file.timestamp_ms}]
    return write(top).encode()


def _written(entry: Entry) -> dict[str, Plain]:
    account = entry.account
    found: dict[str, Plain] = {
        "accessKey": account.access_key,
        "secretKey": account.secret.reveal(),
        "whiteRemoteAddress": account.white_text or None,
        "admin": account.admin,
    }
    if entry.topic_default is not None:
        found["defaultTopicPerm"] = entry.topic_default
    if entry.group_default is not None:
        found["defaultGroupPerm"] = entry.group_default
    if entry.topic_perms is not None:
        found["topicPerms"] = list(entry.topic_perms)
    if entry.group_perms is not None:
        found["groupPerms"] = list(entry.group_perms)
    return found
