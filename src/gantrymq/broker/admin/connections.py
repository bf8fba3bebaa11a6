"""Who is connected: members of consumer groups, producers of a group, all producers.

Members of a group that subscribe differently lose messages. The answer about a group names them
(`mismatch`), beside what Apache's answer has; its tools pass over names that they do not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.broker.admin.parts import body_answer
from gantrymq.wire.bodies.connections import (
    CONSUMER_CONNECTIONS,
    PRODUCER_CONNECTIONS,
    PRODUCER_TABLE,
    Connection,
    ConsumerConnections,
    MismatchedMembers,
    ProducerConnections,
    ProducerInfo,
    ProducerTable,
)
from gantrymq.wire.codes import LanguageCode, RequestCode
from gantrymq.wire.headers.client import ProducerGroupRequest
from gantrymq.wire.headers.targets import ConsumerGroupRequest
from gantrymq.wire.response_errors import ConsumerNotOnline, SystemFailure

if TYPE_CHECKING:
    from gantrymq.broker.admin.parts import AdminParts
    from gantrymq.broker.client_records import ClientPeer
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Handler, Peer

PRODUCERS_MAX: Final = 50_000
"""Producers in one answer, about 10 MB of JSON."""


class ConnectionRequests:
    """Answers who is connected."""

    def __init__(self, parts: AdminParts) -> None:
        self._clients = parts.tables.clients

    @property
    def handlers(self) -> dict[int, Handler]:
        """Return what is handled here."""
        return {
            RequestCode.GET_CONSUMER_CONNECTION_LIST: self.consumers,
            RequestCode.GET_PRODUCER_CONNECTION_LIST: self.producers,
            RequestCode.GET_ALL_PRODUCER_INFO: self.all_producers,
        }

    def consumers(self, request: Command, _peer: Peer) -> Answer:
        """Answer the members of a group, what they agreed on, and where they do not agree."""
        group = ConsumerGroupRequest.decode(request.fields).consumer_group
        state = self._clients.consumer(group)
        if state is None:
            raise ConsumerNotOnline(f"the consumer group[{group}] not online")
        found = ConsumerConnections(
            connection_set=tuple(_connection(member) for member in state.members.values()),
            subscription_table=dict(state.subscriptions),
            consume_type=state.consume_type,
            message_model=state.message_model,
            consume_from_where=state.consume_from_where,
            mismatch=self._mismatch(group),
        )
        return body_answer(request, CONSUMER_CONNECTIONS.encode(found))

    def _mismatch(self, group: str) -> tuple[MismatchedMembers, ...] | None:
        """Return the members of a group by what they take; None where all take the same."""
        for mismatch in self._clients.mismatches():
            if mismatch.group == group:
                return tuple(
                    MismatchedMembers(
                        client_ids=variant.client_ids,
                        subscriptions=tuple(
                            f"{topic} {kind} {text}" for topic, kind, text in variant.subscriptions
                        ),
                    )
                    for variant in mismatch.variants
                )
        return None

    def producers(self, request: Command, _peer: Peer) -> Answer:
        """Answer the producers of a group."""
        group = ProducerGroupRequest.decode(request.fields).producer_group
        found = self._clients.producers(group)
        if not found:
            raise SystemFailure(f"the producer group[{group}] not exist")
        listed = ProducerConnections(connection_set=tuple(map(_connection, found)))
        return body_answer(request, PRODUCER_CONNECTIONS.encode(listed))

    def all_producers(self, request: Command, _peer: Peer) -> Answer:
        """Answer all producers of this broker by group."""
        groups = {
            name: self._clients.producers(name) for name in self._clients.all_producer_groups()
        }
        count = sum(map(len, groups.values()))
        if count > PRODUCERS_MAX:
            raise SystemFailure(
                f"{count} producers are connected, and an answer holds {PRODUCERS_MAX}; ask by "
                "group with producerConnection"
            )
        table = ProducerTable(
            data={name: tuple(map(_producer, found)) for name, found in groups.items()}
        )
        return body_answer(request, PRODUCER_TABLE.encode(table))


def _language(client: ClientPeer) -> str:
    """Return the name of a client's language; one that Java does not know is OTHER to it."""
    try:
        return LanguageCode(client.language).name  # type: ignore[arg-type]
    except ValueError:
        return LanguageCode.OTHER.name


def _connection(client: ClientPeer) -> Connection:
    return Connection(
        client_id=client.client_id,
        client_addr=client.peer.address,
        language=_language(client),
        version=int(client.version),
    )


def _producer(client: ClientPeer) -> ProducerInfo:
    return ProducerInfo(
        client_id=client.client_id,
        # As Java prints an address that has no name.
        remote_ip=f"/{client.peer.address}",
        language=_language(client),
        version=int(client.version),
        last_update_timestamp=client.seen_ms,
    )
