"""`gantrymq apply -f FILE`: declared topics, groups and permissions, with a plan first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gantrymq.admin import declared
from gantrymq.cli.output import Answer, Table
from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given

FILE_BYTES_MAX = 16 << 20


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise InvalidValue(f"{path} has more than {FILE_BYTES_MAX >> 20} MiB")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue(f"{path}: {error}") from None


async def apply(session: Session, given: Given) -> Answer:
    """Show what a file would change, and change it if told so."""
    path = Path(given.text("file"))
    text = _read(path)
    try:
        wanted = declared.parse(text, is_json=path.suffix == ".json")
    except InvalidValue as error:
        raise InvalidValue(f"{path}: {error}") from None
    changes = await declared.plan(session, wanted, given.maybe("cluster"))
    table = Table(
        ("ACTION", "KIND", "NAME", "BROKER", "WHAT"), [tuple(each[:5]) for each in changes]
    )
    count = sum(each.action != "same" for each in changes)
    done = given.yes("yes")
    if done:
        await declared.apply(session, changes)
        said = f"{count} changes made"
    elif count:
        said = f"{count} changes to make: this is the plan; --yes does it"
    else:
        said = "everything is as the file says"
    return Answer([table, said], {"changes": table.data(), "done": done})
