"""`gantrymq quota`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.admin import quotas
from gantrymq.cli.output import Answer, Table
from gantrymq.errors import InvalidValue
from gantrymq.model.names import check_group, check_topic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gantrymq.admin.quotas import Quota
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given

READS: Final = ("read.bytes", "read.requests")
ALL: Final = ("send.bytes", "send.requests", *READS)


def _limits(given: Given, names: Iterable[str]) -> dict[str, int]:
    found = {}
    for name in names:
        option = name.replace(".", "-")
        number = given.maybe_number(option)
        if number is not None:
            if number < 0:
                raise InvalidValue(
                    f"--{option} is {number}: give a number a second, 0 for no limit"
                )
            found[name] = number
    return found


def _answer(found: Iterable[Quota], problems: Iterable[str] = ()) -> Answer:
    rows = [(one.kind, one.name, one.broker, *map(one.limits.get, ALL)) for one in found]
    heads = ("KIND", "NAME", "BROKER", "SEND BYTES", "SEND REQUESTS", "READ BYTES", "READ REQUESTS")
    table = Table(heads, rows)
    text = (
        "no topic and no group has a quota of its own; `gantrymq cluster config` has the defaults"
    )
    return Answer([table] if rows else [text], table.data(), list(problems))


async def list_quotas(session: Session, _given: Given) -> Answer:
    """List topics and groups that have a quota of their own."""
    told = await quotas.all_quotas(session)
    return _answer((one for each in told.found.values() for one in each), told.complaints)


async def topic(session: Session, given: Given) -> Answer:
    """Show the quotas of a topic, or set some."""
    name = check_topic(given.text("TOPIC"))
    return _answer(await quotas.change_topic(session, name, _limits(given, ALL)))


async def group(session: Session, given: Given) -> Answer:
    """Show the quotas of a group, or set some."""
    name = check_group(given.text("GROUP"))
    return _answer(await quotas.change_group(session, name, _limits(given, READS)))
