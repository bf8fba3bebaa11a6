"""Pulls of one queue as bytes: made once, with places for the numbers that change.

A pull is asked for every 32 messages, and all of it but two numbers is the same each time. The
header is JSON, which Python writes and reads in less time than the binary form.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.header_codec import encode_header
from gantrymq.wire.headers.pull import PullMessageRequest, PullMessageResponse
from gantrymq.wire.response_errors import error_for
from gantrymq.wire.sysflag import PullFlag

if TYPE_CHECKING:
    from gantrymq.client.consuming.subscribed import Subscribed
    from gantrymq.model.queue import MessageQueue

SUSPEND_S: Final = 15.0
"""How long a broker may hold a pull."""
_ENDINGS: Final = frozenset(
    {
        int(ResponseCode.SUCCESS),
        int(ResponseCode.PULL_NOT_FOUND),
        int(ResponseCode.PULL_RETRY_IMMEDIATELY),
        int(ResponseCode.PULL_OFFSET_MOVED),
    }
)
_LENGTHS: Final = struct.Struct(">II")
# Numbers that stand in the prepared header where others will: none that a pull could have.
_OFFSET: Final = 8_888_888_888_888_888_881
_OPAQUE: Final = 1_888_888_882


class Pulled(NamedTuple):
    """The answer to a pull."""

    code: int
    next_offset: int
    min_offset: int
    max_offset: int
    suggested_id: int
    """The broker of the group to ask next."""
    body: bytes


class PullRequests:
    """Pulls of one queue."""

    __slots__ = ("_fields", "_offset_first", "_template")

    def __init__(
        self,
        group: str,
        queue: MessageQueue,
        subscribed: Subscribed,
        count: int,
        *,
        suspend_s: float = SUSPEND_S,
        names_subscription: bool = False,
    ) -> None:
        """Prepare; with `names_subscription` the pull says itself what it takes."""
        told = subscribed.subscription
        flag = PullFlag.SUSPEND.value if suspend_s > 0 else 0
        if names_subscription:
            flag |= PullFlag.SUBSCRIPTION.value
        self._fields = PullMessageRequest(
            consumer_group=group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=_OFFSET,
            max_msg_nums=count,
            sys_flag=flag,
            commit_offset=0,
            suspend_timeout_millis=int(suspend_s * 1000),
            sub_version=told.version,
            subscription=told.expression if names_subscription else None,
            expression_type=told.expression_type,
        ).encode()
        self._template, self._offset_first = self._prepare()

    def _prepare(self) -> tuple[bytes, bool]:
        """Return the header with places for two numbers, and whether the offset's is the first."""
        header = encode_header(
            Command(code=RequestCode.PULL_MESSAGE, opaque=_OPAQUE, fields=self._fields)
        )
        offset, opaque = b"%d" % _OFFSET, b"%d" % _OPAQUE
        template = header.replace(b"%", b"%%")
        template = template.replace(offset, b"%d", 1).replace(opaque, b"%d", 1)
        return template, header.find(offset) < header.find(opaque)

    def frame(self, opaque: int, offset: int) -> bytes:
        """Return the pull from an offset on as a frame."""
        numbers = (offset, opaque) if self._offset_first else (opaque, offset)
        header = self._template % numbers
        return _LENGTHS.pack(4 + len(header), len(header)) + header

    def at(self, offset: int) -> Command:
        """Return the pull from an offset on."""
        fields = {**self._fields, "queueOffset": str(offset)}
        return Command(code=RequestCode.PULL_MESSAGE, opaque=0, fields=fields)


def read_answer(reply: Command) -> Pulled:
    """Read the answer to a pull.

    Raises:
        ResponseError: it is no ordinary ending of one.
        ContentError: it lacks a field.
    """
    if reply.code not in _ENDINGS:
        raise error_for(reply.code, reply.remark)
    fields = reply.fields
    try:
        return Pulled(
            reply.code,
            int(fields["nextBeginOffset"]),
            int(fields["minOffset"]),
            int(fields["maxOffset"]),
            int(fields["suggestWhichBrokerId"]),
            reply.body,
        )
    except (KeyError, ValueError):
        PullMessageResponse.decode(fields)  # says which field it is
        raise
