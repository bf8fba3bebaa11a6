"""`gantrymq cluster`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.admin import brokers
from gantrymq.cli.mqadmin.clusters import cluster_list
from gantrymq.cli.output import Answer, Table
from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given


async def list_brokers(session: Session, given: Given) -> Answer:
    """List brokers and their load."""
    return await cluster_list(session, given)


async def show(session: Session, given: Given) -> Answer:
    """Show a broker's figures."""
    (address,) = await session.targets(given.text("BROKER"), None)
    found = await brokers.runtime_info(session, address)
    return Answer([Table(("FIGURE", "VALUE"), sorted(found.items()))], found)


async def config(session: Session, given: Given) -> Answer:
    """Show settings, one setting, or change one."""
    (address,) = await session.targets(given.text("BROKER"), None)
    name, value = given.maybe("SETTING"), given.raw("VALUE")
    if name is not None and value is not None:
        await brokers.change_broker(session, address, {name: value})
        return Answer([f"{name}={value} on {address}"], {"broker": address, name: value})
    found = await brokers.broker_settings(session, address)
    if name is not None:
        if name not in found:
            raise InvalidValue(f"{address} has no setting {name!r}")
        found = {name: found[name]}
    return Answer([Table(("SETTING", "VALUE"), sorted(found.items()))], found)
