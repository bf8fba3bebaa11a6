"""`gantrymq user`: the users of brokers and name servers, in their file, also while those run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.cli.arguments import BAD_USAGE, FAILED, PROGRAM, SUCCESS, CommandParser
from gantrymq.cli.output import Answer, Table, show
from gantrymq.errors import GantryError, InvalidValue, shown
from gantrymq.security.accounts import Secret
from gantrymq.security.live_users import FILE_NAME, key_path_of
from gantrymq.security.user_editing import UserEditing, generated_secret
from gantrymq.security.user_file import (
    UserEntry,
    certificates_of,
    check_certificate,
    checked_rule,
)
from gantrymq.security.users import ACTIONS, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gantrymq.security.user_file import UserFile

NAME: Final = f"{PROGRAM} user"
SECRET_BYTES_MAX: Final = 4096

HELP: Final = f"""\
Users of brokers and name servers: who may do what, in a file of TOML. What no role and no rule
allows is denied. A server with aclEnable=true that finds the file takes a change within a second
or two.

  {NAME} add root-admin --role admin            the first one; its secret is shown once
  {NAME} add orders --topic 'Orders*=publish'   may send to topics that begin with Orders
  {NAME} add billing --topic Orders=subscribe --group billing=subscribe
  {NAME} add mailer --no-secret --certificate dns:mailer.example.com
                                                its TLS certificate proves who it is
  {NAME} list
  {NAME} passwd orders                          another secret; the old one holds no longer
  {NAME} remove orders
  {NAME} rekey                                  seal the secrets, which stay, with another key

roles:
  viewer    looks at everything, at no message
  operator  also makes, changes and deletes topics and groups, and moves groups
  admin     everything
  Roles of your own are written into the file: [roles.NAME] with base and rules.

actions for topics and groups:
  publish, subscribe, look (offsets, statistics, members), manage (make, change, delete)

The file is written whole or not at all; comments in it are lost. Secrets in it are sealed with a
key file, made with mode 600 for the first of them: a server needs both files, so keep a copy of the
key, apart. The settings usersFile and usersKeyFile name other places."""


class _Names(NamedTuple):
    """One `--topic` or `--group`."""

    name: str
    actions: tuple[str, ...]


def _named(text: str) -> _Names:
    name, _, actions = text.partition("=")
    found = tuple(part.strip() for part in actions.split(",") if part.strip())
    if not name or not found:
        raise argparse.ArgumentTypeError(
            f"{shown(text)!r} is not NAME=ACTION,...; actions are {', '.join(ACTIONS)}"
        )
    return _Names(name, found)


def _parser() -> CommandParser:
    made = CommandParser(
        prog=NAME, description=HELP, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    made.add_argument("verb", choices=("add", "list", "remove", "passwd", "rekey"))
    made.add_argument("name", nargs="?", metavar="NAME", help="the user: its access key")
    made.add_argument("--file", type=Path, default=Path(FILE_NAME), metavar="FILE",
                      help=f"the file of users (default: ./{FILE_NAME}); keep it where the "
                      "server's settings file is")  # fmt: skip
    made.add_argument("--key-file", type=Path, metavar="FILE",
                      help="the key of its secrets (default: beside it, users.key)")  # fmt: skip
    made.add_argument("--role", default="", metavar="ROLE",
                      help="add: viewer, operator, admin, or one of the file's own")  # fmt: skip
    made.add_argument("--topic", type=_named, action="append", default=[],
                      metavar="NAME=ACTIONS", help="add: a rule; NAME may end with *")  # fmt: skip
    made.add_argument("--group", type=_named, action="append", default=[],
                      metavar="NAME=ACTIONS", help="add: the same for a group")  # fmt: skip
    made.add_argument("--secret-file", type=Path, metavar="FILE",
                      help="add, passwd: take its first line; else a secret is made")  # fmt: skip
    made.add_argument("--no-secret", action="store_true",
                      help="add: a certificate alone proves who it is")  # fmt: skip
    made.add_argument("--certificate", action="append", metavar="NAME",
                      help="add: its certificate, cn:NAME, dns:HOST or uri:URI "
                      "(default: the commonName is the user's name)")  # fmt: skip
    made.add_argument("--force", action="store_true",
                      help="remove: also the last admin of the file")  # fmt: skip
    made.add_argument("--json", action="store_true", help="list: print JSON")
    return made


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if (chosen.name is None) != (chosen.verb in {"list", "rekey"}):
        parser.error("add, remove and passwd take a name, list and rekey take none")
    if chosen.no_secret and chosen.secret_file is not None:
        parser.error("--no-secret and --secret-file say two things: give one of them")
    for verbs, given in _given(chosen):
        if given and chosen.verb not in verbs:
            parser.error(f"{given} is for {' and '.join(verbs)}")
    key_path = chosen.key_file or key_path_of(chosen.file)
    try:
        return _run(chosen, UserEditing(chosen.file, key_path))
    except InvalidValue as error:
        sys.stderr.write(f"{NAME}: {error}\n")
        return BAD_USAGE
    except (GantryError, OSError) as error:
        sys.stderr.write(f"{NAME}: {error}\n")
        return FAILED


def _given(chosen: argparse.Namespace) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield options that were given, and what they are for."""
    yield ("add",), "--role" if chosen.role else ""
    yield ("add",), "--topic" if chosen.topic else ""
    yield ("add",), "--group" if chosen.group else ""
    yield ("add", "passwd"), "--secret-file" if chosen.secret_file else ""
    yield ("add",), "--no-secret" if chosen.no_secret else ""
    yield ("add",), "--certificate" if chosen.certificate else ""
    yield ("remove",), "--force" if chosen.force else ""
    yield ("list",), "--json" if chosen.json else ""


def _run(chosen: argparse.Namespace, users: UserEditing) -> int:
    if chosen.verb == "list":
        return show(Answer([_listed(users.read())]), as_json=chosen.json)
    loses_comments = users.has_comments
    if chosen.verb == "remove":
        users.remove(chosen.name, even_last_admin=chosen.force)
        sys.stdout.write(f"removed {chosen.name}\n")
    elif chosen.verb == "rekey":
        count, was_begun = users.rekey()
        how = ", which ends a change that was interrupted" if was_begun else ""
        sys.stdout.write(f"{count} secrets are sealed with another key{how}\n")
    else:
        _give(chosen, users)
    if loses_comments:
        sys.stderr.write(f"note: the comments of {chosen.file} were not kept\n")
    return SUCCESS


def _give(chosen: argparse.Namespace, users: UserEditing) -> None:
    """Add a user, or give one another secret."""
    secret = _secret(chosen.secret_file)
    if chosen.verb == "passwd":
        users.change_secret(chosen.name, secret)
        sys.stdout.write(f"{chosen.name} has another secret\n")
    else:
        file = users.add(chosen.name, _entry(chosen), None if chosen.no_secret else secret)
        sys.stdout.write(f"added {chosen.name}\n")
        if not file.admins():
            sys.stderr.write(
                f"note: {chosen.file} has no admin yet, and a server without one in its account "
                "files would not take it\n"
            )
    if chosen.secret_file is None and not chosen.no_secret:
        sys.stdout.write(f"  secret {secret.reveal()} (shown this once)\n")


def _listed(file: UserFile) -> Table:
    rows = [
        (
            name,
            entry.role or "-",
            "sealed" if entry.sealed else "none",
            " ".join(certificates_of(name, entry)),
            _shown_rules(entry.rules),
        )
        for name, entry in file.users.items()
    ]
    return Table(("User", "Role", "Secret", "Certificates", "Rules"), rows)


def _shown_rules(rules: tuple[Rule, ...]) -> str:
    return "; ".join(
        f"{','.join(rule.actions)}: "
        + " ".join((*rule.topics, *(f"group {group}" for group in rule.groups)))
        for rule in rules
    )


def _entry(chosen: argparse.Namespace) -> UserEntry:
    topics = [Rule(actions=actions, topics=(name,)) for name, actions in chosen.topic]
    groups = [Rule(actions=actions, groups=(name,)) for name, actions in chosen.group]
    rules = tuple(checked_rule(rule, "the rule") for rule in (*topics, *groups))
    named = None if chosen.certificate is None else tuple(chosen.certificate)
    for one in named or ():
        check_certificate(one, "--certificate")
    return UserEntry(role=chosen.role, rules=rules, certificates=named)


def _secret(path: Path | None) -> Secret:
    """Return the first line of a file, or a secret that is made now."""
    if path is None:
        return generated_secret()
    with path.open("rb") as file:
        line = file.read(SECRET_BYTES_MAX).splitlines()[:1]
    if not line:
        raise InvalidValue(f"{path} is empty: the secret is its first line")
    try:
        return Secret(line[0].decode())
    except UnicodeDecodeError:
        raise InvalidValue(f"the first line of {path} is not UTF-8") from None
