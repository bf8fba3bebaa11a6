"""A blocking client for tests: one connection, one request at a time, in RocketMQ's own words.

It speaks to any broker. Answers that are not the expected ones raise `Refused` with what the broker
said. Records come back as their bytes.
"""

from __future__ import annotations

import socket
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, Self

from gantrymq.errors import GantryError, ProtocolError
from gantrymq.kernel import kernel
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.frame import FrameParser, encode_frame
from gantrymq.wire.headers.offset import GetMaxOffsetRequest, OffsetResponse, SearchOffsetRequest
from gantrymq.wire.headers.pull import PullMessageRequest, PullMessageResponse
from gantrymq.wire.headers.query import QueryMessageRequest, ViewMessageRequest
from gantrymq.wire.headers.send import SendMessageResponse, SendMessageV2Request
from gantrymq.wire.headers.targets import QueueRequest
from gantrymq.wire.sysflag import PullFlag

if TYPE_CHECKING:
    from types import TracebackType

    from gantrymq.wire.fields import Header

TIMEOUT_SECONDS = 60
PULL_COUNT_MAX = 32
FOREVER_MS = 2**62
READER_GROUP = "reader"


class Refused(GantryError):
    """The broker says no; `code` is its answer's."""

    def __init__(self, request: int, answer: Command) -> None:
        super().__init__(f"request {request} was answered {answer.code}: {answer.remark}")
        self.code = answer.code


class Pulled(NamedTuple):
    """One answer to a pull."""

    records: list[bytes]
    next_offset: int
    min_offset: int
    max_offset: int


class RemotingClient:
    """A connection; closed at the end of a `with` block."""

    def __init__(self, host: str, port: int, timeout: float = TIMEOUT_SECONDS) -> None:
        self._socket = socket.create_connection((host, port), timeout)
        self._parser = FrameParser()
        self._opaques = count(1)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection."""
        self._socket.close()

    def ask(self, code: int, header: Header | None = None, body: bytes = b"") -> Command:
        """Send a request and return its answer, whatever it says."""
        opaque = next(self._opaques)
        fields = header.encode() if header is not None else {}
        self._socket.sendall(encode_frame(Command.request(code, opaque, fields, body)))
        while True:
            chunk = self._socket.recv(1 << 20)
            if not chunk:
                raise ConnectionError("the broker closed the connection")
            commands = self._parser.feed(chunk)
            if self._parser.error is not None:
                raise self._parser.error
            for command in commands:
                if command.is_response and command.opaque == opaque:
                    return command

    def want(self, code: int, header: Header | None = None, body: bytes = b"") -> Command:
        """Send a request and return its answer, which must be SUCCESS."""
        answer = self.ask(code, header, body)
        if answer.code != ResponseCode.SUCCESS:
            raise Refused(code, answer)
        return answer

    # -- queues ---------------------------------------------------------------------------------

    def max_offset(self, topic: str, queue_id: int) -> int:
        """Return the offset behind the last message of a queue."""
        header = GetMaxOffsetRequest(topic=topic, queue_id=queue_id)
        return self._offset(self.want(RequestCode.GET_MAX_OFFSET, header))

    def min_offset(self, topic: str, queue_id: int) -> int:
        """Return the offset of the first message of a queue."""
        header = QueueRequest(topic=topic, queue_id=queue_id)
        return self._offset(self.want(RequestCode.GET_MIN_OFFSET, header))

    def search_offset(self, topic: str, queue_id: int, timestamp: int) -> int:
        """Return the offset that a broker takes for a moment."""
        header = SearchOffsetRequest(topic=topic, queue_id=queue_id, timestamp=timestamp)
        return self._offset(self.want(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header))

    @staticmethod
    def _offset(answer: Command) -> int:
        return OffsetResponse.decode(answer.fields).offset

    def pull(self, topic: str, queue_id: int, offset: int, group: str = READER_GROUP) -> Pulled:
        """Return some messages of a queue from an offset on; none is no error."""
        header = PullMessageRequest(
            consumer_group=group,
            topic=topic,
            queue_id=queue_id,
            queue_offset=offset,
            max_msg_nums=PULL_COUNT_MAX,
            sys_flag=PullFlag.SUBSCRIPTION,
            commit_offset=0,
            suspend_timeout_millis=0,
            sub_version=0,
            subscription="*",
            expression_type="TAG",
        )
        answer = self.ask(RequestCode.PULL_MESSAGE, header)
        if answer.code not in {ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND}:
            raise Refused(RequestCode.PULL_MESSAGE, answer)
        said = PullMessageResponse.decode(answer.fields)
        return Pulled(
            split_records(answer.body), said.next_begin_offset, said.min_offset, said.max_offset
        )

    def pull_all(self, topic: str, queue_id: int, group: str = READER_GROUP) -> list[bytes]:
        """Return every message of a queue."""
        found: list[bytes] = []
        # -1: the queue is about to be made, by what was sent just now.
        offset = max(self.min_offset(topic, queue_id), 0)
        while offset < self.max_offset(topic, queue_id):
            pulled = self.pull(topic, queue_id, offset, group)
            if pulled.next_offset <= offset:
                raise ProtocolError("nextBeginOffset", f"{pulled} does not lead on from {offset}")
            found += pulled.records
            offset = pulled.next_offset
        return found

    # -- single messages ------------------------------------------------------------------------

    def view(self, log_offset: int) -> bytes:
        """Return the record at a log offset."""
        header = ViewMessageRequest(offset=log_offset)
        return self.want(RequestCode.VIEW_MESSAGE_BY_ID, header).body

    def query(self, topic: str, key: str, *, unique: bool = False) -> list[bytes]:
        """Return the records that the index has for a key, collisions and all; none is no error."""
        header = QueryMessageRequest(
            topic=topic,
            key=key,
            max_num=64,
            begin_timestamp=0,
            end_timestamp=FOREVER_MS,
            unique_key_query=unique,
        )
        answer = self.ask(RequestCode.QUERY_MESSAGE, header)
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return []
        if answer.code != ResponseCode.SUCCESS:
            raise Refused(RequestCode.QUERY_MESSAGE, answer)
        return split_records(answer.body)

    def send(
        self, header: SendMessageV2Request, body: bytes, code: int = RequestCode.SEND_MESSAGE_V2
    ) -> SendMessageResponse:
        """Store a message, or a batch with its code; it must be stored."""
        return SendMessageResponse.decode(self.want(code, header, body).fields)


def split_records(body: bytes) -> list[bytes]:
    """Cut the body of an answer into records."""
    records: list[bytes] = []
    position = 0
    while position < len(body):
        _record, end = kernel.decode_record(body, position, len(body), True)
        records.append(body[position:end])
        position = end
    return records
