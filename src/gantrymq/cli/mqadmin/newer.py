"""Sub-commands of 5.x that Apache's brokers serve, and ours answers with a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gantrymq.admin import brokers
from gantrymq.cli.output import Answer, Table, moment
from gantrymq.errors import InvalidValue
from gantrymq.wire.bodies.codec import TEXT
from gantrymq.wire.bodies.queues import ROCKSDB_CHECK
from gantrymq.wire.bodies.settings import SETTINGS
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.admin import (
    AddBrokerRequest,
    CommitLogReadModeRequest,
    ExportRocksDbConfigRequest,
    RemoveBrokerRequest,
    SwitchTimerEngineRequest,
)
from gantrymq.wire.headers.ha import ResetMasterFlushOffsetRequest
from gantrymq.wire.headers.topic import CheckRocksDbProgressRequest

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given
    from gantrymq.wire.fields import Header


async def _addresses(session: Session, given: Given) -> list[str]:
    return await session.targets(given.maybe("brokerAddr"), given.maybe("clusterName"))


async def _tell(
    session: Session,
    given: Given,
    code: RequestCode,
    done: str,
    header: Header | None = None,
    body: bytes = b"",
) -> Answer:
    addresses = await _addresses(session, given)
    told = {}
    for address in addresses:
        answered = await session.remote.call(address, code, header, body, timeout_s=30.0)
        told[address] = answered.command.remark or "done"
    lines = [f"{done} {address}: {remark}" for address, remark in told.items()]
    return Answer([*lines], told)


async def get_cold_data_flow_ctr_info(session: Session, given: Given) -> Answer:
    """Say what limits reads from disk."""
    answer, data = Answer(), {}
    for address in await _addresses(session, given):
        told = await brokers.cold_reads(session, address)
        data[address] = msgspec.to_builtins(told)
        answer.parts.append(
            f"{address}: globalAcc {told.global_acc}, thresholds"
            f" {told.cg_cold_read_threshold} for a group, {told.global_cold_read_threshold} for all"
        )
        rows = [
            (group, told.config_table.get(group), each.cold_acc,
             moment(each.last_cold_read_time_mills))
            for group, each in told.runtime_table.items()
        ]  # fmt: skip
        answer.parts.append(Table(("#Consumer Group", "#Threshold", "#coldAcc", "#Last"), rows))
    answer.data = data
    return answer


async def update_cold_data_flow_ctr_group_config(session: Session, given: Given) -> Answer:
    """Limit a group's reads from disk."""
    body = SETTINGS.encode({given.text("consumerGroup"): str(given.number("threshold"))})
    code = RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG
    return await _tell(session, given, code, "updated cold read control on", None, body)


async def remove_cold_data_flow_ctr_group_config(session: Session, given: Given) -> Answer:
    """Limit a group's reads from disk no more."""
    body = TEXT.encode(given.text("consumerGroup"))
    code = RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG
    return await _tell(session, given, code, "removed cold read control on", None, body)


async def set_commit_log_read_ahead_mode(session: Session, given: Given) -> Answer:
    """Say how the system reads log files ahead."""
    header = CommitLogReadModeRequest(mode=given.text("commitLogReadAheadMode"))
    code = RequestCode.SET_COMMITLOG_READ_MODE
    return await _tell(session, given, code, "set commit log read ahead mode on", header)


async def reset_master_flush_offset(session: Session, given: Given) -> Answer:
    """Set a slave's idea of its master's flush."""
    header = ResetMasterFlushOffsetRequest(master_flush_offset=given.number("offset"))
    code = RequestCode.RESET_MASTER_FLUSH_OFFSET
    return await _tell(session, given, code, "reset master flush offset on", header)


async def switch_timer_engine(session: Session, given: Given) -> Answer:
    """Change what keeps timers."""
    header = SwitchTimerEngineRequest(engine_type=given.text("engineType"))
    return await _tell(
        session, given, RequestCode.SWITCH_TIMER_ENGINE, "switched timer engine on", header
    )


async def export_pop_record(session: Session, given: Given) -> Answer:
    """Have brokers write what pop consumers hold to topics."""
    if given.yes("dryRun"):
        addresses = await _addresses(session, given)
        return Answer([f"would export on {address}" for address in addresses], addresses)
    return await _tell(session, given, RequestCode.POP_ROLLBACK, "Export broker records on")


async def check_rocksdb_cq_write_progress(session: Session, given: Given) -> Answer:
    """Compare RocksDB queues with files."""
    header = CheckRocksDbProgressRequest(
        topic=given.maybe("topic") or "", check_store_time=given.number("checkFrom", 0)
    )
    rows = []
    for name, address in (await session.masters(given.text("cluster"))).items():
        answered = await session.remote.call(
            address, RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS, header, timeout_s=60.0
        )
        told = ROCKSDB_CHECK.decode(answered.body)
        rows.append((name, told.check_status, told.check_result))
    return Answer([Table(("#Broker Name", "#Status", "#Result"), rows)])


async def rocksdb_config_to_json(session: Session, given: Given) -> Answer:
    """Have brokers write their RocksDB tables as JSON."""
    if given.maybe("configPath") is not None:
        raise InvalidValue("RocksDB files cannot be read here: give a broker or a cluster")
    header = ExportRocksDbConfigRequest(config_type=given.maybe("configType") or "topics")
    addresses = await session.targets(given.maybe("brokerAddr"), given.maybe("cluster"))
    for address in addresses:
        await session.remote.call(
            address, RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON, header, timeout_s=30.0
        )
    return Answer([f"{address}: exported" for address in addresses], {"brokers": addresses})


async def add_broker(session: Session, given: Given) -> Answer:
    """Start a broker in a container."""
    header = AddBrokerRequest(config_path=given.text("brokerConfigPath"))
    address = given.text("brokerContainerAddr")
    await session.remote.call(address, RequestCode.ADD_BROKER, header, timeout_s=30.0)
    return Answer([f"add broker to {address} success"], {"container": address})


async def remove_broker(session: Session, given: Given) -> Answer:
    """Stop a broker of a container; it is named `cluster:broker:id`."""
    parts = given.text("brokerIdentity").split(":")
    if len(parts) != 3 or not parts[2].isdecimal():
        raise InvalidValue("--brokerIdentity has the form cluster:broker:id")
    header = RemoveBrokerRequest(
        broker_cluster_name=parts[0], broker_name=parts[1], broker_id=int(parts[2])
    )
    address = given.text("brokerContainerAddr")
    await session.remote.call(address, RequestCode.REMOVE_BROKER, header, timeout_s=30.0)
    return Answer([f"remove broker from {address} success"], {"container": address})
