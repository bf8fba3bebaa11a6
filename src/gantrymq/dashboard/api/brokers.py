"""Clusters and brokers: who is there, their figures, and whether clients may write to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.admin import brokers as brokers_of
from gantrymq.admin.session import NoSuchTarget
from gantrymq.dashboard.calls import Endpoint, problem_data
from gantrymq.dashboard.sampling import number
from gantrymq.errors import GantryError
from gantrymq.model.roles import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.dashboard.calls import Call

BROKERS_MAX: Final = 512
"""Brokers that one answer tells of."""


def _row(told: Mapping[str, str]) -> dict[str, object]:
    """Return what lists show of a broker's figures; None where it does not say."""

    def count(now: str, before: str) -> int | None:
        late, early = number(told.get(now)), number(told.get(before))
        return None if late is None or early is None else int(late - early)

    return {
        "version": told.get("brokerVersionDesc", ""),
        "inPerS": number(told.get("putTps")),
        "outPerS": number(told.get("getTransferredTps") or told.get("getTransferedTps")),
        "inToday": count("msgPutTotalTodayNow", "msgPutTotalTodayMorning"),
        "outToday": count("msgGetTotalTodayNow", "msgGetTotalTodayMorning"),
        "inYesterday": count("msgPutTotalTodayMorning", "msgPutTotalYesterdayMorning"),
        "outYesterday": count("msgGetTotalTodayMorning", "msgGetTotalYesterdayMorning"),
        "diskRatio": number(told.get("commitLogDiskRatio")),
        "runtime": told.get("runtime", ""),
    }


async def list_brokers(call: Call) -> object:
    """Return all clusters with their brokers, masters and slaves, and what each says."""
    info = await call.session.cluster()
    listed = [
        (cluster, name, broker_id, address)
        for cluster, names in sorted(info.cluster_addr_table.items())
        for name in sorted(names)
        if name in info.broker_addr_table
        for broker_id, address in sorted(info.broker_addr_table[name].addresses.items())
    ]
    shown = listed[:BROKERS_MAX]

    async def ask(address: str) -> dict[str, str]:
        return await brokers_of.runtime_info(call.session, address)

    answers = await call.session.gather([each[3] for each in shown], ask)
    names = {address: name for _cluster, name, _id, address in shown}
    problems = [f"{names[at]} ({at}): {why}" for at, why in answers.problems.items()]
    problems += [
        f"{name} has no master: nothing can be sent to it"
        for name, each in sorted(info.broker_addr_table.items())
        if each.master is None
    ]
    if len(listed) > len(shown):
        problems.append(f"only {len(shown)} of {len(listed)} brokers are listed")
    rows = [
        {
            "cluster": cluster, "name": name, "id": broker_id, "address": address,
            "error": str(answers.problems.get(address, "")),
            **_row(answers.found.get(address, {})),
        }
        for cluster, name, broker_id, address in shown
    ]  # fmt: skip
    return {
        "rows": rows,
        "nameServers": list(call.session.name_servers),
        **problem_data(problems),
    }


async def show_broker(call: Call) -> object:
    """Return all that a broker says of itself, and how its slaves follow."""
    address = await _known(call, call.text("address"))
    told = await brokers_of.runtime_info(call.session, address)
    replication: dict[str, object] | None = None
    problems = []
    try:
        ha = await brokers_of.ha_status(call.session, address)
        replication = {
            "isMaster": ha.master, "logEnd": ha.master_commit_log_max_offset,
            "inSync": ha.in_sync_slave_nums,
            "slaves": [
                {
                    "address": each.addr, "ack": each.slave_ack_offset, "behind": each.diff,
                    "inSync": each.in_sync,
                }
                for each in ha.ha_connection_info
            ],
        }  # fmt: skip
    except GantryError as error:
        problems.append(f"replication: {error}")
    return {
        "address": address, "figures": dict(sorted(told.items())), "replication": replication,
        **_row(told), **problem_data(problems),
    }  # fmt: skip


async def _known(call: Call, address: str) -> str:
    """Refuse an address that the name servers do not know: this is no way into other networks.

    Raises:
        NoSuchTarget: they do not.
    """
    if address not in await call.session.addresses():
        raise NoSuchTarget(f"the name servers know no broker at {address[:64]}")
    return address


async def set_writable(call: Call) -> object:
    """Let clients write to a broker's topics, or let them not."""
    name, allowed = call.text("broker"), call.flag("allowed")
    await call.session.master_of(name)
    call.detail = "writes allowed" if allowed else "writes not allowed"
    answers = await brokers_of.change_write_permission(call.session, name, allowed=allowed)
    answers.check()
    return {"broker": name, "allowed": allowed, **problem_data(answers.complaints)}


ENDPOINTS: Final = (
    Endpoint("GET", "/api/brokers", Role.VIEWER, list_brokers),
    Endpoint("GET", "/api/broker", Role.VIEWER, show_broker),
    Endpoint(
        "POST", "/api/broker/writable", Role.ADMIN, set_writable, "change who may write",
        about=("broker",),
    ),
)  # fmt: skip
