"""`gantrymq dashboard user`: accounts in the dashboard's folder, also while it runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.cli.arguments import BAD_USAGE, FAILED, SUCCESS, CommandParser
from gantrymq.cli.dashboard import FOLDER, NAME, read_password
from gantrymq.dashboard.accounts import Accounts, generated_password, make_account
from gantrymq.errors import GantryError, InvalidValue
from gantrymq.model.roles import Role

if TYPE_CHECKING:
    from collections.abc import Sequence

HELP: Final = f"""\
Accounts of a dashboard. A change holds at once, and logs out whom it is about.

  {NAME} user list
  {NAME} user set anna --role operator --password-file anna.txt
  {NAME} user set anna              without a file: a password is made and shown once
  {NAME} user delete anna"""


def _parser() -> CommandParser:
    made = CommandParser(
        prog=f"{NAME} user", description=HELP, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    made.add_argument("verb", choices=("list", "set", "delete"))
    made.add_argument("name", nargs="?", metavar="NAME")
    made.add_argument("--role", default=None, metavar="ROLE", help="viewer, operator or admin")
    made.add_argument("--password-file", type=Path, metavar="FILE", help="its first line")
    made.add_argument("--data", type=Path, default=FOLDER, metavar="DIR",
                      help="the dashboard's folder (default: ./gantrymq-dashboard)")  # fmt: skip
    return made


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if (chosen.name is None) != (chosen.verb == "list"):
        parser.error("set and delete take a name, list takes none")
    accounts = Accounts(chosen.data)
    try:
        if chosen.verb == "list":
            for each in accounts.all().values():
                sys.stdout.write(f"{each.name:<24} {each.role.text}\n")
        elif chosen.verb == "delete":
            accounts.delete(chosen.name)
            sys.stdout.write(f"deleted {chosen.name}\n")
        else:
            _set(accounts, chosen)
    except InvalidValue as error:
        sys.stderr.write(f"{NAME} user: {error}\n")
        return BAD_USAGE
    except (GantryError, OSError) as error:
        sys.stderr.write(f"{NAME} user: {error}\n")
        return FAILED
    return SUCCESS


def _set(accounts: Accounts, chosen: argparse.Namespace) -> None:
    known = accounts.get(chosen.name)
    usual = known.role.text if known is not None else Role.VIEWER.text
    role = Role.parse(chosen.role or usual)
    password = (
        generated_password()
        if chosen.password_file is None
        else read_password(chosen.password_file)
    )
    account = make_account(chosen.name, role, password)
    if known is None or chosen.role is not None:
        accounts.put(account)
    else:  # the role is the one that was found, which may be another one by now
        accounts.change(account, known.mark)
    sys.stdout.write(f"{chosen.name} is {role.text}\n")
    if chosen.password_file is None:
        sys.stdout.write(f"  password {password} (shown this once)\n")
