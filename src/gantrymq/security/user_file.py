"""`users.toml`: read strictly, written whole.

    [roles.shop]                    # a role of your own, beside viewer, operator and admin
    base = "viewer"                 # what it may do with the server as a whole; nothing without it
    rules = [
      { topics = ["Orders", "Payments*"], actions = ["publish", "subscribe"] },
      { groups = ["shop-*"], actions = ["subscribe"] },
    ]

    [users.orders-service]          # the name is the access key
    role = "shop"
    secret = "seal1.…"              # made by `gantrymq user`, see `sealing`
    rules = [ { topics = ["Audit"], actions = ["publish"] } ]
    certificates = ["dns:orders.example.com"]    # else the one with the commonName orders-service
    quota = { send_bytes = 10_000_000, read_requests = 500, connections = 20 }    # for a second

A role may have a quota, too: each of its users has so much, unless it says something else itself.

Names that mean nothing, roles and actions that there are not, patterns with the star elsewhere than
at the end, secrets that are not sealed: all of them are errors that say where. A file is written
without the comments that it had.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue, shown
from gantrymq.model.names import RETRY_PREFIX
from gantrymq.model.roles import GIVEN, Role
from gantrymq.security.sealing import is_sealed
from gantrymq.security.users import ACTIONS, QUOTA, Rule, User, granted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gantrymq.security.sealing import SealKey

FILE_BYTES_MAX: Final = 4 * 1024 * 1024
USERS_MAX: Final = 10_000
RATE_MAX: Final = 2**53
NAMES_MAX: Final = 10_000
"""Of topics and groups in the rules of one user or role."""
HEAD: Final = """\
# Users of gantrymq. `gantrymq user` writes this file and keeps no other comments.
# A name is the access key; secrets are sealed with the key file beside it. See docs/security.md.
"""
_ACCESS_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")
_PATTERN: Final = re.compile(r"\*|[%|A-Za-z0-9_+-]+\*?")
_CERTIFICATE: Final = re.compile(r"(?!.*[\ud800-\udfff])(?:cn:.+|dns:[^A-Z\s]+|uri:\S+)")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleEntry:
    """A role as a file defines it."""

    base: str = ""
    rules: tuple[Rule, ...] = ()
    quota: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserEntry:
    """A user as a file has it; the secret is sealed."""

    role: str = ""
    sealed: str = field(default="", repr=False)
    rules: tuple[Rule, ...] = ()
    certificates: tuple[str, ...] | None = None
    """None is one: that whose commonName is the user's name."""
    quota: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UserFile:
    """What a file says."""

    roles: Mapping[str, RoleEntry] = field(default_factory=dict)
    users: Mapping[str, UserEntry] = field(default_factory=dict)

    def with_user(self, name: str, entry: UserEntry) -> UserFile:
        """Return the same with a user in place of the one with this name, or behind the last."""
        return replace(self, users={**self.users, name: entry})

    def without(self, name: str) -> UserFile:
        """Return the same without a user."""
        return replace(self, users={key: one for key, one in self.users.items() if key != name})

    def level(self, entry: UserEntry) -> Role:
        """Return what a user may do with the server as a whole."""
        role = self.roles.get(entry.role)
        return GIVEN.get(entry.role if role is None else role.base, Role.NONE)

    def admins(self) -> list[str]:
        """Return the names of the administrators."""
        return [name for name, one in self.users.items() if self.level(one) is Role.ADMIN]


def built_users(file: UserFile, key: SealKey | None) -> dict[str, User]:
    """Return the users of a file; `key` opens their secrets, if any has one.

    Raises:
        InvalidValue: a secret cannot be opened.
    """
    found = {}
    for name, entry in file.users.items():
        role = file.roles.get(entry.role, RoleEntry())
        found[name] = User(
            access_key=name,
            secret=key.open(name, entry.sealed) if entry.sealed and key is not None else None,
            level=file.level(entry),
            grants=granted((*role.rules, *entry.rules)),
            certificates=certificates_of(name, entry),
            quota={**role.quota, **entry.quota},
        )
    return found


def certificates_of(name: str, entry: UserEntry) -> tuple[str, ...]:
    """Return which certificates are a user's."""
    return (f"cn:{name}",) if entry.certificates is None else entry.certificates


# -- reading ---------------------------------------------------------------------------------------


def read(content: bytes) -> UserFile:
    """Return what a file says.

    Raises:
        InvalidValue: it is no such file; the place and what to do are named.
    """
    if len(content) > FILE_BYTES_MAX:
        raise InvalidValue(f"{len(content)} bytes are too many for users: {FILE_BYTES_MAX}")
    try:
        top = tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise InvalidValue(f"byte {error.start} is not UTF-8") from None
    except (ValueError, RecursionError) as error:  # of the first an error of TOML is a kind
        raise InvalidValue(f"it is not TOML: {error}") from None
    _known(top, {"roles", "users"}, "the file")
    roles = {name: _role(name, one) for name, one in _table(top.get("roles", {}), "roles")}
    users = {name: _user(name, one, roles) for name, one in _table(top.get("users", {}), "users")}
    if len(users) > USERS_MAX:
        raise InvalidValue(f"{len(users)} users are too many: at most {USERS_MAX}")
    check_certificates(users)
    return UserFile(roles, users)


def _table(value: object, where: str) -> Iterator[tuple[str, dict[str, object]]]:
    if not isinstance(value, dict):
        raise InvalidValue(f"{where} is no table: write [{where}.NAME]")
    for name, one in value.items():
        if not isinstance(one, dict):
            raise InvalidValue(f"{where}.{shown(name)} is no table: write [{where}.{shown(name)}]")
        yield name, one


def _known(table: Mapping[str, object], known: set[str], where: str) -> None:
    for name in table:
        if name not in known:
            raise InvalidValue(
                f"{where}: {shown(name)!r} means nothing here; known are {', '.join(sorted(known))}"
            )


def _text(table: Mapping[str, object], name: str, where: str) -> str:
    value = table.get(name, "")
    if not isinstance(value, str):
        raise InvalidValue(f"{where}.{name} is no text: put it in quotes")
    return value


def _role(name: str, table: Mapping[str, object]) -> RoleEntry:
    where = f"roles.{shown(name)}"
    if name in GIVEN:
        raise InvalidValue(f"{where}: {name} is there already; give your role another name")
    if not _ACCESS_KEY.fullmatch(name):
        raise InvalidValue(f"{where}: a name has letters, digits and . _ @ -, at most 128")
    _known(table, {"base", "quota", "rules"}, where)
    base = _text(table, "base", where)
    if base and base not in GIVEN:
        raise InvalidValue(
            f"{where}.base is {shown(base)!r}: say one of {', '.join(GIVEN)}, or leave it out"
        )
    return RoleEntry(
        base=base, rules=_rules(table.get("rules", []), where), quota=_quota(table, where)
    )


def _user(name: str, table: Mapping[str, object], roles: Mapping[str, RoleEntry]) -> UserEntry:
    where = f"users.{shown(name)}"
    check_name(name)
    _known(table, {"certificates", "quota", "role", "rules", "secret"}, where)
    sealed = _text(table, "secret", where)
    if sealed and not is_sealed(sealed):
        raise InvalidValue(
            f"{where}.secret is not sealed, and a secret must not stand in the file as it is; take "
            f"it out and run `gantrymq user passwd {shown(name)}`"
        )
    entry = UserEntry(
        role=_text(table, "role", where),
        sealed=sealed,
        rules=_rules(table.get("rules", []), where),
        certificates=_texts(table, "certificates", where) if "certificates" in table else None,
        quota=_quota(table, where),
    )
    for one in entry.certificates or ():
        check_certificate(one, where)
    check_role(entry.role, roles, f"{where}.role")
    return entry


def _quota(table: Mapping[str, object], where: str) -> dict[str, int]:
    value = table.get("quota", {})
    if not isinstance(value, dict):
        raise InvalidValue(f"{where}.quota is no table: write quota = {{ send_bytes = 1000000 }}")
    _known(value, set(QUOTA), f"{where}.quota")
    found = {}
    for name, number in value.items():
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= RATE_MAX:
            raise InvalidValue(
                f"{where}.quota.{name} is {shown(str(number))!r}: give a whole number from 0, "
                f"which is no limit, to {RATE_MAX}"
            )
        found[name] = number
    return found


def check_name(name: str) -> None:
    """Refuse what cannot be the name of a user.

    Raises:
        InvalidValue: it has other characters, or too many.
    """
    if not _ACCESS_KEY.fullmatch(name):
        raise InvalidValue(
            f"{shown(name)!r} cannot be a user's name: it begins with a letter or a digit and has "
            "letters, digits and . _ @ -, at most 128"
        )


def check_role(role: str, roles: Mapping[str, RoleEntry], where: str) -> None:
    """Refuse a role that there is not.

    Raises:
        InvalidValue: it is neither built in nor defined.
    """
    if role and role not in GIVEN and role not in roles:
        known = ", ".join((*GIVEN, *roles))
        raise InvalidValue(
            f"{where} is {shown(role)!r}, which is no role: say one of {known}, or define "
            f"[roles.{shown(role)}]"
        )


def check_certificate(name: str, where: str) -> None:
    """Refuse what no certificate can be called.

    Raises:
        InvalidValue: it does not say which name of a certificate it is.
    """
    if not _CERTIFICATE.fullmatch(name):
        raise InvalidValue(
            f"{where}: {shown(name)!r} is no name of a certificate: write cn:NAME, dns:HOST in "
            "small letters, or uri:URI"
        )


def check_certificates(users: Mapping[str, UserEntry]) -> None:
    """Refuse a certificate of two users.

    Raises:
        InvalidValue: both are named.
    """
    owners: dict[str, str] = {}
    for name, entry in users.items():
        for certificate in certificates_of(name, entry):
            owner = owners.setdefault(certificate, name)
            if owner != name:
                raise InvalidValue(
                    f"the certificate {shown(certificate)} is of {shown(owner)} and of "
                    f"{shown(name)}; let one of them have it (certificates = [...])"
                )


def _rules(value: object, where: str) -> tuple[Rule, ...]:
    if not isinstance(value, list):
        raise InvalidValue(f"{where}.rules is no list: write rules = [ {{ ... }}, ... ]")
    found = []
    for number, one in enumerate(value, 1):
        place = f"{where}.rules, number {number}"
        if not isinstance(one, dict):
            raise InvalidValue(
                f"{place}: write {{ topics = [...], actions = [...] }}, or groups = [...]"
            )
        _known(one, {"topics", "groups", "actions"}, place)
        found.append(
            checked_rule(
                Rule(
                    actions=_texts(one, "actions", place),
                    topics=_texts(one, "topics", place),
                    groups=_texts(one, "groups", place),
                ),
                place,
            )
        )
    if sum(len(one.topics) + len(one.groups) for one in found) > NAMES_MAX:
        raise InvalidValue(f"{where} has more than {NAMES_MAX} topics and groups in its rules")
    return tuple(found)


def _texts(table: Mapping[str, object], name: str, where: str) -> tuple[str, ...]:
    value = table.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise InvalidValue(f'{where}: {name} is no list of texts: write {name} = ["..."]')
    return tuple(value)


def checked_rule(rule: Rule, where: str) -> Rule:
    """Return a rule that can be one.

    Raises:
        InvalidValue: an action that there is not, a name that cannot be, or nothing of either.
    """
    for action in rule.actions:
        if action not in ACTIONS:
            raise InvalidValue(
                f"{where}: there is no action {shown(action)!r}; actions are {', '.join(ACTIONS)}, "
                "and what is about the whole server comes with a role"
            )
    if not rule.actions or not (rule.topics or rule.groups):
        raise InvalidValue(f"{where}: a rule names actions, and topics or groups")
    if rule.groups and "publish" in rule.actions:
        raise InvalidValue(
            f"{where}: publish is an action for topics; give the groups a rule of their own"
        )
    for name in (*rule.topics, *rule.groups):
        if not _PATTERN.fullmatch(name):
            raise InvalidValue(
                f"{where}: {shown(name)!r} is no name and no beginning of one; a star stands at "
                "the end, as in Orders*"
            )
        if name.startswith(RETRY_PREFIX):
            raise InvalidValue(
                f"{where}: {shown(name)} belongs to a group: name the group, without {RETRY_PREFIX}"
            )
    return rule


# -- writing ---------------------------------------------------------------------------------------


def written(file: UserFile) -> bytes:
    """Return the file's content."""
    lines = [HEAD]
    for name, role in file.roles.items():
        lines.append(f"[roles.{_quoted(name)}]")
        if role.base:
            lines.append(f"base = {json.dumps(role.base)}")
        lines += [*_written_quota(role.quota), *_written_rules(role.rules), ""]
    for name, user in file.users.items():
        lines.append(f"[users.{_quoted(name)}]")
        if user.role:
            lines.append(f"role = {json.dumps(user.role)}")
        if user.sealed:
            lines.append(f"secret = {json.dumps(user.sealed)}")
        if user.certificates is not None:
            lines.append(f"certificates = [{', '.join(map(_text_of, user.certificates))}]")
        lines += [*_written_quota(user.quota), *_written_rules(user.rules), ""]
    return ("\n".join(lines).rstrip() + "\n").encode()


def _quoted(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)


def _text_of(name: str) -> str:
    """Return a text as TOML has it: as JSON does, but for the one character that it lets stand."""
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")


def _written_quota(quota: Mapping[str, int]) -> Iterator[str]:
    if quota:
        parts = ", ".join(f"{name} = {number}" for name, number in quota.items())
        yield f"quota = {{ {parts} }}"


def _written_rules(rules: tuple[Rule, ...]) -> Iterator[str]:
    if not rules:
        return
    yield "rules = ["
    for rule in rules:
        parts = [
            f"{name} = {json.dumps(list(texts))}"
            for name, texts in (
                ("topics", rule.topics),
                ("groups", rule.groups),
                ("actions", rule.actions),
            )
            if texts
        ]
        yield f"  {{ {', '.join(parts)} }},"
    yield "]"
