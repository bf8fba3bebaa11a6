"""Request and reply: a message out, and the answer of its consumer back.

The reply does not come through a queue. Whoever consumes the request sends it to a broker, and that
broker pushes it over the connection that the asker has to it. So the asker must be known to the
brokers before it asks, and the reply is best sent to the broker that had the request.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.client.errors import ClientClosed, TooManyInFlight
from gantrymq.client.received import ReceivedMessage
from gantrymq.errors import GantryError, InvalidValue, shown
from gantrymq.model.message import Message
from gantrymq.model.names import reply_topic
from gantrymq.wire import properties as names
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.send import PushReplyMessageRequest
from gantrymq.wire.hosts import encode_host, parse_host
from gantrymq.wire.peer import PeerLate
from gantrymq.wire.record import MessageRecord, Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gantrymq.client.core import ClientCore
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Peer

logger = logging.getLogger(__name__)

REQUESTS_MAX: Final = 65_536
"""Requests that wait for their reply."""
REPLY_CODE: Final = int(RequestCode.SEND_REPLY_MESSAGE_V2)
_NOWHERE: Final = bytes(8)


class Request:
    """One request that waits for its reply."""

    __slots__ = ("_deadline", "_future", "_timeout_s", "properties")

    def __init__(
        self,
        correlation_id: str,
        client_id: str,
        timeout_s: float,
        deadline: float,
        future: asyncio.Future[Reply],
    ) -> None:
        self._future = future
        self._timeout_s = timeout_s
        self._deadline = deadline
        self.properties = {
            names.CORRELATION_ID: correlation_id,
            names.REPLY_TO_CLIENT: client_id,
            names.TTL: str(max(int(timeout_s * 1000), 1)),
        }
        """What makes a message a request."""

    async def reply(self) -> ReceivedMessage:
        """Return the reply when it comes.

        Raises:
            PeerLate: it did not, within the time of the request.
            ClientClosed: the client was closed before it did.
        """
        try:
            async with asyncio.timeout_at(self._deadline):
                return await self._future
        except TimeoutError:
            raise PeerLate(
                f"no reply within {self._timeout_s:g} s: the request was stored, and nobody has"
                " answered it; is there a consumer that replies?"
            ) from None


Reply = ReceivedMessage


class Answering(NamedTuple):
    """A reply that is to be sent."""

    message: Message
    properties: dict[str, str]
    broker_name: str
    """Which broker the request came from: the one who asked is connected to it."""


class Requests:
    """The requests of one producer. Owned by the event loop's thread."""

    reply_code: Final = REPLY_CODE

    def __init__(self, core: ClientCore) -> None:
        self._core = core
        self._waiting: dict[str, asyncio.Future[Reply]] = {}
        core.incoming.on(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, self._on_reply)

    @contextmanager
    def waiting(self, timeout_s: float, deadline: float) -> Iterator[Request]:
        """Wait for the reply to a request that is about to be sent, until the block ends.

        `deadline` is the loop's time at which `timeout_s` is over.

        Raises:
            TooManyInFlight: too many others wait.
        """
        if len(self._waiting) >= REQUESTS_MAX:
            raise TooManyInFlight(f"{REQUESTS_MAX} requests wait for their reply already")
        correlation_id = str(uuid.uuid4())
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[correlation_id] = future
        try:
            yield Request(correlation_id, self._core.client_id, timeout_s, deadline, future)
        finally:
            self._waiting.pop(correlation_id, None)
            future.cancel()

    def close(self) -> None:
        """Fail those that still wait."""
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ClientClosed("the client was closed before the reply came"))

    def _on_reply(self, command: Command, _peer: Peer) -> Command:
        header = PushReplyMessageRequest.decode(command.fields)
        message = ReceivedMessage(MessageRecord(_record(header, command.body)), "")
        future = self._waiting.get(message.correlation_id or "")
        if future is None or future.done():
            logger.info("a reply came that nobody waits for any more: %s", message.correlation_id)
        else:
            future.set_result(message)
        return command.response()

    def reply_to(
        self,
        request: ReceivedMessage,
        body: bytes,
        tags: str | None,
        properties: Mapping[str, str] | None,
    ) -> Answering:
        """Return the reply to a request.

        Raises:
            InvalidValue: it is no request, or its broker does not do replies.
        """
        if not isinstance(request, ReceivedMessage):
            raise InvalidValue(
                f"request is {shown(repr(request))}: give the message that is to be answered"
            )
        correlation_id, client_id = request.correlation_id, request.reply_to
        cluster = request.properties.get(names.CLUSTER)
        if not (correlation_id and client_id and cluster):
            raise InvalidValue(
                f"message {request.message_id} was not sent with request(): nobody waits for a"
                " reply to it"
            )
        message = Message(
            topic=reply_topic(cluster), body=body, tags=tags, properties=properties or {}
        )
        extra = {
            names.MESSAGE_TYPE: names.MESSAGE_TYPE_REPLY,
            names.CORRELATION_ID: correlation_id,
            names.REPLY_TO_CLIENT: client_id,
        }
        if ttl := request.properties.get(names.TTL):
            extra[names.TTL] = ttl
        return Answering(message, extra, request.broker_name)


def _record(header: PushReplyMessageRequest, body: bytes) -> Record:
    """Return a pushed reply as the record that it never was."""
    return Record(
        queue_id=header.queue_id,
        flag=header.flag,
        queue_offset=0,
        log_offset=0,
        sys_flag=header.sys_flag,
        born_timestamp=header.born_timestamp,
        born_host=_host(header.born_host),
        store_timestamp=header.store_timestamp,
        store_host=_host(header.store_host),
        reconsume_times=header.reconsume_times or 0,
        prepared_offset=0,
        body=body,
        topic=header.topic.encode(),
        properties=(header.properties or "").encode(),
    )


def _host(text: str) -> bytes:
    try:
        return encode_host(parse_host(text.removeprefix("/")))
    except GantryError:
        return _NOWHERE
