"""Sends and pulls that the kernel leaves to the general codec.

The kernel decodes the hot requests as clients write them and gives up on anything unusual: numbers
as text with blanks, a missing field, a lite pull of a 5.x client. Such a request is rare, so it is
read here at leisure; what is wrong with it is said field by field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.broker.answers import refusal
from gantrymq.broker.storing import region_fields
from gantrymq.errors import ContentError
from gantrymq.kernel.values import PullRequest, SendRequest
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.pull import PullMessageRequest
from gantrymq.wire.headers.send import SendMessageRequest, SendMessageV2Request
from gantrymq.wire.response_errors import NoPermission

if TYPE_CHECKING:
    from gantrymq.broker.pull import Pulling
    from gantrymq.broker.send import Sending
    from gantrymq.broker.settings import LiveSettings
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Handler, Peer, Pending


class GeneralRequests:
    """Hands sends and pulls that came as commands to those who answer the others."""

    def __init__(self, sending: Sending, pulling: Pulling, settings: LiveSettings) -> None:
        self._sending = sending
        self._pulling = pulling
        self._settings = settings

    @property
    def handlers(self) -> dict[int, Handler]:
        """Return what is handled here."""
        return {
            RequestCode.SEND_MESSAGE: self.send,
            RequestCode.SEND_MESSAGE_V2: self.send,
            RequestCode.SEND_BATCH_MESSAGE: self.send,
            RequestCode.PULL_MESSAGE: self.pull,
            RequestCode.LITE_PULL_MESSAGE: self.lite_pull,
        }

    def send(self, request: Command, peer: Peer) -> Pending:
        """Answer a send."""
        try:
            asked = send_request(request)
        except ContentError as error:
            # A client looks for the region in every answer to a send.
            return refusal(request, error, region_fields(self._settings.now))
        return self._sending.send(asked, request.body, peer)

    def pull(self, request: Command, peer: Peer) -> Pending:
        """Answer a pull."""
        return self._pulling.pull(pull_request(request), peer)

    def lite_pull(self, request: Command, peer: Peer) -> Pending:
        """Answer a pull of a 5.x lite pull consumer.

        Raises:
            NoPermission: this broker answers none.
        """
        if not self._settings.now.lite_pull:
            raise NoPermission("lite pull is off on this broker (litePullMessageEnable)")
        return self._pulling.pull(pull_request(request), peer)


def send_request(request: Command) -> SendRequest:
    """Return a send in the form that the kernel decodes others into.

    Raises:
        ContentError: a field is missing or cannot be read.
    """
    if request.code == RequestCode.SEND_MESSAGE:
        header = SendMessageRequest.decode(request.fields)
    else:
        header = SendMessageV2Request.decode(request.fields).long_form()
    return as_send(request, header)


def as_send(request: Command, header: SendMessageRequest) -> SendRequest:
    """Return a send whose header has been read in the form that the kernel decodes others into."""
    return SendRequest(
        code=request.code,
        version=request.version,
        opaque=request.opaque,
        oneway=request.is_oneway,
        serialize_type=request.serialize_type,
        producer_group=header.producer_group,
        topic=header.topic,
        default_topic=header.default_topic,
        default_topic_queues=header.default_topic_queue_nums,
        queue_id=header.queue_id,
        sys_flag=header.sys_flag,
        born_timestamp=header.born_timestamp,
        flag=header.flag,
        properties=(header.properties or "").encode(errors="replace"),
        reconsume_times=header.reconsume_times or 0,
        unit_mode=bool(header.unit_mode),
        max_reconsume_times=header.max_reconsume_times,
        batch=bool(header.batch),
        broker_name=header.broker_name,
        extra_fields=True,
        body_start=0,
        body_end=len(request.body),
    )


def pull_request(request: Command) -> PullRequest:
    """Return a pull in the form that the kernel decodes others into.

    Raises:
        ContentError: a field is missing or cannot be read.
    """
    header = PullMessageRequest.decode(request.fields)
    return PullRequest(
        version=request.version,
        opaque=request.opaque,
        oneway=request.is_oneway,
        serialize_type=request.serialize_type,
        consumer_group=header.consumer_group,
        topic=header.topic,
        queue_id=header.queue_id,
        queue_offset=header.queue_offset,
        max_messages=header.max_msg_nums,
        sys_flag=header.sys_flag,
        commit_offset=header.commit_offset,
        suspend_timeout_ms=header.suspend_timeout_millis,
        subscription=header.subscription,
        sub_version=header.sub_version,
        expression_type=header.expression_type,
        max_bytes=header.max_msg_bytes,
        broker_name=None,
        extra_fields=True,
    )
