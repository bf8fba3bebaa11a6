"""What is done with one half message that is still open when a round comes by it.

It is asked about, carried on, given up or left alone; `transactions_checking` says which messages
are looked at, and when, and how that differs from an Apache broker.

Owned by the event loop's task.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.broker.half import (
    Half,
    Place,
    asked_again,
    carried_on,
    check_request,
    given_up,
    half_of,
)
from gantrymq.broker.stored_again import decode
from gantrymq.broker.transactions_ledger import OPEN
from gantrymq.errors import GantryError
from gantrymq.model.names import CHECKED_TOO_OFTEN_TOPIC, HALF_TOPIC
from gantrymq.store.status import PutStatus
from gantrymq.wire.properties import UNIQ_KEY

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.broker.clients import Clients
    from gantrymq.broker.settings import LiveSettings
    from gantrymq.broker.topics import Topics
    from gantrymq.broker.transactions_ledger import Ledger
    from gantrymq.broker.transactions_ops import OpQueue
    from gantrymq.clock import Clock
    from gantrymq.store.message_store import MessageStore
    from gantrymq.store.put import NewMessage, Stored
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Peer

log = logging.getLogger(__name__)

CARRY_ON_MS: Final = 3_600_000
"""A message that stays open is stored again so often, lest its log file be deleted."""
COPIES_MAX: Final = 65_536
"""Copies that are remembered in the first round after a start."""
_REFUSED_FOR_GOOD: Final = frozenset(
    {PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED}
)


class StoreRefuses(Exception):
    """The store takes nothing now; the message is looked at again."""


class AskingParts(NamedTuple):
    """What is needed to deal with a half message."""

    store: MessageStore
    ledger: Ledger
    ops: OpQueue
    topics: Topics
    clients: Clients
    settings: LiveSettings
    clock: Clock
    store_host: bytes
    reserved_ms: Callable[[], int]
    """How long the log keeps messages (`fileReservedTime`)."""


class _Copy(NamedTuple):
    """What is remembered of a copy."""

    offset: int
    checks: int
    copy_of: int | None

    def replaces(self, half: Half) -> bool:
        """Tell whether this is a later copy of a half message with the same key."""
        if self.offset <= half.offset:
            return False
        is_carried_on = self.copy_of is not None and self.copy_of in {half.offset, half.copy_of}
        return self.checks > half.checks or (self.checks == half.checks and is_carried_on)


class Asking:
    """Deals with open half messages one by one."""

    def __init__(self, parts: AskingParts) -> None:
        self._parts = parts
        self._copies: dict[tuple[str, str, int], _Copy] = {}

    # -- after a start --------------------------------------------------------------------------

    def survey(self, raw: memoryview) -> None:
        """Remember a copy, so that the message it was made of is not taken for open as well.

        An op record says so; but a broker that was killed may not have written it, and one of
        Apache's never does.
        """
        try:
            half = half_of(decode(raw))
        except GantryError:
            return
        key = _key(half)
        if key is None or (half.checks == 0 and half.copy_of is None):
            return
        if key in self._copies or len(self._copies) < COPIES_MAX:
            self._copies[key] = _Copy(half.offset, half.checks, half.copy_of)

    def forget_copies(self) -> None:
        """Let go of what `survey` found."""
        self._copies.clear()

    # -- one message ----------------------------------------------------------------------------

    def look_at(self, offset: int, raw: memoryview, *, is_tight: bool) -> None:
        """Do what is due with the message at an offset; `is_tight`: it cannot stay where it is.

        Raises:
            StoreRefuses: nothing was done.
        """
        ledger, ops = self._parts.ledger, self._parts.ops
        try:
            half = half_of(decode(raw))
        except GantryError as error:
            log.warning("half message %d cannot be read, and is left out: %s", offset, error)
            ops.write(offset)
            return
        if ledger.state(half.offset) != OPEN:
            return
        key = _key(half)
        copy = self._copies.get(key) if key is not None else None
        if copy is not None and copy.replaces(half):
            ledger.move(half.offset, copy.offset)
            ops.write(half.offset)
            return
        if half.copy_of is not None:
            ledger.move(half.copy_of, half.offset)
        self._judge(half, is_tight=is_tight)

    def _judge(self, half: Half, *, is_tight: bool) -> None:
        settings, now_ms = self._parts.settings.now, self._parts.clock.now_ms()
        if (
            not half.is_whole
            or half.checks >= settings.transaction_checks_max
            or half.age_ms(now_ms) > self._parts.reserved_ms()
        ):
            self._give_up(half)
            return
        producer = None
        if not half.is_immune(now_ms, settings.transaction_timeout_ms):
            producer = self._parts.clients.any_producer(half.group)
        if producer is not None:
            self._ask(half, producer)
        elif is_tight or now_ms - half.stored_ms > CARRY_ON_MS:
            self._store_again(half, carried_on(half))

    def _give_up(self, half: Half) -> None:
        self._parts.topics.create_for_group(CHECKED_TOO_OFTEN_TOPIC, 1)
        self._store_again(half, given_up(half))
        log.warning(
            "half message %d of group %r for topic %r is given up after %d checks: see %s",
            half.offset,
            half.group,
            half.topic,
            half.checks,
            CHECKED_TOO_OFTEN_TOPIC,
        )

    def _ask(self, half: Half, producer: Peer) -> None:
        """Store a message again and ask a producer about the copy, when it is safe."""
        copy, host = asked_again(half), self._parts.store_host
        stored = self._store_again(half, copy)
        if stored is None:
            # A copy with one more property is too long: ask about the message itself.
            place = Place(half.offset, half.log_offset, half.stored_ms)
            _tell(producer, check_request(half, half.message, place, host))
            return
        place = Place(stored.queue_offset, stored.log_offset, stored.store_timestamp)
        question = check_request(half, copy, place, host)

        def safe(status: PutStatus) -> None:
            if status.is_stored:
                _tell(producer, question)

        self._parts.store.hold(stored.end, safe)

    def _store_again(self, half: Half, message: NewMessage) -> Stored | None:
        """Store a message that takes the place of a half message; None if it can never be stored.

        Such a one is left where it is, unless it was to be given up.

        Raises:
            StoreRefuses: it cannot be stored now.
        """
        stored = self._parts.store.put([message])
        if stored.status is PutStatus.PUT_OK:
            if message.topic == HALF_TOPIC:
                self._parts.ledger.move(half.offset, stored.queue_offset)
            self._parts.ops.write(half.offset)
            return stored
        if stored.status not in _REFUSED_FOR_GOOD:
            raise StoreRefuses(stored.status.value)
        log.warning("half message %d cannot be stored again: %s", half.offset, stored.status.value)
        if message.topic != HALF_TOPIC:
            self._parts.ops.write(half.offset)
        return None


def _key(half: Half) -> tuple[str, str, int] | None:
    """Return what a half message has in common with its copies alone; None if it has no key.

    A producer that sends again because no answer came keeps the unique key, but not the birthday.
    """
    unique_key = half.message.properties.get(UNIQ_KEY)
    if unique_key is None:
        return None
    return half.group, unique_key, half.message.born_timestamp


def _tell(producer: Peer, question: Command) -> None:
    if not producer.tell(question):
        log.info("the producer at %s could not be asked; another is, later", producer.address)
