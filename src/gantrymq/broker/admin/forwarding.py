"""Requests that a consumer answers: what it is doing (307), and one message for it to take (309).

The broker finds the connection, hands the request on and the answer back as it came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.broker.admin.parts import body_answer
from gantrymq.broker.answers import answer
from gantrymq.broker.questions import ask, copied
from gantrymq.errors import InvalidValue
from gantrymq.wire.codes import RequestCode, Version
from gantrymq.wire.command import Command
from gantrymq.wire.headers.client import (
    ConsumeMessageDirectlyRequest,
    ConsumerRunningInfoRequest,
)
from gantrymq.wire.message_id import OffsetId
from gantrymq.wire.peer import PeerGone, PeerLate
from gantrymq.wire.response_errors import (
    ConsumeMessageTimeout,
    InvalidParameter,
    SystemFailure,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.broker.admin.parts import AdminParts
    from gantrymq.wire.peer import Answer, Handler, Peer

ANSWER_TIMEOUT_S: Final = 10.0
FORWARDED_MAX: Final = 256
"""Requests that wait for consumers at the same time."""
NO_SECRETS: Final = frozenset({"AccessKey", "Signature", "SecurityToken", "OnsChannel"})
"""What the asker proved itself with is nobody else's business."""


class ForwardedRequests:
    """Asks consumers on behalf of operators."""

    def __init__(self, parts: AdminParts) -> None:
        self._parts = parts
        self._waiting = 0

    @property
    def handlers(self) -> dict[int, Handler]:
        """Return what is handled here."""
        return {
            RequestCode.GET_CONSUMER_RUNNING_INFO: self.running,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self.consume,
        }

    async def running(self, request: Command, _peer: Peer) -> Answer:
        """Ask a member what it is doing."""
        header = ConsumerRunningInfoRequest.decode(request.fields)
        fields = {name: text for name, text in request.fields.items() if name not in NO_SECRETS}
        return await self._forward(
            request, header.consumer_group, header.client_id, fields, request.body
        )

    async def consume(self, request: Command, _peer: Peer) -> Answer:
        """Have a member take one message, and answer how it went."""
        header = ConsumeMessageDirectlyRequest.decode(request.fields)
        record = await self._record(header.msg_id or "")
        fields = {name: text for name, text in request.fields.items() if name not in NO_SECRETS}
        fields["brokerName"] = self._parts.broker_name
        topic = self._parts.tables.topics.find(header.topic) if header.topic else None
        group = self._parts.tables.groups.find(header.consumer_group)
        if topic is not None:
            fields["topicSysFlag"] = str(topic.system_flags)
        if group is not None:
            fields["groupSysFlag"] = str(group.system_flags)
        client_id = header.client_id or ""
        return await self._forward(request, header.consumer_group, client_id, fields, record)

    async def _record(self, text: str) -> bytes:
        try:
            offset = OffsetId.parse(text).log_offset
        except InvalidValue as error:
            raise InvalidParameter(str(error)) from None
        store = self._parts.store
        record = await ask(store, lambda questions: copied(questions.record_at(offset)))
        if record is None:
            raise SystemFailure(f"can not find message by the offset, {offset}")
        return record

    async def _forward(
        self,
        request: Command,
        group: str,
        client_id: str,
        fields: Mapping[str, str],
        body: bytes,
    ) -> Answer:
        member = self._parts.tables.clients.member(group, client_id)
        if member is None:
            raise SystemFailure(f"The Consumer <{group}> <{client_id}> not online")
        if member.version < Version.V3_1_8_SNAPSHOT:
            raise SystemFailure(
                f"The Consumer <{client_id}> Version <{member.version}> too low to finish, please "
                "upgrade it to V3_1_8_SNAPSHOT"
            )
        if self._waiting >= FORWARDED_MAX:
            raise SystemFailure(f"{FORWARDED_MAX} requests wait for consumers already; ask later")
        self._waiting += 1
        try:
            told = await member.peer.ask(
                Command.request(request.code, 0, fields, body), ANSWER_TIMEOUT_S
            )
        except PeerLate as error:
            raise ConsumeMessageTimeout(
                f"consumer <{group}> <{client_id}> Timeout: {error}"
            ) from None
        except PeerGone as error:
            raise SystemFailure(
                f"invoke consumer <{group}> <{client_id}> Exception: {error}"
            ) from None
        finally:
            self._waiting -= 1
        body_answer(request, told.body)  # a consumer may say more than a frame to the asker holds
        return answer(request, told.code, told.fields, told.body, remark=told.remark)
