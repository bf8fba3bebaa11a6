"""Requests that say nothing but what they are about: one topic, queue, group or broker."""

from gantrymq.wire.fields import Header, Int32


class TopicRequest(Header, frozen=True, kw_only=True):
    """A request about one topic."""

    topic: str


class QueueRequest(Header, frozen=True, kw_only=True):
    """A request about one queue."""

    topic: str
    queue_id: Int32


class GroupRequest(Header, frozen=True, kw_only=True):
    """A request about one consumer group, under the name `group`."""

    group: str


class ConsumerGroupRequest(Header, frozen=True, kw_only=True):
    """A request about one consumer group, under the name `consumerGroup`."""

    consumer_group: str


class BrokerNameRequest(Header, frozen=True, kw_only=True):
    """A request about one broker group."""

    broker_name: str
