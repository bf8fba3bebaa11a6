"""RECALL_MESSAGE (370): a producer takes a timer message back; and what slaves ask about timers.

Nothing is looked for: a marker is stored that is due in the same second, and takes the message back
when both are read. Its sender learns that the marker is stored, as with an Apache broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.broker.answers import answer
from gantrymq.broker.storing import not_stored
from gantrymq.broker.timer.rules import delete_key, parse_handle
from gantrymq.model.topic import Perm
from gantrymq.store.put import NewMessage
from gantrymq.store.status import PutStatus
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.headers.send import RecallMessageRequest
from gantrymq.wire.properties import (
    BORN_TIMESTAMP,
    PRODUCER_GROUP,
    TAGS,
    TIMER_DEL_UNIQKEY,
    TIMER_DELIVER_MS,
    UNIQ_KEY,
)
from gantrymq.wire.response_errors import (
    IllegalOperation,
    NoPermission,
    ServiceNotAvailable,
    SlaveNotAvailable,
    SystemFailure,
    TopicNotExist,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gantrymq.broker.settings import BrokerSettings, LiveSettings
    from gantrymq.broker.storing import Storing
    from gantrymq.broker.timer.rules import Handle, Timing
    from gantrymq.broker.timer.timers import Timers
    from gantrymq.broker.topics import Topics
    from gantrymq.clock import Clock
    from gantrymq.store.message_store import MessageStore
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Handler, Peer, Pending

RECALL_TAG: Final = "_RECALL_TAG_"


class TimerRequests:
    """Answers requests about timers."""

    def __init__(
        self,
        store: MessageStore,
        storing: Storing,
        topics: Topics,
        timing: Timing,
        timers: Timers,
        settings: LiveSettings,
        clock: Clock,
        *,
        is_slave: Callable[[], bool],
    ) -> None:
        self._store = store
        self._storing = storing
        self._topics = topics
        self._timing = timing
        self._timers = timers
        self._settings = settings
        self._clock = clock
        self._is_slave = is_slave

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Return what is handled here."""
        return {
            RequestCode.RECALL_MESSAGE: self.recall,
            RequestCode.GET_TIMER_CHECK_POINT: self.check_point,
            RequestCode.GET_TIMER_METRICS: self.metrics,
        }

    def recall(self, request: Command, peer: Peer) -> Pending:
        """Store the marker that takes a message back."""
        header = RecallMessageRequest.decode(request.fields)
        settings = self._settings.now
        self._check(header.topic, settings)
        handle = parse_handle(header.recall_handle)
        self._check_handle(handle, header.topic, settings)
        message, _ = self._timing.as_timer(_marker(header, handle, self._clock.now_ms(), peer))
        self._storing.check_room()
        stored = self._store.put([message])
        if stored.status is not PutStatus.PUT_OK:
            raise not_stored(stored.status, self._store)
        fields = {"msgId": handle.unique_key, "MSG_REGION": settings.region}

        def outcome(status: PutStatus) -> Answer:
            if status.is_stored:
                return answer(request, ResponseCode.SUCCESS, fields)
            error = not_stored(status, self._store)
            return answer(request, error.code, remark=error.remark)

        return self._storing.wait(stored.end, outcome)

    def _check(self, topic: str, settings: BrokerSettings) -> None:
        if not settings.recalls:
            raise NoPermission(
                "recall failed, operation is forbidden; set recallMessageEnable=true"
            )
        if self._is_slave():
            raise SlaveNotAvailable("recall failed, this broker is a slave; ask its master")
        if (
            self._clock.now_ms() < settings.accepts_sends_from_ms
            or not settings.permission & Perm.WRITE
        ):
            raise ServiceNotAvailable("recall failed, this broker may not be written to now")
        if self._topics.find(topic) is None:
            raise TopicNotExist(f"recall failed, the topic[{topic}] not exist")

    def _check_handle(self, handle: Handle, topic: str, settings: BrokerSettings) -> None:
        if handle.topic != topic:
            raise IllegalOperation(f"recall failed, the handle is for topic {handle.topic[:64]!r}")
        if handle.broker_name != settings.name:
            raise IllegalOperation(
                f"recall failed, the handle is for broker {handle.broker_name[:64]!r}"
            )
        left_ms = handle.moment_ms - self._clock.now_ms()
        if not 0 < left_ms < settings.timer_delay_max_s * 1000:
            raise IllegalOperation("recall failed, the message is delivered, or the time is wrong")

    # -- slaves ---------------------------------------------------------------------------------

    def check_point(self, request: Command, _peer: Peer) -> Answer:
        """Return how far timers are (60)."""
        self._check_enabled()
        return answer(request, body=self._timers.check().short)

    def metrics(self, request: Command, _peer: Peer) -> Answer:
        """Return how many messages wait, by topic (61)."""
        self._check_enabled()
        check = self._timers.check()
        counts = {
            topic: {"count": count, "timeStamp": check.timestamp_ms}
            for topic, count in self._timers.counts.items()
        }
        version = {
            "counter": check.counter,
            "stateVersion": check.state_version,
            "timestamp": check.timestamp_ms,
        }
        body = msgspec.json.encode({"dataVersion": version, "timingCount": counts})
        return answer(request, body=body)

    def _check_enabled(self) -> None:
        if not self._settings.now.timers:
            raise SystemFailure("this broker has no timers: set timerWheelEnable=true")


def _marker(header: RecallMessageRequest, handle: Handle, now_ms: int, peer: Peer) -> NewMessage:
    properties = {
        TAGS: RECALL_TAG,
        TIMER_DEL_UNIQKEY: delete_key(handle.topic, handle.unique_key),
        UNIQ_KEY: handle.unique_key,
        TIMER_DELIVER_MS: str(handle.moment_ms),
        BORN_TIMESTAMP: str(now_ms),
    }
    if header.producer_group:
        properties[PRODUCER_GROUP] = header.producer_group
    return NewMessage(handle.topic, 0, b"0", properties, now_ms, peer.host)
