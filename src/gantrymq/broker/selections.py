"""From a subscription to what the store asks of every message: tags by hash, SQL92 by properties.

A pull either relies on what its group said in heartbeats or brings its own expression along. SQL92
filters of heartbeats live in the `FilterTable`, which is saved as consumerFilter.json; one that a
pull brings is made for it. What was made is kept for the pulls that follow.

Owned by the event loop's task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.broker.filter.choice import TagChoice, choice_for
from gantrymq.broker.filter.errors import FilterError
from gantrymq.broker.filter.group_filter import build_filter, is_tag_type
from gantrymq.errors import InvalidValue
from gantrymq.model.group import SQL92_EXPRESSION, SUBSCRIBE_ALL, TAG_EXPRESSION, Subscription
from gantrymq.wire.response_errors import (
    FilterDataNotExist,
    FilterDataNotLatest,
    SubscriptionNotLatest,
    SubscriptionParseFailed,
    SystemFailure,
)
from gantrymq.wire.tags import TagFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gantrymq.broker.filter.choice import Choice
    from gantrymq.broker.filter.group_filter import GroupFilter
    from gantrymq.broker.filter.table import FilterTable
    from gantrymq.broker.settings import LiveSettings
    from gantrymq.clock import Clock
    from gantrymq.kernel.values import PullRequest
    from gantrymq.store.consume_queue_ext import ExtUnit

    ExtensionOf = Callable[[str, int], Callable[[int], ExtUnit | None] | None]
    """Topic and queue to `ConsumeQueueExt.read`, or None where there is no extension."""

KEPT_MAX: Final = 4096
"""Selections that are remembered; then all are made anew."""


class Selection(NamedTuple):
    """Which messages a pull gets: asked by the store, and at the sight of a tags code."""

    choose: Choice | None = None
    wanted: Callable[[int], bool] | None = None
    """None: any message may be for it, the store must look."""
    hashes: tuple[int, ...] | None = None
    """The tags that are chosen, none if all messages are; None where tags alone do not tell."""


EVERYTHING: Final = Selection(hashes=())


class Selections:
    """Makes selections, and keeps the SQL92 filters of groups."""

    def __init__(
        self,
        table: FilterTable,
        settings: LiveSettings,
        clock: Clock,
        extension_of: ExtensionOf = lambda _topic, _queue_id: None,
    ) -> None:
        self._table = table
        self._settings = settings
        self._clock = clock
        self._extension_of = extension_of
        self._kept: dict[object, Selection] = {}

    # -- heartbeats ------------------------------------------------------------------------------

    def register(self, group: str, subscriptions: Iterable[Subscription]) -> None:
        """Take in what a heartbeat says of a group."""
        if not self._settings.now.property_filter:
            return
        if self._table.register(group, subscriptions, self._clock.now_ms()):
            self._kept.clear()

    def unregister(self, group: str) -> None:
        """Note that nobody of a group is left."""
        self._table.unregister(group, self._clock.now_ms())

    def forget(self) -> None:
        """Make every selection anew: topics or groups have gone."""
        self._kept.clear()

    def check(self, subscription: Subscription) -> None:
        """Tell a client that starts whether its subscription can be used.

        Raises:
            ResponseError: it cannot, and why.
        """
        if is_tag_type(subscription.expression_type):
            return
        self._check_allowed(subscription.expression_type)
        self._built("", subscription)

    # -- pulls -----------------------------------------------------------------------------------

    def in_request(self, request: PullRequest) -> Subscription:
        """Return the subscription that a pull brings along.

        Raises:
            SubscriptionParseFailed: it is none.
        """
        expression_type = request.expression_type or TAG_EXPRESSION
        expression = request.subscription or SUBSCRIBE_ALL
        if not is_tag_type(expression_type):
            return Subscription(
                topic=request.topic,
                expression=expression,
                version=request.sub_version,
                expression_type=expression_type,
            )
        try:
            tags = TagFilter.parse(expression)
        except InvalidValue as error:
            raise SubscriptionParseFailed(
                f"parse the consumer's subscription failed: {error}"
            ) from None
        return Subscription(
            topic=request.topic,
            expression=expression,
            tags=tags.tags,
            tag_codes=tags.hashes,
            version=request.sub_version,
        )

    def of(self, request: PullRequest, subscription: Subscription, *, own: bool) -> Selection:
        """Return how a subscription chooses; `own` tells that the pull brought it along.

        Raises:
            ResponseError: its expression cannot be used.
        """
        if subscription.expression == SUBSCRIBE_ALL and is_tag_type(subscription.expression_type):
            return EVERYTHING
        key = (request.consumer_group, request.queue_id, own, subscription)
        kept = self._kept.get(key)
        if kept is None:
            if len(self._kept) >= KEPT_MAX:
                self._kept.clear()
            kept = self._kept[key] = self._make(request, subscription, own=own)
        return kept

    def for_newer(self, request: PullRequest, known: Subscription) -> Selection:
        """Return what to give a pull whose subscription is newer than the one that is known.

        Apache's brokers refuse it until the next heartbeat. But Java clients of 5.x raise the
        version whenever they share queues anew, and leave out the heartbeat that should tell it
        while another one is under way: seen in one start of seven, and then nothing comes for half
        a minute. With tags everything may be given: a client looks at the tags themselves anyway,
        for a broker compares hashes alone. What SQL92 chooses only the broker can tell.

        Raises:
            SubscriptionNotLatest: one of the two is not of tags.
        """
        if is_tag_type(request.expression_type or TAG_EXPRESSION) and is_tag_type(
            known.expression_type
        ):
            return EVERYTHING
        raise SubscriptionNotLatest(
            f"the consumer's subscription not latest: {known.version} is known and "
            f"{request.sub_version} was asked for; it comes with the next heartbeat"
        )

    def _make(self, request: PullRequest, subscription: Subscription, *, own: bool) -> Selection:
        group_filter: GroupFilter | None = None
        if not is_tag_type(subscription.expression_type):
            self._check_allowed(subscription.expression_type)
            if own:
                group_filter = self._built(request.consumer_group, subscription)
            else:
                group_filter = self._registered(request, subscription)
        choose = choice_for(
            subscription,
            group_filter,
            self._table,
            read_extension=self._extension_of(request.topic, request.queue_id),
            retry_filtered=self._settings.now.filter_retry,
        )
        if choose is None:
            return EVERYTHING
        if group_filter is not None:
            return Selection(choose)
        hashes = tuple(choose.hashes) if isinstance(choose, TagChoice) else None
        return Selection(choose, lambda tags_code: choose.by_dispatch(tags_code, None), hashes)

    def _check_allowed(self, expression_type: str) -> None:
        if expression_type != SQL92_EXPRESSION:
            raise SubscriptionParseFailed(
                f"expression type {expression_type[:32]!r} is not known: use TAG or SQL92"
            )
        if not self._settings.now.property_filter:
            raise SystemFailure(
                f"The broker does not support consumer to filter message by {expression_type}; "
                "set enablePropertyFilter=true"
            )

    def _built(self, group: str, subscription: Subscription) -> GroupFilter:
        try:
            return build_filter(
                subscription.topic,
                group,
                subscription.expression,
                subscription.expression_type,
                subscription.version,
                self._clock.now_ms(),
            )
        except FilterError as error:
            raise SubscriptionParseFailed(
                f"parse the consumer's subscription failed: {error}"
            ) from None

    def _registered(self, request: PullRequest, subscription: Subscription) -> GroupFilter:
        found = self._table.get(request.topic, request.consumer_group)
        if found is None:
            raise FilterDataNotExist(
                "the broker's consumer filter data is not exist! The expression "
                f"{subscription.expression[:64]!r} is not SQL92, or no heartbeat has brought it"
            )
        if found.client_version < request.sub_version:
            raise FilterDataNotLatest("the broker's consumer filter data is not latest!")
        return found
