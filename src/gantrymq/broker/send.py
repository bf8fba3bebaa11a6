"""SEND_MESSAGE as policy sees it: everything that the kernel's lane does not take.

Ordinary sends never come here. What comes is the first send to a topic, one without a queue, one
that is delayed or part of a transaction, one to a retry topic, and one that has to be refused. The
checks are RocketMQ's, in its order; each refusal says what was wrong and what to do.

Owned by the event loop's task.
"""

from __future__ import annotations

import logging
from asyncio import Future
from inspect import iscoroutine
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from gantrymq.broker.answers import refusal
from gantrymq.broker.hooks import SendHooks
from gantrymq.broker.quotas.meter import QuotaExceeded
from gantrymq.broker.storing import region_fields
from gantrymq.broker.timer.rules import TIMERS, asks_for_timer
from gantrymq.errors import ContentError, GantryError, InvalidValue, shown
from gantrymq.model.names import check_topic, dlq_topic, group_of, is_retry_topic, may_send_to
from gantrymq.model.topic import FilterType, Perm
from gantrymq.store.put import TRANSACTION_BITS, NewMessage
from gantrymq.wire.batch import decode_batch
from gantrymq.wire.integers import parse_integer
from gantrymq.wire.properties import (
    CLUSTER,
    DELAY,
    TRANSACTION_PREPARED,
    UNIQ_KEY,
    WAIT,
    decode_properties,
)
from gantrymq.wire.response_errors import (
    InvalidParameter,
    MessageIllegal,
    NoPermission,
    ResponseError,
    SubscriptionGroupNotExist,
    SystemFailure,
    TopicNotExist,
)
from gantrymq.wire.sysflag import SystemFlag

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gantrymq.broker.groups import Groups
    from gantrymq.broker.quotas.quotas import Quotas
    from gantrymq.broker.quotas.throttled import Throttled
    from gantrymq.broker.settings import LiveSettings
    from gantrymq.broker.storing import Storing
    from gantrymq.broker.topics import Topics
    from gantrymq.clock import Clock
    from gantrymq.kernel.values import SendRequest
    from gantrymq.model.topic import TopicConfig
    from gantrymq.wire.peer import Peer, Pending

log = logging.getLogger(__name__)

RETRY_LIMIT_VERSION: Final = 121
"""From this release on a client may say how often its group tries."""
_DEAD_LETTER_QUEUES: Final = 1


class Rewrites(Protocol):
    """Turn a message that is not to be seen yet into the one that is stored instead."""

    def as_half(self, message: NewMessage) -> NewMessage:
        """Return the half message of a transactional one."""
        ...

    def as_timer(self, message: NewMessage) -> tuple[NewMessage, str | None]:
        """Return what waits in the timer's topic, and the handle by which it can be recalled.

        Raises:
            ResponseError: it may not wait so long, or not at all.
        """
        ...


class _Target(NamedTuple):
    """Where a message goes."""

    topic: TopicConfig
    queue_id: int
    is_dead: bool = False


class Sending:
    """Answers sends one by one."""

    def __init__(
        self,
        storing: Storing,
        topics: Topics,
        groups: Groups,
        rewrites: Rewrites,
        quotas: Quotas,
        throttled: Throttled,
        settings: LiveSettings,
        clock: Clock,
        pick: Callable[[int], int],
    ) -> None:
        """Choose a queue with `pick`, which returns a number below its argument."""
        self._quotas = quotas
        self._throttled = throttled
        self._storing = storing
        self._topics = topics
        self._groups = groups
        self._rewrites = rewrites
        self._settings = settings
        self._clock = clock
        self._pick = pick
        self.hooks = SendHooks()

    def send(self, request: SendRequest, body: bytes, peer: Peer) -> Pending:
        """Answer a send, now or when it is as safe as the settings ask."""
        if self.hooks:
            return self._shown(request, body, peer)
        return self._answered(request, body, peer)

    def _shown(self, request: SendRequest, body: bytes, peer: Peer) -> Pending:
        """Show a send to the hooks before it is stored, and its answer afterwards."""
        try:
            context = self.hooks.before(request, peer)
        except ResponseError as error:
            reply = refusal(request, error, region_fields(self._settings.now))
            return None if request.oneway else reply
        pending = self._answered(request, body, peer)
        if isinstance(pending, Future):
            pending.add_done_callback(lambda done: self.hooks.after(context, done.result()))
        elif not iscoroutine(pending):
            self.hooks.after(context, pending)  # type: ignore[arg-type]
        return pending

    def _answered(self, request: SendRequest, body: bytes, peer: Peer) -> Pending:
        try:
            return self._send(request, body, peer)
        except QuotaExceeded as error:
            if request.oneway:
                return None
            reply = refusal(request, error, region_fields(self._settings.now))
            return self._throttled.refusal(error.cause, error.wait_s, peer, reply)
        except GantryError as error:
            reply = refusal(request, error, region_fields(self._settings.now))
            return None if request.oneway else reply
        except Exception as error:
            # A fault of ours; whoever asked must not wait for an answer that never comes.
            log.exception("a send of %s failed", peer.address)
            reply = refusal(request, error, region_fields(self._settings.now))
            return None if request.oneway else reply

    @property
    def begins_later(self) -> bool:
        """Tell whether no send is taken yet (startAcceptSendRequestTimeStamp)."""
        begin = self._settings.now.accepts_sends_from_ms
        return begin > 0 and self._clock.now_ms() < begin

    def _send(self, request: SendRequest, body: bytes, peer: Peer) -> Pending:
        target = self._target(request)
        if request.batch:
            return self._send_batch(request, body, peer, target)
        properties = _read_properties(request.properties)
        _check_level(properties.get(DELAY))
        message = self._message(request, target, body, properties, peer)
        handle: str | None = None
        if _says_true(properties.get(TRANSACTION_PREPARED)) and not (
            request.reconsume_times > 0 and DELAY in properties
        ):
            if self._settings.now.rejects_transactions:
                raise NoPermission("sending transaction message is forbidden on this broker")
            if asks_for_timer(properties):
                self._rewrites.as_timer(message)  # what may not wait is refused now
            message = self._rewrites.as_half(message)
        else:
            message = _of_no_transaction(message)
            if asks_for_timer(properties):
                message, handle = self._rewrites.as_timer(message)
        return self._storing.store(
            request,
            [message],
            target.queue_id,
            transaction_id=properties.get(UNIQ_KEY),
            recall_handle=handle,
            oneway=request.oneway,
        )

    # -- where to -------------------------------------------------------------------------------

    def _target(self, request: SendRequest) -> _Target:
        """Check where a message may go, in RocketMQ's order."""
        settings = self._settings.now
        if self.begins_later:
            raise SystemFailure(
                f"broker unable to service, until {settings.accepts_sends_from_ms} "
                "(startAcceptSendRequestTimeStamp)"
            )
        # Others go on until their clients have learnt from a name server that they may not.
        if not settings.permission & Perm.WRITE and self._topics.is_order(request.topic):
            raise NoPermission(
                f"the broker[{settings.shown}] sending message is forbidden: topic"
                f"[{request.topic}] is ordered (brokerPermission)"
            )
        self._check_name(request.topic)
        topic = self._topics.find(request.topic) or self._create(request)
        if not topic.writable:
            raise NoPermission(f"the topic[{topic.name}] sending message is forbidden")
        queue_id = request.queue_id
        queues = max(topic.read_queues, topic.write_queues)
        if queue_id >= queues:
            raise InvalidParameter(
                f"request queueId[{queue_id}] is illegal, topic[{topic.name}] has {queues} queues"
            )
        if queue_id < 0:
            if not topic.write_queues:
                raise NoPermission(f"the topic[{topic.name}] has no queue to write to")
            queue_id = self._pick(topic.write_queues)
        if is_retry_topic(topic.name):  # without a quota: a consumer must get rid of it
            return self._retried(request, topic, queue_id)
        self._quotas.check_send(topic, request)
        return _Target(topic, queue_id)

    @staticmethod
    def _check_name(topic: str) -> None:
        try:
            check_topic(topic)
        except InvalidValue as error:
            raise InvalidParameter(str(error)) from None
        if not may_send_to(topic):
            raise NoPermission(f"sending message to topic[{topic}] is forbidden")

    def _create(self, request: SendRequest) -> TopicConfig:
        """Make a topic that is not there: after a template, or for a group's retries."""
        made = self._topics.create_on_send(
            request.topic,
            request.default_topic,
            request.default_topic_queues,
            unit=request.unit_mode,
        )
        if made is None and is_retry_topic(request.topic):
            made = self._topics.create_for_group(request.topic, 1)
        if made is None:
            raise TopicNotExist(
                f"topic[{request.topic}] not exist, apply first please! Create it with "
                "updateTopic, or set autoCreateTopicEnable=true"
            )
        return made

    def _retried(self, request: SendRequest, topic: TopicConfig, queue_id: int) -> _Target:
        """Return where a message that its consumer could not handle goes: back, or to the dead."""
        name = group_of(topic.name) or ""
        group = self._groups.find_or_create(name)
        if group is None:
            raise SubscriptionGroupNotExist(f"subscription group not exist, {name}")
        limit = group.retry_times_max
        if request.version >= RETRY_LIMIT_VERSION and request.max_reconsume_times is not None:
            limit = request.max_reconsume_times
        if request.reconsume_times < limit:
            return _Target(topic, queue_id)
        dead = self._topics.create_for_group(dlq_topic(name), _DEAD_LETTER_QUEUES)
        return _Target(dead, 0, is_dead=True)

    # -- what -----------------------------------------------------------------------------------

    def _message(
        self,
        request: SendRequest,
        target: _Target,
        body: bytes,
        properties: Mapping[str, str],
        peer: Peer,
        *,
        needs_body: bool = True,
    ) -> NewMessage:
        if not body and needs_body:
            raise MessageIllegal("the message has no body; send at least one byte")
        kept = {
            name: value
            for name, value in properties.items()
            if name not in {WAIT, CLUSTER} and not (target.is_dead and name == DELAY)
        }
        kept[CLUSTER] = self._settings.now.cluster
        flags = request.sys_flag
        if target.topic.filter_type is FilterType.MULTI_TAG:
            flags |= SystemFlag.MULTI_TAGS
        return NewMessage(
            topic=target.topic.name,
            queue_id=target.queue_id,
            body=body,
            properties=kept,
            born_timestamp=request.born_timestamp,
            born_host=peer.host,
            flag=request.flag,
            sys_flag=flags,
            reconsume_times=request.reconsume_times,
            waits=_says_true(properties.get(WAIT, "true")),
        )

    def _send_batch(
        self, request: SendRequest, body: bytes, peer: Peer, target: _Target
    ) -> Pending:
        if is_retry_topic(request.topic) and (target.is_dead or not request.max_reconsume_times):
            # Apache takes none. Who names a limit knows of retries: an operator's redrive.
            raise MessageIllegal(f"batch request does not support retry group {request.topic}")
        if not body:
            raise MessageIllegal("the batch has no message in it; send at least one")
        if len(body) > self._storing.body_bytes_max:
            raise MessageIllegal(
                f"the batch has {len(body)} bytes, more than maxMessageSize "
                f"{self._storing.body_bytes_max} allows; send fewer messages at once"
            )
        shared = _read_properties(request.properties)
        if any(name in shared for name in (DELAY, TRANSACTION_PREPARED, *TIMERS)):
            raise MessageIllegal("a batch can be neither delayed nor part of a transaction")
        messages: list[NewMessage] = []
        for one in decode_batch(body):
            own = _read_properties(one.properties)
            message = self._message(request, target, one.body, {**shared, **own}, peer)
            # As in the lane, and with Apache: nothing in a batch waits, whatever it asks for.
            message = message._replace(flag=one.flag, is_due=True)
            messages.append(_of_no_transaction(message))
        return self._storing.store(request, messages, target.queue_id, oneway=request.oneway)

    # -- a reply of request-reply, which is stored like a message -------------------------------

    def message_of(
        self, request: SendRequest, body: bytes, properties: Mapping[str, str], peer: Peer
    ) -> NewMessage:
        """Return the message of a send that passed the checks, for others who store it.

        A reply may have no body: that it came can be all it says.

        Raises:
            ResponseError: it may not be stored.
        """
        target = self._target(request)
        return self._message(request, target, body, properties, peer, needs_body=False)


def _of_no_transaction(message: NewMessage) -> NewMessage:
    """Return a message that readers will see.

    One whose flag says that it is half of a transaction, or rolled back, gets no place in a queue:
    it would be acknowledged and never come. Clients before 4.6.1 leave the flag on what their
    consumer could not handle.

    Raises:
        MessageIllegal: the flag says so, and the property that makes it one is not there.
    """
    if message.is_counted:
        return message
    if is_retry_topic(message.topic) or message.reconsume_times > 0:
        return message._replace(sys_flag=message.sys_flag & ~TRANSACTION_BITS)
    raise MessageIllegal(
        f"the message is illegal: sysFlag {message.sys_flag} says that it is part of a "
        f"transaction, and its property {TRANSACTION_PREPARED} does not"
    )


def _check_level(text: str | None) -> None:
    """Refuse a delay level that is no number, as Java's parser does.

    Raises:
        SystemFailure: it is none.
    """
    if text is not None and parse_integer(text, 32) is None:
        raise SystemFailure(f"property {DELAY} is {shown(text)!r}: give a level, a whole number")


def _says_true(text: str | None) -> bool:
    return text is not None and text.lower() == "true"


def _read_properties(raw: bytes) -> dict[str, str]:
    try:
        return decode_properties(raw)
    except ContentError as error:
        raise MessageIllegal(f"the message is illegal: {error}") from None
