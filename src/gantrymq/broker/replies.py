"""Request-reply: an answer is handed to the client that asked, over the connection it opened.

The reply is a send to `<cluster>_REPLY_TOPIC` with the client id of the asker in REPLY_TO_CLIENT.
It passes the checks of any send, is pushed to the asker, who has 10 seconds to confirm it, and is
stored as well if `storeReplyMessageEnable` says so. The replier is told how the push went; the copy
in the store is for people who look for it.

Owned by the event loop's task.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from gantrymq.broker.answers import answer, refusal
from gantrymq.broker.general_requests import as_send
from gantrymq.broker.half import TRANSACTION_BITS
from gantrymq.broker.storing import region_fields
from gantrymq.errors import GantryError
from gantrymq.store.status import PutStatus
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.headers.send import (
    PushReplyMessageRequest,
    SendMessageRequest,
    SendMessageV2Request,
)
from gantrymq.wire.hosts import decode_host
from gantrymq.wire.message_id import offset_id_text
from gantrymq.wire.peer import PeerGone, PeerLate
from gantrymq.wire.properties import (
    PUSH_REPLY_TIME,
    REPLY_TO_CLIENT,
    decode_properties,
    encode_properties,
)
from gantrymq.wire.response_errors import SystemBusy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gantrymq.broker.clients import Clients
    from gantrymq.broker.send import Sending
    from gantrymq.broker.settings import LiveSettings
    from gantrymq.clock import Clock
    from gantrymq.store.message_store import MessageStore
    from gantrymq.store.put import NewMessage, Stored
    from gantrymq.wire.peer import Answer, Handler, Peer, Pending

log = logging.getLogger(__name__)

PUSH_S: Final = 10.0
"""How long an asker may take to confirm."""
PUSHES_MAX: Final = 10_000
"""Replies that wait for their asker at one time."""


class Replies:
    """Hands replies to those who asked."""

    def __init__(
        self,
        store: MessageStore,
        sending: Sending,
        clients: Clients,
        settings: LiveSettings,
        clock: Clock,
        store_host: bytes,
        stored: Callable[[Stored], None],
    ) -> None:
        """Tell `stored` what went into the log, for statistics."""
        self._store = store
        self._sending = sending
        self._clients = clients
        self._settings = settings
        self._clock = clock
        self._store_host = store_host
        self._stored = stored
        self._pushes = 0

    @property
    def handlers(self) -> dict[int, Handler]:
        """Return what is handled here."""
        return {
            RequestCode.SEND_REPLY_MESSAGE: self.handle,
            RequestCode.SEND_REPLY_MESSAGE_V2: self.handle,
        }

    def handle(self, request: Command, peer: Peer) -> Pending:
        """Push a reply to its asker, and answer how that went."""
        try:
            header = _header(request)
            properties = decode_properties(header.properties or "")
            message = self._sending.message_of(
                as_send(request, header)._replace(batch=False), request.body, properties, peer
            )
            if self._pushes >= PUSHES_MAX:
                raise SystemBusy(f"[OVERLOAD]broker busy: {self._pushes} replies wait for askers")
        except GantryError as error:
            return refusal(request, error, region_fields(self._settings.now))
        # A reply is part of no transaction, whatever its flags say: it would have no offset.
        message = message._replace(sys_flag=message.sys_flag & ~TRANSACTION_BITS)
        return self._reply(request, header, properties, message, peer)

    async def _reply(
        self,
        request: Command,
        header: SendMessageRequest,
        properties: Mapping[str, str],
        message: NewMessage,
        peer: Peer,
    ) -> Answer:
        trouble = await self._push(request, header, properties, peer)
        fields = {"msgId": "0", "queueId": str(message.queue_id), "queueOffset": "0"}
        if self._settings.now.stores_replies:
            fields |= self._keep(message)
        fields |= region_fields(self._settings.now)
        code = ResponseCode.SYSTEM_ERROR if trouble else ResponseCode.SUCCESS
        return answer(request, code, fields, remark=trouble)

    # -- to the asker ---------------------------------------------------------------------------

    async def _push(
        self,
        request: Command,
        header: SendMessageRequest,
        properties: Mapping[str, str],
        peer: Peer,
    ) -> str | None:
        """Hand a reply to its asker; return what went wrong, or None."""
        asker = properties.get(REPLY_TO_CLIENT)
        if asker is None:
            return f"reply message properties[{REPLY_TO_CLIENT}] is null"
        connection = self._clients.peer_of_client(asker)
        if connection is None:
            return f"push reply message fail, channel of <{asker}> not found."
        now_ms = self._clock.now_ms()
        self._pushes += 1
        try:
            pushed = self._pushed(header, {**properties, PUSH_REPLY_TIME: str(now_ms)}, peer)
            confirmed = await connection.ask(
                Command.request(
                    RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, 0, pushed.encode(), request.body
                ),
                PUSH_S,
            )
        except (PeerGone, PeerLate) as error:
            return f"push reply message to {asker} fail: {error}"
        finally:
            self._pushes -= 1
        if confirmed.code != ResponseCode.SUCCESS:
            return f"push reply message to {asker} fail: {confirmed.remark or confirmed.code}"
        return None

    def _pushed(
        self, header: SendMessageRequest, properties: Mapping[str, str], peer: Peer
    ) -> PushReplyMessageRequest:
        return PushReplyMessageRequest(
            producer_group=header.producer_group,
            topic=header.topic,
            default_topic=header.default_topic,
            default_topic_queue_nums=header.default_topic_queue_nums,
            queue_id=header.queue_id,
            sys_flag=header.sys_flag,
            born_timestamp=header.born_timestamp,
            flag=header.flag,
            born_host=_host_text(peer.host),
            store_host=_host_text(self._store_host),
            store_timestamp=self._clock.now_ms(),
            properties=encode_properties(properties).decode(),
            reconsume_times=header.reconsume_times,
            unit_mode=header.unit_mode,
        )

    # -- to the store ---------------------------------------------------------------------------

    def _keep(self, message: NewMessage) -> dict[str, str]:
        """Store a reply; return where it is, or nothing: its asker has it, or never will."""
        stored = self._store.put([message])
        if stored.status is not PutStatus.PUT_OK:
            log.warning("a reply could not be stored: %s", stored.status.value)
            return {}
        self._stored(stored)
        return {
            "msgId": offset_id_text(self._store_host, stored.log_offset),
            "queueOffset": str(stored.queue_offset),
        }


def _header(request: Command) -> SendMessageRequest:
    if request.code == RequestCode.SEND_REPLY_MESSAGE_V2:
        return SendMessageV2Request.decode(request.fields).long_form()
    return SendMessageRequest.decode(request.fields)


def _host_text(host: bytes) -> str:
    """Return `address:port`, without brackets, as Java writes it."""
    read = decode_host(host, "host")
    return f"{read.address}:{read.port}"
