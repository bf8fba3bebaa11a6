"""`clusterList`: all brokers and their load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.admin import brokers
from gantrymq.admin.session import broker_names
from gantrymq.cli.output import Answer, Cell, Table

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given

HEADS = (
    "#Cluster Name", "#Broker Name", "#BID", "#Addr", "#Version", "#InTPS(LOAD)", "#OutTPS(LOAD)",
    "#PCWait(ms)", "#Hour", "#SPACE",
)  # fmt: skip
MORE_HEADS = (
    "#Cluster Name", "#Broker Name", "#InTotalYest", "#OutTotalYest", "#InTotalToday",
    "#OutTotalToday",
)  # fmt: skip


async def cluster_list(session: Session, given: Given) -> Answer:
    """Say which brokers there are, and their load."""
    info = await session.cluster()
    names = broker_names(info, given.maybe("clusterName"))
    members = {
        address: (info.broker_addr_table[name].cluster, name, broker_id)
        for name in names
        for broker_id, address in sorted(info.broker_addr_table[name].addresses.items())
    }

    async def ask(address: str) -> dict[str, str]:
        return await brokers.runtime_info(session, address)

    answers = await session.gather(members, ask)
    more = given.yes("moreStats")
    rows: list[tuple[object, ...]] = []
    for address, (cluster, name, broker_id) in members.items():
        figures = answers.found.get(address)
        if more:
            if broker_id == 0 and figures is not None:
                rows.append((cluster, name, *_totals(figures)))
        else:
            load = (
                _load(figures, session.clock.now_ms())
                if figures is not None
                else ("no answer", "", "", "", "", "")
            )
            rows.append((cluster, name, broker_id, address, *load))
    heads = MORE_HEADS if more else HEADS
    return Answer([Table(heads, rows)], problems=answers.complaints)


def _first(text: str) -> float:
    word = text.split(" ", maxsplit=1)[0] if text else ""
    try:
        return float(word)
    except ValueError:
        return 0.0


def _number(figures: dict[str, str], name: str) -> int:
    return int(_first(figures.get(name, "0")))


def _load(figures: dict[str, str], now_ms: int) -> tuple[object, ...]:
    """Return what one broker does now."""
    into = _first(figures.get("putTps", ""))
    out = _first(figures.get("getTransferedTps") or figures.get("getTransferredTps", ""))
    sends, pulls = (
        f"({figures.get(f'{kind}ThreadPoolQueueSize', '0')},"
        f"{figures.get(f'{kind}ThreadPoolQueueHeadWaitTimeMills', '0')}ms)"
        for kind in ("send", "pull")
    )
    earliest = _number(figures, "earliestMessageTimeStamp")
    hours = (now_ms - earliest) / 3_600_000 if earliest > 0 else 0.0
    space = _first(figures.get("commitLogDiskRatio", ""))
    return (
        figures.get("brokerVersionDesc", ""),
        Cell(into, f"{into:.2f}{sends}"),
        Cell(out, f"{out:.2f}{pulls}"),
        _number(figures, "pageCacheLockTimeMills"),
        Cell(hours, f"{hours:.2f}"),
        Cell(space, f"{space:.4f}"),
    )


def _totals(figures: dict[str, str]) -> tuple[object, ...]:
    """Return how much came and went yesterday and today."""
    days = (("TodayMorning", "YesterdayMorning"), ("TodayNow", "TodayMorning"))
    return tuple(
        _number(figures, f"msg{way}Total{end}") - _number(figures, f"msg{way}Total{begin}")
        for end, begin in days
        for way in ("Put", "Get")
    )
