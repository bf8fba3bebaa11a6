"""Sub-commands about brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gantrymq.admin import brokers
from gantrymq.cli.output import Answer, Table, second
from gantrymq.errors import InvalidValue
from gantrymq.wire.codes import RequestCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given


async def _ask_each(
    session: Session,
    given: Given,
    ask: Callable[[str], Awaitable[dict[str, str]]],
    line: str,
    *,
    slaves: bool = True,
) -> Answer:
    """Ask the broker or the cluster that is meant; show name and value of each."""
    broker, cluster = given.maybe("brokerAddr"), given.maybe("clusterName")
    addresses = await session.targets(broker, cluster, slaves=slaves)
    answers = await session.gather(addresses, ask)
    answers.check()
    answer = Answer(data=dict(answers.found), problems=answers.complaints)
    for address, values in answers.found.items():
        if cluster or "=" in line:
            answer.parts.append(f"============{address}============")
        answer.parts += [line.format(name, value) for name, value in sorted(values.items())]
    return answer


async def broker_status(session: Session, given: Given) -> Answer:
    """Say a broker's figures."""

    async def ask(address: str) -> dict[str, str]:
        return await brokers.runtime_info(session, address)

    return await _ask_each(session, given, ask, "{:<32}: {}")


async def get_broker_config(session: Session, given: Given) -> Answer:
    """Say a broker's settings."""

    async def ask(address: str) -> dict[str, str]:
        return await brokers.broker_settings(session, address)

    return await _ask_each(session, given, ask, "{:<50}=  {}")


async def update_broker_config(session: Session, given: Given) -> Answer:
    """Change a setting of a broker, or of all brokers of a cluster."""
    change = {given.text("key"): given.text("value")}
    addresses = await session.targets(
        given.maybe("brokerAddr"),
        given.maybe("clusterName"),
        slaves=given.yes("updateAllBroker"),
    )
    answer = Answer(data={"brokers": addresses, "changed": change})
    for address in addresses:
        await brokers.change_broker(session, address, change)
        answer.parts.append(f"update broker config success, {address}")
    return answer


async def broker_consume_stats(session: Session, given: Given) -> Answer:
    """Say how far every group of a broker is behind."""
    least = given.number("level", 0)
    stats = await brokers.consume_stats_of(
        session,
        given.text("brokerAddr"),
        order=given.yes("order"),
        timeout_s=given.number("timeoutMillis", 50_000) / 1000,
    )
    rows = [
        (
            queue.topic, group, queue.broker_name, int(queue.queue_id), at.broker_offset,
            at.consumer_offset, at.broker_offset - at.consumer_offset, second(at.last_timestamp),
        )
        for by_group in stats.consume_stats_list
        for group, found in by_group.items()
        for each in found
        for queue, at in sorted(each.offset_table.items())
        if at.broker_offset - at.consumer_offset >= least
    ]  # fmt: skip
    heads = (
        "#Topic", "#Group", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", "#Diff",
        "#LastTime",
    )  # fmt: skip
    table = Table(heads, rows)
    data = {"queues": table.data(), "diffTotal": stats.total_diff}
    return Answer([table, "", f"Diff Total: {stats.total_diff}"], data)


async def _have_done(session: Session, given: Given, code: RequestCode) -> Answer:
    broker, cluster = given.maybe("brokerAddr"), given.maybe("cluster")
    if broker is None and cluster is None:
        addresses = list((await session.masters()).values())
        if not addresses:
            raise InvalidValue("the name servers know no broker")
    else:
        addresses = await session.targets(broker, cluster)
    for address in addresses:
        await brokers.do(session, address, code)
    return Answer(["success"], {"brokers": addresses})


async def clean_expired_cq(session: Session, given: Given) -> Answer:
    """Have queue files deleted whose messages are gone."""
    return await _have_done(session, given, RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE)


async def clean_unused_topic(session: Session, given: Given) -> Answer:
    """Have the queues deleted of topics that are no more."""
    return await _have_done(session, given, RequestCode.CLEAN_UNUSED_TOPIC)


async def delete_expired_commit_log(session: Session, given: Given) -> Answer:
    """Have log files deleted that are expired."""
    return await _have_done(session, given, RequestCode.DELETE_EXPIRED_COMMITLOG)


async def ha_status(session: Session, given: Given) -> Answer:
    """Say how replication stands."""
    broker, cluster = given.maybe("brokerAddr"), given.maybe("clusterName")
    addresses = await session.targets(broker, cluster, slaves=True)

    async def ask(address: str) -> object:
        return await brokers.ha_status(session, address)

    answers = await session.gather(addresses, ask)
    answers.check()
    answer = Answer(
        data={address: msgspec.to_builtins(each) for address, each in answers.found.items()},
        problems=answers.complaints,
    )
    for address in answers.found:
        status = await brokers.ha_status(session, address)
        if status.master:
            answer.parts.append(Table(
                ("#MasterAddr", "#MasterCommitLogOffset", "#SlaveNum", "#InSyncSlaveNum"),
                [(address, status.master_commit_log_max_offset, len(status.ha_connection_info),
                  status.in_sync_slave_nums)],
            ))  # fmt: skip
            answer.parts.append(Table(
                ("#SlaveAddr", "#SlaveAckOffset", "#Diff", "#TransferSpeed(KB/s)", "#InSync"),
                [(each.addr, each.slave_ack_offset, each.diff,
                  round(each.transferred_byte_in_second / 1024, 2), each.in_sync)
                 for each in status.ha_connection_info],
            ))  # fmt: skip
        elif status.ha_client_runtime_info is not None:
            own = status.ha_client_runtime_info
            answer.parts.append(Table(
                ("#SlaveAddr", "#MasterAddr", "#MaxOffset", "#TransferSpeed(KB/s)"),
                [(address, own.master_addr, own.max_offset,
                  round(own.transferred_byte_in_second / 1024, 2))],
            ))  # fmt: skip
    return answer
