"""Requests of brokers: they register, show that they live, say farewell, ask for each other."""

from __future__ import annotations

import hashlib
import re
import zlib
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue, shown
from gantrymq.limits import (
    BROKER_NAME_BYTES_MAX,
    BROKER_TIMEOUT_MS_MAX,
    NAMESRV_FILTER_SERVERS_MAX,
    QUEUES_MAX,
)
from gantrymq.namesrv.kv import ORDER_NAMESPACE
from gantrymq.namesrv.members import BROKER_TIMEOUT_S, Announcement, Place, Registered
from gantrymq.namesrv.reach import check_address
from gantrymq.wire.bodies.registration import REGISTRATION, Registration
from gantrymq.wire.bodies.route import (
    BROKER_MEMBER_GROUP,
    KV_TABLE,
    TOPIC_ROUTE,
    BrokerMemberGroup,
    BrokerMembers,
    KvTable,
)
from gantrymq.wire.bodies.topic import DATA_VERSION
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.namesrv import (
    BrokerHeartbeatRequest,
    BrokerIdentityRequest,
    GetBrokerMemberGroupRequest,
    QueryDataVersionResponse,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
)
from gantrymq.wire.headers.targets import TopicRequest
from gantrymq.wire.response_errors import SystemFailure

if TYPE_CHECKING:
    from gantrymq.namesrv.state import Function, State
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Peer

_CRC_MASK: Final = 0x7FFFFFFF
"""Java drops the sign bit of a checksum."""
_UNSEEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class BrokerRequests:
    """Handlers of what brokers send."""

    def __init__(self, state: State) -> None:
        self._state = state

    def functions(self) -> dict[int, Function]:
        """Return the handlers by request code."""
        return {
            RequestCode.REGISTER_BROKER: self.register,
            RequestCode.UNREGISTER_BROKER: self.unregister,
            RequestCode.QUERY_DATA_VERSION: self.query_version,
            RequestCode.BROKER_HEARTBEAT: self.heartbeat,
            RequestCode.GET_BROKER_MEMBER_GROUP: self.members,
            RequestCode.REGISTER_TOPIC_IN_NAMESRV: self.register_topic,
        }

    def register(self, request: Command, peer: Peer) -> Command:
        """Take a broker and its topics, and answer who the master is and which topics are ordered.

        The checksum says whether the body is what the broker sent. It is compared first, since a
        wrong one makes every other complaint misleading.
        """
        header = RegisterBrokerRequest.decode(request.fields)
        if header.body_crc32 and zlib.crc32(request.body) & _CRC_MASK != header.body_crc32:
            raise SystemFailure(
                f"crc32 not match: the body of {len(request.body)} bytes is not what was sent"
            )
        state, now = self._state, self._state.clock.monotonic()
        fingerprint = (header, hashlib.blake2b(request.body, digest_size=16).digest())
        place = self._place(header.cluster_name, header.broker_addr, peer)
        drop_missing = state.settings.drop_missing_topics
        registered = None
        if not drop_missing:
            registered = state.table.repeat(place, fingerprint, peer.number, now)
        if registered is None:
            said = self._announcement(header, request.body, peer, fingerprint)
            registered = state.table.register(said, peer.number, now, drop_missing=drop_missing)
        if state.table.has_peer(peer.number):
            state.brokers[peer.number] = peer
        return request.response(
            fields=self._answer(registered, peer).encode(), body=self._order_body()
        )

    def unregister(self, request: Command, peer: Peer) -> Command:
        """Remove a broker that stops; one that is not known is no error."""
        header = BrokerIdentityRequest.decode(request.fields)
        place = self._place(header.cluster_name, header.broker_addr, peer)
        self._state.table.unregister(place, header.broker_name)
        return request.response()

    def query_version(self, request: Command, peer: Peer) -> Command:
        """Say whether a broker has to register again; that it asks shows that it lives."""
        header = BrokerIdentityRequest.decode(request.fields)
        place = self._place(header.cluster_name, header.broker_addr, peer)
        theirs = DATA_VERSION.decode(request.body) if request.body else None
        ours = self._state.table.version_of(place)
        self._state.table.heartbeat(place, self._state.clock.monotonic())
        answer = QueryDataVersionResponse(changed=ours is None or ours != theirs)
        body = b"" if ours is None else DATA_VERSION.encode(ours)
        return request.response(fields=answer.encode(), body=body)

    def heartbeat(self, request: Command, peer: Peer) -> Command:
        """Note that a broker lives; its epoch and offsets are for a controller."""
        header = BrokerHeartbeatRequest.decode(request.fields)
        place = self._place(header.cluster_name, header.broker_addr, peer)
        self._state.table.heartbeat(place, self._state.clock.monotonic())
        return request.response()

    def members(self, request: Command, peer: Peer) -> Command:
        """Answer the members of a broker group; of one that is not known there are none."""
        header = GetBrokerMemberGroupRequest.decode(request.fields)
        group = self._state.table.groups.get(header.broker_name)
        view = self._state.reach.view_of(peer.listener)
        addresses = {} if group is None else self._state.reach.broker(group.data(), view).addresses
        members = BrokerMembers(
            cluster=header.cluster_name, broker_name=header.broker_name, broker_addrs=addresses
        )
        body = BROKER_MEMBER_GROUP.encode(BrokerMemberGroup(broker_member_group=members))
        return request.response(body=body)

    def register_topic(self, request: Command, _peer: Peer) -> Command:
        """Take one new topic of brokers that are known."""
        topic = TopicRequest.decode(request.fields).topic
        queues = TOPIC_ROUTE.decode(request.body).queues if request.body else ()
        for data in queues:
            counts = (data.read_queues, data.write_queues)
            if not all(0 <= number <= QUEUES_MAX for number in counts):
                raise InvalidValue(
                    f"topic {shown(topic)!r} cannot have {counts[0]} read and {counts[1]} write "
                    f"queues: give 0 to {QUEUES_MAX}"
                )
        if queues:
            self._state.table.register_topic(topic, queues)
        return request.response()

    def _place(self, cluster: str, address: str, peer: Peer) -> Place:
        """Return what a broker is known by."""
        return Place(cluster, self._state.reach.known_as(address, peer.address))

    def _announcement(
        self, header: RegisterBrokerRequest, body: bytes, peer: Peer, fingerprint: object
    ) -> Announcement:
        """Return what a registration says, checked.

        Raises:
            InvalidValue: a name, an address or a time that cannot be.
            ContentError: the body cannot be read.
        """
        _check_name("the cluster", header.cluster_name)
        _check_name("the broker name", header.broker_name)
        _check_name("the zone", header.zone_name or "none")
        check_address("the broker address", header.broker_addr)
        if header.ha_server_addr:
            check_address("the replication address", header.ha_server_addr)
        registration = REGISTRATION.decode(body) if body else Registration()
        if len(registration.filter_server_list) > NAMESRV_FILTER_SERVERS_MAX:
            raise InvalidValue(f"more than {NAMESRV_FILTER_SERVERS_MAX} filter servers")
        for server in registration.filter_server_list:
            check_address("the filter server", server)
        table = registration.topic_config_serialize_wrapper
        reach = self._state.reach
        return Announcement(
            cluster=header.cluster_name,
            name=header.broker_name,
            broker_id=header.broker_id,
            address=reach.known_as(header.broker_addr, peer.address),
            ha_address=reach.known_as(header.ha_server_addr, peer.address),
            version=table.data_version,
            topics=table.topic_config_table,
            mappings=table.topic_queue_mapping_info_map or {},
            filter_servers=registration.filter_server_list,
            timeout_s=_timeout_s(header.heartbeat_timeout_millis),
            acting_master=header.enable_acting_master,
            zone=header.zone_name or None,
            fingerprint=fingerprint,
        )

    def _answer(self, registered: Registered, peer: Peer) -> RegisterBrokerResponse:
        """Return the master's addresses as the asking broker can reach them."""
        reach, view = self._state.reach, self._state.reach.view_of(peer.listener)
        master, ha_address = registered
        return RegisterBrokerResponse(
            ha_server_addr=None if ha_address is None else reach.address(ha_address, view),
            master_addr=None if master is None else reach.address(master, view),
        )

    def _order_body(self) -> bytes:
        """Return which topics are ordered, if anybody ever said so."""
        table = self._state.kv.table(ORDER_NAMESPACE)
        if table is None or not self._state.settings.order_to_brokers:
            return b""
        return KV_TABLE.encode(KvTable(table=table))


def _check_name(what: str, name: str) -> None:
    """Refuse a name of a broker group, cluster or zone that nobody could type or see."""
    if not name.strip() or _UNSEEN.search(name):
        raise InvalidValue(
            f"{what} {shown(name)!r} is blank, or has control characters or half a surrogate pair"
        )
    if len(name.encode()) > BROKER_NAME_BYTES_MAX:
        raise InvalidValue(
            f"{what} {shown(name)!r} has more than {BROKER_NAME_BYTES_MAX} bytes: use a shorter one"
        )


def _timeout_s(millis: int | None) -> float:
    """Return for how long a broker may be silent; what it asks for has a bound."""
    if millis is None:
        return BROKER_TIMEOUT_S
    if millis <= 0:
        raise InvalidValue(f"heartbeatTimeoutMillis is {millis}: give a time above 0")
    return min(millis, BROKER_TIMEOUT_MS_MAX) / 1000
