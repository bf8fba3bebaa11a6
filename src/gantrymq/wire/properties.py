"""The property string of a message, and the names that the system itself uses in it.

    name 0x01 value 0x02 name 0x01 value 0x02 ...

The last 0x02 may be missing: 5.x clients write it, 4.9 and the stored form do not, and neither is
written here. Reading follows Apache's `MessageDecoder`: the first 0x01 of an entry ends its name;
an entry without name or value does not count; of a repeated name the last one wins. Broken text
is mended with U+FFFD rather than refused, since a message that was stored must stay readable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue, RecordError, shown
from gantrymq.limits import PROPERTIES_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME_END: Final = "\x01"
ENTRY_END: Final = "\x02"

# For looking up and filtering
UNIQ_KEY: Final = "UNIQ_KEY"
KEYS: Final = "KEYS"
TAGS: Final = "TAGS"
SHARDING_KEY: Final = "__SHARDINGKEY"
SHARDING_KEY_NODE: Final = "__SHARDING_KEY"  # as the Node client writes it

# For storing
WAIT: Final = "WAIT"
CLUSTER: Final = "CLUSTER"
MSG_REGION: Final = "MSG_REGION"
TRACE_ON: Final = "TRACE_ON"
CRC32: Final = "__CRC32#"
INNER_NUM: Final = "INNER_NUM"
INNER_BASE: Final = "INNER_BASE"
INNER_MULTI_DISPATCH: Final = "INNER_MULTI_DISPATCH"
INNER_MULTI_QUEUE_OFFSET: Final = "INNER_MULTI_QUEUE_OFFSET"
LITE_TOPIC: Final = "__LITE_TOPIC"
PRIORITY: Final = "_SYS_MSG_PRIORITY_"

# For delays and timers
DELAY: Final = "DELAY"
REAL_TOPIC: Final = "REAL_TOPIC"
REAL_QUEUE_ID: Final = "REAL_QID"
TIMER_DELAY_SEC: Final = "TIMER_DELAY_SEC"
TIMER_DELAY_MS: Final = "TIMER_DELAY_MS"
TIMER_DELIVER_MS: Final = "TIMER_DELIVER_MS"
TIMER_OUT_MS: Final = "TIMER_OUT_MS"
TIMER_ENQUEUE_MS: Final = "TIMER_ENQUEUE_MS"
TIMER_DEQUEUE_MS: Final = "TIMER_DEQUEUE_MS"
TIMER_ROLL_TIMES: Final = "TIMER_ROLL_TIMES"
TIMER_DEL_UNIQKEY: Final = "TIMER_DEL_UNIQKEY"
TIMER_DELAY_LEVEL: Final = "TIMER_DELAY_LEVEL"
START_DELIVER_TIME: Final = "__STARTDELIVERTIME"

# For transactions
TRANSACTION_PREPARED: Final = "TRAN_MSG"
PRODUCER_GROUP: Final = "PGROUP"
TRANSACTION_ID: Final = "__transactionId__"
TRANSACTION_CHECK_TIMES: Final = "TRANSACTION_CHECK_TIMES"
CHECK_IMMUNITY_TIME: Final = "CHECK_IMMUNITY_TIME_IN_SECONDS"
PREPARED_QUEUE_OFFSET: Final = "TRAN_PREPARED_QUEUE_OFFSET"

# For retries and dead letters
RETRY_TOPIC: Final = "RETRY_TOPIC"
ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
RECONSUME_TIME: Final = "RECONSUME_TIME"
MAX_RECONSUME_TIMES: Final = "MAX_RECONSUME_TIMES"
DLQ_ORIGIN_TOPIC: Final = "DLQ_ORIGIN_TOPIC"
DLQ_ORIGIN_MESSAGE_ID: Final = "DLQ_ORIGIN_MESSAGE_ID"

# For pop
POP_CK: Final = "POP_CK"
POP_CK_OFFSET: Final = "POP_CK_OFFSET"
FIRST_POP_TIME: Final = "1ST_POP_TIME"

# For request and reply
CORRELATION_ID: Final = "CORRELATION_ID"
REPLY_TO_CLIENT: Final = "REPLY_TO_CLIENT"
TTL: Final = "TTL"
MESSAGE_TYPE: Final = "MSG_TYPE"
MESSAGE_TYPE_REPLY: Final = "reply"
PUSH_REPLY_TIME: Final = "PUSH_REPLY_TIME"
ARRIVE_TIME: Final = "ARRIVE_TIME"

# For consumers, and kept unchanged by brokers
INSTANCE_ID: Final = "INSTANCE_ID"
MIN_OFFSET: Final = "MIN_OFFSET"
MAX_OFFSET: Final = "MAX_OFFSET"
CONSUME_START_TIME: Final = "CONSUME_START_TIME"
BORN_TIMESTAMP: Final = "BORN_TIMESTAMP"
BORN_HOST: Final = "__BORNHOST"
EXTEND_UNIQ_INFO: Final = "EXTEND_UNIQ_INFO"
BUYER_ID: Final = "BUYER_ID"
TRANSFER_FLAG: Final = "TRANSFER_FLAG"
CORRECTION_FLAG: Final = "CORRECTION_FLAG"
MQ2_FLAG: Final = "MQ2_FLAG"
DUP_INFO: Final = "DUP_INFO"
TRACE_CONTEXT: Final = "TRACE_CONTEXT"


def decode_properties(text: str | bytes) -> dict[str, str]:
    """Return the properties in a property string.

    Raises RecordError for one with more bytes, or characters, than a record can hold; nothing else
    is refused.
    """
    if len(text) > PROPERTIES_BYTES_MAX:
        unit = "bytes" if isinstance(text, bytes) else "characters"
        problem = f"{len(text)} {unit}; at most {PROPERTIES_BYTES_MAX} can be stored"
        raise RecordError("properties", problem)
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    entries = [entry.partition(NAME_END) for entry in text.split(ENTRY_END)]
    return {name: value for name, _, value in entries if name and value}


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """Return the property string of these properties, without a separator at its end.

    Raises InvalidValue for what would not be read back: an empty name or value, a separator inside
    one, text that is not Unicode, more than 32767 bytes.
    """
    joined = ENTRY_END.join(f"{name}{NAME_END}{value}" for name, value in properties.items())
    count = len(properties)
    if count and not (
        joined.count(NAME_END) == count == joined.count(ENTRY_END) + 1
        and "" not in properties
        and "" not in properties.values()
    ):
        _refuse(properties)
    try:
        encoded = joined.encode()
    except UnicodeEncodeError as error:
        raise InvalidValue(f"properties: text that is not Unicode: {error}") from error
    if len(encoded) > PROPERTIES_BYTES_MAX:
        raise InvalidValue(
            f"properties: {len(encoded)} bytes; at most {PROPERTIES_BYTES_MAX} can be stored"
        )
    return encoded


def _refuse(properties: Mapping[str, str]) -> None:
    """Say what is wrong with properties of which the whole is known to be."""
    for name, value in properties.items():
        if not name or not value:
            raise InvalidValue(f"property {shown(name)!r}: an empty name or value would be lost")
        for text in (name, value):
            if NAME_END in text or ENTRY_END in text:
                problem = f"{shown(text)!r} holds a separator (1 or 2)"
                raise InvalidValue(f"property {shown(name)!r}: {problem}")
