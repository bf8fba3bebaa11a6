"""PULL_MESSAGE: who may read what, what is read, and what the answer says.

The checks come in RocketMQ's order, so that a client sees the code it expects. Then the store is
read; what it found becomes one of four codes with the offsets of the queue. A pull that found
nothing at the end of its queue is held, if its sender allows it, and run again when a message
arrives or its time is over.

Owned by the event loop's task.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from gantrymq.broker.answers import refusal
from gantrymq.broker.offset_guard import Reader
from gantrymq.broker.quotas.meter import QuotaExceeded
from gantrymq.broker.quotas.throttled import READ_S_MAX
from gantrymq.errors import GantryError
from gantrymq.kernel import kernel
from gantrymq.model.group import MessageModel
from gantrymq.model.topic import Perm
from gantrymq.store.status import GetStatus
from gantrymq.wire.codes import SPOKEN_VERSION, ResponseCode
from gantrymq.wire.peer import Answer, RawReply
from gantrymq.wire.response_errors import (
    InvalidParameter,
    NoPermission,
    SubscriptionGroupNotExist,
    SubscriptionNotExist,
    SystemFailure,
    TopicNotExist,
)
from gantrymq.wire.sysflag import PullFlag

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable

    from gantrymq.broker.clients import Clients
    from gantrymq.broker.consumer_offsets import ConsumerOffsets
    from gantrymq.broker.groups import Groups
    from gantrymq.broker.hold import Held, HeldPulls
    from gantrymq.broker.offset_guard import OffsetGuard
    from gantrymq.broker.quotas.quotas import Quotas
    from gantrymq.broker.quotas.throttled import Throttled
    from gantrymq.broker.selections import Selection, Selections
    from gantrymq.broker.settings import LiveSettings
    from gantrymq.broker.topics import Topics
    from gantrymq.kernel.values import PullRequest
    from gantrymq.model.group import Subscription, SubscriptionGroup
    from gantrymq.model.topic import TopicConfig
    from gantrymq.store.get import Found
    from gantrymq.store.message_store import MessageStore
    from gantrymq.wire.peer import Peer

log = logging.getLogger(__name__)

_CODES: Final = {
    GetStatus.FOUND: ResponseCode.SUCCESS,
    GetStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    GetStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
}
"""For the statuses of a queue without messages the offset decides: see `_code`."""
_BEYOND: Final = frozenset({GetStatus.OFFSET_OVERFLOW_BADLY, GetStatus.NO_MESSAGE_IN_QUEUE})
_MASTER: Final = 0
# Plain numbers: an operator of an IntFlag costs a microsecond.
_COMMITS: Final = int(PullFlag.COMMIT_OFFSET)
_SUSPENDS: Final = int(PullFlag.SUSPEND)
_SUBSCRIBES: Final = int(PullFlag.SUBSCRIPTION)
_READ: Final = int(Perm.READ)
COLD: Final = "COLD_READS"
"""The word that a remark begins with where reads from the disk are over their budget."""
UNASKED_S_MAX: Final = 1.0
"""How long a pull waits for a quota whose sender does not expect to wait."""
PULL_BYTES_SMALL: Final = 65536
"""Messages that are smaller in all are copied behind their header: one write, not many."""


class PullCounts(Protocol):
    """Is told what was read, for statistics."""

    def pulled(
        self, group: str, topic: str, queue_id: int, messages: int, size: int, took_ms: float = 0.0
    ) -> None:
        """Note the outcome of one read, and how long it took if that is worth a word."""
        ...


class _Pull(NamedTuple):
    """A pull that passed the checks."""

    request: PullRequest
    peer: Peer
    group: SubscriptionGroup
    selection: Selection
    future: Future[Answer]
    patience: float | None = None
    """Until when it waits for a quota; None if it has not met one yet."""


class Pulling:
    """Answers pulls."""

    def __init__(
        self,
        store: MessageStore,
        topics: Topics,
        groups: Groups,
        clients: Clients,
        offsets: ConsumerOffsets,
        selections: Selections,
        held: HeldPulls,
        guard: OffsetGuard,
        counts: PullCounts,
        quotas: Quotas,
        throttled: Throttled,
        settings: LiveSettings,
        *,
        is_slave: Callable[[], bool],
        new_future: Callable[[], Future[Answer]],
        monotonic: Callable[[], float],
    ) -> None:
        self._store = store
        self._topics = topics
        self._groups = groups
        self._clients = clients
        self._offsets = offsets
        self._selections = selections
        self._held = held
        self.guard = guard
        self._counts = counts
        self.quotas = quotas
        self._throttled = throttled
        self._settings = settings
        self._is_slave = is_slave
        self._new_future = new_future
        self._monotonic = monotonic
        self._waiting: dict[int, dict[Held, tuple[str, int]]] = {}

    def pull(self, request: PullRequest, peer: Peer) -> Answer | Future[Answer]:
        """Answer a pull, now or when there is something."""
        try:
            return self._pull(request, peer)
        except GantryError as error:
            return None if request.oneway else refusal(request, error)
        except Exception as error:
            # A fault of ours; whoever asked must not wait for an answer that never comes.
            log.exception("a pull of %s failed", peer.address)
            return None if request.oneway else refusal(request, error)

    def _pull(self, request: PullRequest, peer: Peer) -> Answer | Future[Answer]:
        group, selection = self.admit(request)
        if request.sys_flag & _COMMITS and not self._is_slave() and not self._has_reset(request):
            self._offsets.commit(
                request.consumer_group,
                request.topic,
                request.queue_id,
                request.commit_offset,
                who=peer.address,
            )
        pull = _Pull(request, peer, group, selection, self._new_future())
        self._read(pull, may_hold=bool(request.sys_flag & _SUSPENDS), requests=1)
        return pull.future.result() if pull.future.done() else pull.future

    def _has_reset(self, request: PullRequest) -> bool:
        """Say whether an operator has sent the group elsewhere, which its member does not know."""
        return self._offsets.has_reset(request.consumer_group, request.topic, request.queue_id)

    # -- may it ---------------------------------------------------------------------------------

    def admit(self, request: PullRequest) -> tuple[SubscriptionGroup, Selection]:
        """Check a pull as RocketMQ does, in its order.

        Raises:
            ResponseError: it may not, and why.
        """
        if not self._settings.now.permission & _READ:
            shown = self._settings.now.shown
            raise NoPermission(
                f"the broker[{shown}] pulling message is forbidden (brokerPermission)"
            )
        group = self._groups.find_or_create(request.consumer_group)
        if group is None:
            raise SubscriptionGroupNotExist(
                f"subscription group [{request.consumer_group}] does not exist; create it with "
                "updateSubGroup, or set autoCreateSubscriptionGroup=true"
            )
        if not group.consume_enabled:
            raise NoPermission(f"subscription group no permission, {request.consumer_group}")
        self._check_queue(request, self._topic(request.topic))
        if self._groups.is_forbidden(request.consumer_group, request.topic):
            raise NoPermission(
                f"the consumer group[{group.name}] is forbidden for topic[{request.topic}]"
            )
        if request.sys_flag & _SUBSCRIBES:
            subscription = self._selections.in_request(request)
            return group, self._selections.of(request, subscription, own=True)
        subscription = self._subscribed(request, group)
        if subscription.version < request.sub_version:
            return group, self._selections.for_newer(request, subscription)
        return group, self._selections.of(request, subscription, own=False)

    def _topic(self, name: str) -> TopicConfig:
        topic = self._topics.find(name)
        if topic is None:
            raise TopicNotExist(f"topic[{name}] not exist, apply first please!")
        if not topic.readable:
            raise NoPermission(f"the topic[{name}] pulling message is forbidden")
        return topic

    @staticmethod
    def _check_queue(request: PullRequest, topic: TopicConfig) -> None:
        if not 0 <= request.queue_id < topic.read_queues:
            raise InvalidParameter(
                f"queueId[{request.queue_id}] is illegal, topic:[{topic.name}] has "
                f"{topic.read_queues} queues to read"
            )

    def _subscribed(self, request: PullRequest, group: SubscriptionGroup) -> Subscription:
        """Return what the group's members said they take from the topic."""
        state = self._clients.consumer(request.consumer_group)
        if state is None:
            raise SubscriptionNotExist(
                f"the consumer's group info not exist: no member of {request.consumer_group} has "
                "sent a heartbeat"
            )
        if not group.broadcast_enabled and state.message_model is MessageModel.BROADCASTING:
            raise NoPermission(f"the consumer group[{group.name}] may not consume by broadcast")
        subscription = self._clients.subscription(request.consumer_group, request.topic)
        if subscription is None:
            raise SubscriptionNotExist(
                f"the consumer's subscription not exist: {request.consumer_group} does not "
                f"subscribe to {request.topic}"
            )
        return subscription

    # -- read and answer ------------------------------------------------------------------------

    def _read(self, pull: _Pull, *, may_hold: bool, requests: int = 0) -> None:
        request = pull.request
        topic = self._topics.find(request.topic)
        exceeded = self.quotas.exceeded_read(pull.group, topic, requests)
        if exceeded is not None:
            self._throttle(pull, exceeded, may_hold=may_hold, requests=requests)
            return
        reset = self._offsets.pending_reset(request.consumer_group, request.topic, request.queue_id)
        if reset is not None:
            self.guard.let_pass(_reader(request))
            _settle(pull, self._moved(request, reset, "OFFSET_RESET"))
            return
        if self.guard.is_watching and not self._is_slave():
            least = self._store.reads.min_offset(request.topic, request.queue_id)
            sent_to = self.guard.check(_reader(request), request.queue_offset, least)
            if sent_to is not None:
                remark = GetStatus.OFFSET_OVERFLOW_BADLY.value
                _settle(pull, self._moved(request, sent_to, remark))
                return
        begun = self._monotonic()
        self._store.reads.begin_pull(
            request.topic,
            request.queue_id,
            request.queue_offset,
            request.max_messages,
            pull.selection.choose,
            pull.selection.hashes,
            lambda found: self._found(pull, found, begun, may_hold=may_hold),
            pull.group.name,
        )

    def _found(self, pull: _Pull, found: Found, begun: float, *, may_hold: bool) -> None:
        if pull.future.done():
            return  # its sender is gone
        request = pull.request
        if found.wait_s:
            exceeded = QuotaExceeded(COLD, found.trouble, found.wait_s)
            self._throttle(pull, exceeded, may_hold=may_hold, requests=0)
            return
        if found.trouble and found.next_offset <= request.queue_offset:
            # An empty success would bring its sender back at once, again and again; after an error
            # a client pauses for some seconds.
            log.warning("a pull of %s found the disk in trouble: %s", pull.peer.address,
                        found.trouble)  # fmt: skip
            _settle(pull, refusal(request, SystemFailure(f"cannot read now: {found.trouble}")))
            return
        if found.status in _BEYOND and self._is_stored(request):
            # It comes from a slave, which shows at once what is not shown here yet.
            found = found._replace(
                status=GetStatus.OFFSET_OVERFLOW_ONE, next_offset=request.queue_offset
            )
        if found.status in _BEYOND and request.queue_offset > 0 and not self._is_slave():
            try:
                after = self.guard.beyond(
                    _reader(request), request.queue_offset, found.min_offset, found.max_offset
                )
            except GantryError as error:
                _settle(pull, refusal(request, error))
                return
            found = found._replace(next_offset=after)
        code = self._code(found, request)
        if code is ResponseCode.PULL_NOT_FOUND and may_hold and self._hold(pull):
            return
        self._counts.pulled(
            request.consumer_group,
            request.topic,
            request.queue_id,
            found.messages,
            found.record_bytes,
            (self._monotonic() - begun) * 1000,
        )
        _settle(pull, _reply(request, found, code, self._suggested(found, pull.group)))

    def _is_stored(self, request: PullRequest) -> bool:
        """Tell whether the log has all before an offset, shown or not."""
        end = self._store.offsets.next_offset(request.topic, request.queue_id)
        return not self._is_slave() and 0 < request.queue_offset <= end

    def _code(self, found: Found, request: PullRequest) -> ResponseCode:
        code = _CODES.get(found.status)
        if code is None:
            moved = request.queue_offset != 0
            code = ResponseCode.PULL_OFFSET_MOVED if moved else ResponseCode.PULL_NOT_FOUND
        if code is not ResponseCode.SUCCESS and self._is_slave():
            # The master may have more: its reader goes back to it at once.
            return ResponseCode.PULL_RETRY_IMMEDIATELY
        return code

    def _suggested(self, found: Found, group: SubscriptionGroup) -> int:
        """Return which broker of the group the reader had better ask next."""
        if not self._settings.now.slave_read:
            return _MASTER
        if found.from_slave:
            return group.slow_reader_broker_id
        return group.broker_id

    def _moved(self, request: PullRequest, offset: int, remark: str) -> RawReply:
        least = self._store.reads.min_offset(request.topic, request.queue_id)
        most = self._store.reads.max_offset(request.topic, request.queue_id)
        return RawReply(
            (_head(request, ResponseCode.PULL_OFFSET_MOVED, remark, _MASTER, offset,
                   least, most, 0),)
        )  # fmt: skip

    # -- hold -----------------------------------------------------------------------------------

    def _hold(self, pull: _Pull) -> bool:
        if not pull.peer.is_open:  # it left while the disk was read: nobody would end the wait
            return False
        settings = self._settings.now
        timeout_ms = (
            pull.request.suspend_timeout_ms if settings.long_polling else settings.short_polling_ms
        )
        request, peer = pull.request, pull.peer
        held = self._held.hold(
            request.topic,
            request.queue_id,
            timeout_ms,
            lambda last: self._again(pull, last=last),
            pull.selection.wanted,
        )
        if held is None:
            return False
        mine = self._waiting.setdefault(peer.number, {})
        mine[held] = request.topic, request.queue_id
        pull.future.add_done_callback(lambda _: self._let_go(peer.number, held))
        return True

    def _throttle(
        self, pull: _Pull, exceeded: QuotaExceeded, *, may_hold: bool, requests: int
    ) -> None:
        """Let a pull wait until a quota allows it; refuse it if that is too far off.

        An empty answer would bring its sender back at once. After an error it pauses for longer.
        """
        now = self._throttled.now()
        patience = pull.patience
        if patience is None:
            waits_s = pull.request.suspend_timeout_ms / 1000 if may_hold else UNASKED_S_MAX
            patience = now + min(waits_s, READ_S_MAX)
        waiting = pull._replace(patience=patience)
        if now + exceeded.wait_s <= patience and self._throttled.hold(
            exceeded.cause,
            exceeded.wait_s,
            pull.peer,
            lambda: self._again(waiting, last=not may_hold, requests=requests),
        ):
            return
        self.quotas.refused(exceeded.cause)
        _settle(pull, refusal(pull.request, exceeded))

    def _again(self, pull: _Pull, *, last: bool, requests: int = 0) -> None:
        """Read again, if the pull would still be let in: much may have changed while it waited."""
        if pull.future.done():
            return  # its sender is gone
        try:
            group, selection = self.admit(pull.request)
            again = pull._replace(group=group, selection=selection)
            self._read(again, may_hold=not last, requests=requests)
        except GantryError as error:
            _settle(pull, refusal(pull.request, error))
        except Exception as error:
            log.exception("a held pull of %s failed", pull.peer.address)
            _settle(pull, refusal(pull.request, error))

    def _let_go(self, peer_number: int, held: Held) -> None:
        mine = self._waiting.get(peer_number)
        if mine is not None:
            mine.pop(held, None)
            if not mine:
                del self._waiting[peer_number]

    def peer_closed(self, peer: Peer) -> None:
        """Forget the pulls of a connection that is no more."""
        for held, (topic, queue_id) in self._waiting.pop(peer.number, {}).items():
            self._held.drop(topic, queue_id, held)


def _reader(request: PullRequest) -> Reader:
    return Reader(request.consumer_group, request.topic, request.queue_id)


def _settle(pull: _Pull, reply: Answer) -> None:
    if not pull.future.done():
        pull.future.set_result(None if pull.request.oneway else reply)


def _reply(request: PullRequest, found: Found, code: ResponseCode, suggested: int) -> RawReply:
    head = _head(
        request,
        code,
        found.status.value,
        suggested,
        found.next_offset,
        found.min_offset,
        found.max_offset,
        found.record_bytes,
    )
    if found.record_bytes < PULL_BYTES_SMALL:
        return RawReply((b"".join((head, *found.records)),))
    return RawReply((head, *found.records))


def _head(
    request: PullRequest,
    code: ResponseCode,
    remark: str,
    suggested: int,
    following: int,
    least: int,
    most: int,
    body_bytes: int,
) -> bytes:
    return kernel.encode_pull_reply(
        request.opaque,
        request.serialize_type,
        SPOKEN_VERSION,
        code,
        remark.encode(),
        suggested,
        following,
        least,
        most,
        body_bytes,
    )
