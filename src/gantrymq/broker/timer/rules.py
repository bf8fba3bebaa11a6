"""When a timer message is due, what is stored while it waits, and what is delivered in the end.

Names and roundings are those of Apache's `TimerMessageStore`: the moment is rounded down to the
second before it, and a second is delivered when it is over. So nothing comes early, and nothing
more than a second late.

Nothing here has a state.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.broker.stored_again import as_new
from gantrymq.model.names import TIMER_TOPIC, is_retry_topic
from gantrymq.wire.properties import (
    DELAY,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TIMER_DEL_UNIQKEY,
    TIMER_DELAY_MS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    TIMER_DEQUEUE_MS,
    TIMER_ENQUEUE_MS,
    TIMER_OUT_MS,
    TIMER_ROLL_TIMES,
    UNIQ_KEY,
)
from gantrymq.wire.response_errors import IllegalOperation, MessageIllegal, SystemFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.broker.settings import LiveSettings
    from gantrymq.clock import Clock
    from gantrymq.kernel import Record
    from gantrymq.store.put import NewMessage

PRECISION_MS: Final = 1000
TIMER_QUEUE: Final = 0
TIMERS: Final = (TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS)
"""Any of these makes a timer of a message."""
_DIGITS_MAX: Final = 18
_QUEUE_ID_MAX: Final = 2**31 - 1
_HANDLE_CHARACTERS_MAX: Final = 4096
_HANDLE_PARTS: Final = 5
_OUT: Final = f"{TIMER_OUT_MS}\x01".encode()
_MARKER: Final = f"{TIMER_DEL_UNIQKEY}\x01".encode()
_ENTRY_END: Final = b"\x02"


def number_of(text: str | None) -> int | None:
    """Return a property that is a whole number, or None."""
    if text is None or len(text) > _DIGITS_MAX or not text.isascii() or not text.isdecimal():
        return None
    return int(text)


def asks_for_timer(properties: Mapping[str, str]) -> bool:
    """Tell whether a message wants to be delivered at a moment; a delay level wins over that."""
    return DELAY not in properties and any(name in properties for name in TIMERS)


def due_ms(properties: Mapping[str, str], now_ms: int) -> int:
    """Return when a message says that it wants to be delivered.

    Raises:
        MessageIllegal: it says something that is no number.
    """
    for name, start_ms, unit_ms in (
        (TIMER_DELAY_SEC, now_ms, 1000),
        (TIMER_DELAY_MS, now_ms, 1),
        (TIMER_DELIVER_MS, 0, 1),
    ):
        if name in properties:
            text = properties[name]
            number = number_of(text.removeprefix("-"))
            if number is None:
                raise MessageIllegal(f"{name} is {text[:32]!r}: give a whole number")
            return start_ms + (-number if text.startswith("-") else number) * unit_ms
    raise MessageIllegal("the message does not say when to deliver it")


def rounded_down(moment_ms: int) -> int:
    """Return the whole second before a moment: that second is over when the moment has come."""
    return (moment_ms - 1) // PRECISION_MS * PRECISION_MS


def waiting(message: NewMessage, out_ms: int) -> NewMessage:
    """Return what is stored while a message waits."""
    properties = {
        **message.properties,
        TIMER_OUT_MS: str(out_ms),
        REAL_TOPIC: message.topic,
        REAL_QUEUE_ID: str(message.queue_id),
    }
    return message._replace(topic=TIMER_TOPIC, queue_id=TIMER_QUEUE, properties=properties)


class Timing:
    """Makes timer messages of those that ask for it."""

    def __init__(self, settings: LiveSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock

    def as_timer(self, message: NewMessage) -> tuple[NewMessage, str | None]:
        """Return what is stored instead of a message, and the handle by which to take it back.

        One that is due already is itself, and cannot be taken back.

        Raises:
            ResponseError: it may not wait so long, or not at all.
        """
        settings = self._settings.now
        if not settings.timers:
            raise SystemFailure("accurate timer message is not enabled: set timerWheelEnable=true")
        now_ms = self._clock.now_ms()
        moment_ms = due_ms(message.properties, now_ms)
        if moment_ms <= now_ms:
            if TIMER_DEL_UNIQKEY in message.properties:
                raise MessageIllegal("a message that is due cannot be taken back")
            return message, None
        if moment_ms - now_ms > settings.timer_delay_max_s * 1000:
            raise MessageIllegal(
                f"timer message illegal, the delay time is over {settings.timer_delay_max_s} s "
                "(timerMaxDelaySec)"
            )
        out_ms = rounded_down(moment_ms)
        handle = None
        key = message.properties.get(UNIQ_KEY)
        if key and not is_retry_topic(message.topic):
            handle = Handle(message.topic, settings.name, out_ms + 1, key).text
        return waiting(message, out_ms), handle


# -- what lies in the timer's topic --------------------------------------------------------------


def out_ms_of(properties: bytes) -> int | None:
    """Return when a waiting message is due; None if it does not say."""
    start = properties.find(_OUT)
    while start > 0 and properties[start - 1 : start] != _ENTRY_END:
        start = properties.find(_OUT, start + 1)
    if start < 0:
        return None
    text, _, _ = properties[start + len(_OUT) : start + len(_OUT) + 32].partition(_ENTRY_END)
    return number_of(text.decode(errors="replace"))


def is_marker(properties: bytes) -> bool:
    """Tell whether a record may say that another one is taken back."""
    return _MARKER in properties


def delete_key(topic: str, unique_key: str) -> str:
    """Return what a marker says of the message that it takes back."""
    return f"{topic}+{unique_key}"


class Due(NamedTuple):
    """A record of the timer's topic whose turn it is."""

    message: NewMessage
    out_ms: int
    topic: str
    """Where it belongs; empty if it does not say."""
    queue_id: int
    marks: str | None
    """What it takes back, if it is a marker."""
    key: str
    """By which it is taken back."""


def due_of(record: Record) -> Due:
    """Read a record of the timer's topic."""
    message = as_new(record)
    properties = message.properties
    topic = properties.get(REAL_TOPIC, "")
    queue_id = number_of(properties.get(REAL_QUEUE_ID, "0"))
    if queue_id is None or queue_id > _QUEUE_ID_MAX:
        topic = ""
    return Due(
        message,
        number_of(properties.get(TIMER_OUT_MS)) or 0,
        topic,
        queue_id or 0,
        properties.get(TIMER_DEL_UNIQKEY),
        delete_key(topic, properties.get(UNIQ_KEY, "")),
    )


def delivered(due: Due, stored_ms: int, now_ms: int) -> NewMessage:
    """Return the message that consumers get."""
    properties = {
        **due.message.properties,
        TIMER_ENQUEUE_MS: str(stored_ms // PRECISION_MS * PRECISION_MS),
        TIMER_DEQUEUE_MS: str(now_ms),
    }
    return due.message._replace(
        topic=due.topic, queue_id=due.queue_id, properties=properties, waits=False
    )


def carried_on(due: Due) -> NewMessage:
    """Return a copy that waits on: its log file might be deleted before it is due."""
    rolls = number_of(due.message.properties.get(TIMER_ROLL_TIMES)) or 0
    properties = {**due.message.properties, TIMER_ROLL_TIMES: str(rolls + 1)}
    return due.message._replace(properties=properties, waits=False)


# -- handles -------------------------------------------------------------------------------------


class Handle(NamedTuple):
    """What a producer needs in order to take a message back."""

    topic: str
    broker_name: str
    moment_ms: int
    unique_key: str

    @property
    def text(self) -> str:
        """Return it as it stands in an answer."""
        raw = f"v1 {self.topic} {self.broker_name} {self.moment_ms} {self.unique_key}"
        return base64.urlsafe_b64encode(raw.encode()).decode()


def parse_handle(text: str) -> Handle:
    """Read a handle.

    Raises:
        IllegalOperation: it is none.
    """
    try:
        text = text[: _HANDLE_CHARACTERS_MAX + 1]  # of what is longer nothing can be made
        padded = text + "=" * (-len(text) % 4)
        parts = base64.b64decode(padded, altchars=b"-_", validate=True).decode().split(" ")
    except (ValueError, binascii.Error):
        raise IllegalOperation("recall handle is invalid: it is not one of ours") from None
    moment_ms = number_of(parts[3]) if len(parts) >= _HANDLE_PARTS else None
    if (
        moment_ms is None
        or parts[0] != "v1"
        or not all(part.isprintable() and part for part in parts[:_HANDLE_PARTS])
    ):
        raise IllegalOperation("recall handle is invalid: it is not one of ours")
    return Handle(parts[1], parts[2], moment_ms, parts[4])
