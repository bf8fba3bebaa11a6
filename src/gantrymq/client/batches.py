"""Batches: many messages of one topic in one request, split where they would be too large.

A batch is stored as a whole, in one queue. It is not compressed, as with Java's producers: brokers
take it apart to give each message a record of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from gantrymq.client.outgoing import Outgoing, check_body, property_text
from gantrymq.errors import InvalidValue, shown
from gantrymq.limits import BATCH_MESSAGES_MAX, FRAME_BYTES_MAX
from gantrymq.model.message import Message
from gantrymq.model.names import is_retry_topic
from gantrymq.wire.batch import BatchMessage, encode_batch
from gantrymq.wire.codes import RequestCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantrymq.client.namespace import Namespace

_ENTRY_BYTES: Final = 22
"""Of a message in a batch, beside its body and properties."""
_HEADER_BYTES_MAX: Final = 64 * 1024
BATCH_CODE: Final = int(RequestCode.SEND_BATCH_MESSAGE)


def batch_of(messages: Iterable[Message]) -> list[Message]:
    """Return the messages that a batch was given as.

    Raises:
        InvalidValue: it is nothing that has messages.
    """
    if isinstance(messages, Message) or not isinstance(messages, Iterable):
        raise InvalidValue(f"messages is {shown(repr(messages))}: give a list of Messages")
    return list(messages)


def check_one_key(messages: Sequence[Message]) -> None:
    """Refuse messages that want different queues: a batch goes to one.

    Raises:
        InvalidValue: their sharding keys differ.
    """
    keys = {message.sharding_key for message in messages if isinstance(message, Message)}
    if len(keys) > 1:
        told = ", ".join(shown(repr(key)) for key in sorted(keys, key=repr)[:4])
        raise InvalidValue(
            f"a batch with the sharding keys {told}: it goes to one queue, so send one for each"
            " key, or say which queue="
        )


def batches_of(
    messages: Sequence[Message], next_id: Callable[[], str], namespace: Namespace, bytes_max: int
) -> list[Outgoing]:
    """Return the requests that send these messages, in order, each of `bytes_max` at most.

    Raises:
        InvalidValue: there is no message, they differ in topic or in `wait_stored`, one has a
            delay, or is too large for a request by itself.
    """
    first = _check(messages)
    limit = min(bytes_max, FRAME_BYTES_MAX - _HEADER_BYTES_MAX)
    parts: list[Outgoing] = []
    ids: list[str] = []
    entries: list[BatchMessage] = []
    size = 0
    topic = namespace.wrap(first.topic)
    header = b"WAIT\x01true" if first.wait_stored else b"WAIT\x01false"

    def finish() -> None:
        body = encode_batch(entries)
        parts.append(Outgoing(topic, ",".join(ids), header, body, code=BATCH_CODE))
        entries.clear()
        ids.clear()

    for message in messages:
        body = check_body(message.body, bytes_max)
        message_id = next_id()
        text = property_text(message, message_id, namespace.name, {})
        added = _ENTRY_BYTES + len(body) + len(text)
        if added > limit:
            raise InvalidValue(
                f"a message of a batch takes {added} bytes with its properties: at most {limit}"
                " can be sent in one request"
            )
        if entries and (size + added > limit or len(entries) == BATCH_MESSAGES_MAX):
            finish()
            size = 0
        entries.append(BatchMessage(message.flag, body, text))
        ids.append(message_id)
        size += added
    finish()
    return parts


def _check(messages: Sequence[Message]) -> Message:
    """Return the first message of a batch that can be one."""
    if not messages:
        raise InvalidValue("a batch without messages: give at least one")
    first = messages[0]
    for index, message in enumerate(messages):
        if not isinstance(message, Message):
            raise InvalidValue(f"batch[{index}] is {type(message).__name__}: give Messages")
        if message.topic != first.topic:
            raise InvalidValue(
                f"batch[{index}] has the topic {message.topic!r} and the first {first.topic!r}:"
                " a batch has one topic, send one for each"
            )
        if message.delay_level or message.deliver_at_ms is not None:
            raise InvalidValue(
                f"batch[{index}] has a delay: brokers do not delay batches, send it by itself"
            )
        if message.wait_stored != first.wait_stored:
            raise InvalidValue(f"batch[{index}] differs in wait_stored: it is the same for all")
    if is_retry_topic(first.topic):
        raise InvalidValue(f"topic {first.topic!r} takes no batches: send single messages")
    return first
