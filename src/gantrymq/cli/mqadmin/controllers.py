"""Sub-commands about Apache's controllers (5.x), which elect masters there; etcd does it here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gantrymq.cli.output import Answer, Table
from gantrymq.errors import InvalidValue
from gantrymq.wire.bodies.replication import (
    BROKER_NAMES,
    ELECTED_MASTER,
    EPOCH_CACHE,
    REPLICAS_TABLE,
)
from gantrymq.wire.bodies.settings import SETTINGS
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.controller import (
    CleanBrokerDataRequest,
    ElectMasterRequest,
    MasterResponse,
    MetadataResponse,
)

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given


async def _metadata(session: Session, address: str) -> MetadataResponse:
    first = address.partition(";")[0]
    answered = await session.remote.call(
        first, RequestCode.CONTROLLER_GET_METADATA_INFO, answer=MetadataResponse
    )
    return answered.header


async def _leader(session: Session, given: Given) -> str:
    address = given.text("controllerAddress")
    return (await _metadata(session, address)).controller_leader_address or address


async def get_controller_meta_data(session: Session, given: Given) -> Answer:
    """Say who leads the controllers."""
    told = await _metadata(session, given.text("controllerAddress"))
    pairs = (
        ("ControllerGroup", told.group),
        ("ControllerLeaderId", told.controller_leader_id),
        ("ControllerLeaderAddress", told.controller_leader_address),
        *(("Peer", peer) for peer in (told.peers or "").split(";") if peer),
    )
    return Answer([f"#{name}\t{value}" for name, value in pairs], msgspec.to_builtins(told))


async def get_controller_config(session: Session, given: Given) -> Answer:
    """Say the settings of controllers."""
    answer, data = Answer(), {}
    for address in given.text("controllerAddress").split(";"):
        answered = await session.remote.call(address, RequestCode.GET_CONTROLLER_CONFIG)
        settings = dict(SETTINGS.decode(answered.body))
        answer.parts.append(f"============{address}============")
        answer.parts += [f"{name:<50}=  {value}" for name, value in sorted(settings.items())]
        data[address] = settings
    answer.data = data
    return answer


async def update_controller_config(session: Session, given: Given) -> Answer:
    """Change a setting of controllers."""
    key, value = given.text("key"), given.text("value")
    body = SETTINGS.encode({key: value})
    addresses = given.text("controllerAddress").split(";")
    for address in addresses:
        await session.remote.call(address, RequestCode.UPDATE_CONTROLLER_CONFIG, None, body)
    text = f"update controller config success! [{', '.join(addresses)}] {key} : {value}"
    return Answer([text], {"controllers": addresses, "changed": {key: value}})


async def _names(session: Session, given: Given) -> tuple[str, ...]:
    name, cluster = given.maybe("brokerName"), given.maybe("clusterName")
    if name is not None:
        return (name,)
    if cluster is None:
        raise InvalidValue("give a broker (-b name) or a cluster (-c name)")
    return tuple(await session.masters(cluster))


async def get_sync_state_set(session: Session, given: Given) -> Answer:
    """Say which members of broker groups have everything."""
    body = BROKER_NAMES.encode(await _names(session, given))
    answered = await session.remote.call(
        await _leader(session, given), RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, None, body
    )
    rows = [
        (name, each.master_broker_id, each.master_address, each.master_epoch, member.broker_id,
         member.broker_address, is_in, member.alive)
        for name, each in REPLICAS_TABLE.decode(answered.body).replicas_info_table.items()
        for is_in, members in ((True, each.in_sync_replicas), (False, each.not_in_sync_replicas))
        for member in members or ()
    ]  # fmt: skip
    heads = ("#Broker Name", "#MasterBrokerId", "#MasterAddr", "#MasterEpoch", "#BrokerId", "#Addr",
             "#InSync", "#Alive")  # fmt: skip
    return Answer([Table(heads, rows)])


async def get_broker_epoch(session: Session, given: Given) -> Answer:
    """Say when which master reigned."""
    info = await session.cluster()
    rows = []
    for name in await _names(session, given):
        known = info.broker_addr_table.get(name)
        if known is None:
            raise InvalidValue(f"no broker is called {name!r}")
        for address in known.addresses.values():
            answered = await session.remote.call(address, RequestCode.GET_BROKER_EPOCH_CACHE)
            told = EPOCH_CACHE.decode(answered.body)
            rows += [
                (told.cluster_name, told.broker_name, address, told.broker_id, each.epoch,
                 each.start_offset, min(each.end_offset, told.max_offset))
                for each in told.epoch_list
            ]  # fmt: skip
    heads = ("#Cluster Name", "#Broker Name", "#Broker Addr", "#Broker Id", "#Epoch",
             "#Start Offset", "#End Offset")  # fmt: skip
    return Answer([Table(heads, rows)])


async def elect_master(session: Session, given: Given) -> Answer:
    """Make a broker the master."""
    header = ElectMasterRequest(
        cluster_name=given.text("clusterName"),
        broker_name=given.text("brokerName"),
        broker_id=given.number("brokerId"),
        designate_elect=True,
        invoke_time=session.clock.now_ms(),
    )
    answered = await session.remote.call(
        await _leader(session, given),
        RequestCode.CONTROLLER_ELECT_MASTER,
        header,
        answer=MasterResponse,
    )
    told = answered.header
    text = (
        f"#BrokerMasterAddr\t{told.master_address}\n#MasterEpoch\t{told.master_epoch}\n"
        f"#SyncStateSetEpoch\t{told.sync_state_set_epoch}"
    )
    elected = ELECTED_MASTER.decode(answered.body) if answered.body else None
    data = {**msgspec.to_builtins(told), "elected": msgspec.to_builtins(elected)}
    return Answer([text], data)


async def clean_broker_metadata(session: Session, given: Given) -> Answer:
    """Have a controller forget a broker."""
    living = given.yes("cleanLivingBroker")
    if not living and given.maybe("clusterName") is None:
        raise InvalidValue("--clusterName is missing: it says which brokers are alive")
    header = CleanBrokerDataRequest(
        broker_name=given.text("brokerName"),
        cluster_name=given.maybe("clusterName"),
        broker_controller_ids_to_clean=given.maybe("brokerControllerIdsToClean"),
        is_clean_living_broker=living,
        invoke_time=session.clock.now_ms(),
    )
    leader = await _leader(session, given)
    await session.remote.call(leader, RequestCode.CLEAN_BROKER_DATA, header)
    text = f"clear broker {given.text('brokerName')} metadata from controller success!"
    return Answer([text], {"broker": given.text("brokerName")})
