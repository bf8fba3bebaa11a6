"""Accounts and what they may, as values; a set of them is replaced as a whole.

The meaning is that of Apache's PlainPermissionManager: a permission for a topic or a group by name
counts before the default one, a default that is not set denies, and an account that is `admin` and
has no permission by name may do everything. A group is written `%RETRY%group` among the resources,
as Apache does: who may consume as a group may use its retry topic.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntFlag
from typing import TYPE_CHECKING, Final, Protocol

from gantrymq.errors import InvalidValue, shown
from gantrymq.model.names import NO_SEND_TOPICS, RETRY_PREFIX, SYSTEM_TOPIC_PREFIX
from gantrymq.model.roles import Role
from gantrymq.security.addresses import NOBODY, Addresses

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY_CHARACTERS_MIN: Final = 7
"""Of an access key and of a secret: Apache wants more than 6."""
KEY_CHARACTERS_MAX: Final = 1024
NO_QUOTA: Final[Mapping[str, int]] = {}


class Permission(IntFlag):
    """What may be done with a topic or as a group; 0 is DENY. Apache knows PUB and SUB."""

    DENY = 0
    PUB = 4
    SUB = 8
    LOOK = 16
    """At offsets, statistics and members; whoever has PUB or SUB may look as well."""
    MANAGE = 32
    """Make, change and delete it."""


PUB_SUB: Final = Permission.PUB | Permission.SUB
LOOKING: Final = PUB_SUB | Permission.LOOK
_TEXTS: Final = {
    "DENY": Permission.DENY,
    "PUB": Permission.PUB,
    "SUB": Permission.SUB,
    "PUB|SUB": PUB_SUB,
    "SUB|PUB": PUB_SUB,
}


def read_permission(text: str) -> Permission:
    """Return the permission that a text names.

    Raises:
        InvalidValue: it names none. Apache takes that for DENY; a misspelt one should be noticed.
    """
    found = _TEXTS.get(text.strip())
    if found is None:
        raise InvalidValue(f"{shown(text)!r} is not DENY, PUB, SUB or PUB|SUB")
    return found


class Secret:
    """A secret key: nothing that prints or logs values shows it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return it, to sign with or to write into the account file."""
        return self._text

    def __repr__(self) -> str:
        """Return stars."""
        return "Secret(***)"

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse to be copied to where it might be shown."""
        raise TypeError("a secret does not leave its process")

    def __eq__(self, other: object) -> bool:
        """Tell whether two are the same."""
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        """Return what goes with `__eq__`."""
        return hash(self._text)


def is_group(resource: str) -> bool:
    """Tell whether a resource is a group, by its retry topic."""
    return resource.startswith(RETRY_PREFIX)


def is_inner_topic(resource: str) -> bool:
    """Tell whether a topic holds what belongs to many: half, delayed and timed messages."""
    return resource in NO_SEND_TOPICS or resource.startswith(SYSTEM_TOPIC_PREFIX)


def named(resource: str) -> str:
    """Return a resource as a sentence names it."""
    if is_group(resource):
        return f"group {shown(resource.removeprefix(RETRY_PREFIX))}"
    return f"topic {shown(resource)}"


class Principal(Protocol):
    """Somebody whose requests are judged: an account of Apache's files, or a user of ours."""

    @property
    def access_key(self) -> str:
        """Return the name that requests are signed for."""
        ...

    @property
    def secret(self) -> Secret | None:
        """Return what they are signed with; None if only a certificate can prove who it is."""
        ...

    @property
    def white(self) -> Addresses:
        """Return where it may do everything from, unsigned."""
        ...

    @property
    def title(self) -> str:
        """Return how a sentence names it."""
        ...

    @property
    def level(self) -> Role:
        """Return what it may do with the server as a whole."""
        ...

    @property
    def may_everything(self) -> bool:
        """Tell whether there is nothing that it may not do."""
        ...

    @property
    def quota(self) -> Mapping[str, int]:
        """Return how much it may send and read in a second, as far as its file says that."""
        ...

    def may(self, resource: str, wanted: Permission) -> bool:
        """Tell whether it has any of the wanted permissions for a topic or group."""
        ...

    def lacks(self, wanted: Permission) -> str:
        """Return the wanted permissions as its file writes them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One account."""

    access_key: str
    secret: Secret
    white: Addresses = NOBODY
    """From here it may do everything, unsigned."""
    white_text: str = ""
    admin: bool = False
    topic_default: Permission = Permission.DENY
    group_default: Permission = Permission.DENY
    resources: Mapping[str, Permission] = field(default_factory=dict)
    """Topics, and retry topics of groups, by name."""

    @property
    def secret_key(self) -> str:
        """Return the secret, to sign with."""
        return self.secret.reveal()

    @property
    def security_token(self) -> None:
        """Return none: accounts of a file have no tokens."""
        return

    @property
    def title(self) -> str:
        """Return how a sentence names it."""
        return f"the account {self.access_key}"

    @property
    def quota(self) -> Mapping[str, int]:
        """Return nothing: Apache's files know no quotas, so the broker's defaults hold."""
        return NO_QUOTA

    @property
    def level(self) -> Role:
        """Return what it may do with the server as a whole: everything, or nothing."""
        return Role.ADMIN if self.admin else Role.NONE

    @property
    def may_everything(self) -> bool:
        """Tell whether it is an administrator whom no permission by name limits."""
        return self.admin and not self.resources

    def may(self, resource: str, wanted: Permission) -> bool:
        """Tell whether it has any of the wanted permissions for a topic or group."""
        if self.may_everything:
            return True
        owned = self.resources.get(resource)
        if owned is None:
            if is_group(resource):
                owned = self.group_default
            elif is_inner_topic(resource):
                return False  # a default is for the topics of users
            else:
                owned = self.topic_default
        return bool(owned & wanted)

    def lacks(self, wanted: Permission) -> str:
        """Return the wanted permissions as Apache's file writes them."""
        named = {Permission.PUB: "PUB", Permission.SUB: "SUB"}
        return " or ".join(text for one, text in named.items() if one & wanted)


@dataclass(frozen=True, slots=True)
class Rules:
    """All accounts of a server, and the addresses that need none."""

    white: Addresses = NOBODY
    accounts: Mapping[str, Account] = field(default_factory=dict)
    """Of Apache's files."""
    users: Mapping[str, Principal] = field(default_factory=dict)
    """Of the file of users."""
    certificates: Mapping[str, Principal] = field(default_factory=dict)
    """Users by the names of their certificates."""

    def find(self, access_key: str) -> Principal | None:
        """Return whom a name belongs to; no name is in both."""
        return self.accounts.get(access_key) or self.users.get(access_key)
