"""Users and what they may, as values: what nobody has allowed is denied.

A user has a role, and rules of its own beside it. A role gives a level for requests about the whole
server (`levels`) and rules; a rule gives actions for topics or groups, by whole names or by the
beginning of one. Rules add up, and there is none that takes away.

    publish     send to a topic
    subscribe   read a topic, consume as a group
    look        at offsets, statistics and members; publish and subscribe include it
    manage      make, change and delete a topic or a group, move a group

A beginning does not open the topics that hold messages of everybody (delayed, timed, half): those
must be named in full.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gantrymq.model.names import retry_topic
from gantrymq.model.roles import Role
from gantrymq.security.accounts import Permission, Secret, is_group, is_inner_topic
from gantrymq.security.addresses import NOBODY, Addresses

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ACTIONS: Final = {
    "publish": Permission.PUB,
    "subscribe": Permission.SUB,
    "look": Permission.LOOK,
    "manage": Permission.MANAGE,
}
WILD: Final = "*"
QUOTA: Final = ("send_bytes", "send_requests", "read_bytes", "read_requests", "connections")
"""What a quota may say; 0 is no limit, and what it does not say is the broker's default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Actions that are allowed for some topics or groups, as a file writes them."""

    actions: tuple[str, ...]
    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    @property
    def permission(self) -> Permission:
        """Return the actions as one value."""
        found = Permission.DENY
        for action in self.actions:
            found |= ACTIONS[action]
        return found

    @property
    def resources(self) -> Iterable[str]:
        """Return its topics, and its groups by their retry topics; the star is still there."""
        yield from self.topics
        yield from map(retry_topic, self.groups)


@dataclass(frozen=True, slots=True)
class Grants:
    """What several rules allow together."""

    exact: Mapping[str, Permission] = field(default_factory=dict)
    beginnings: tuple[tuple[str, Permission], ...] = ()

    def of(self, resource: str) -> Permission:
        """Return what is allowed for a topic or group."""
        found = self.exact.get(resource, Permission.DENY)
        if is_inner_topic(resource):
            return found
        group = is_group(resource)
        for beginning, permission in self.beginnings:
            if resource.startswith(beginning) and is_group(beginning) is group:
                found |= permission
        return found


def granted(rules: Iterable[Rule]) -> Grants:
    """Return what rules allow together; `*` of topics is not one of groups."""
    exact: dict[str, Permission] = {}
    beginnings: dict[str, Permission] = {}
    for rule in rules:
        for resource in rule.resources:
            name = resource.removesuffix(WILD)
            table = exact if name == resource else beginnings
            table[name] = table.get(name, Permission.DENY) | rule.permission
    return Grants(exact, tuple(beginnings.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """One user."""

    access_key: str
    secret: Secret | None = None
    level: Role = Role.NONE
    grants: Grants = Grants()
    certificates: tuple[str, ...] = ()
    """Names of certificates that prove who it is, without a signature."""
    quota: Mapping[str, int] = field(default_factory=dict)
    """How much it may do in a second, and how many connections it may have; see `QUOTA`."""

    @property
    def white(self) -> Addresses:
        """Return nobody: no address stands for a user."""
        return NOBODY

    @property
    def title(self) -> str:
        """Return how a sentence names it."""
        return f"the user {self.access_key}"

    @property
    def may_everything(self) -> bool:
        """Tell whether it is an administrator."""
        return self.level is Role.ADMIN

    def may(self, resource: str, wanted: Permission) -> bool:
        """Tell whether it has any of the wanted permissions for a topic or group."""
        if self.level is Role.ADMIN:
            return True
        if self.level >= Role.VIEWER and wanted & Permission.LOOK:
            return True
        return bool(self.grants.of(resource) & wanted)

    def lacks(self, wanted: Permission) -> str:
        """Return the wanted permissions as a file of users writes them."""
        return " or ".join(text for text, one in ACTIONS.items() if one & wanted)
