"""The parts of a push consumer, put together as its options say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.client.consuming.concurrent import Concurrent
from gantrymq.client.consuming.locks import QueueLocks
from gantrymq.client.consuming.member import Member
from gantrymq.client.consuming.offsets import LocalOffsets, OffsetStore, RemoteOffsets
from gantrymq.client.consuming.orderly import Orderly
from gantrymq.client.consuming.popping import Popping
from gantrymq.client.consuming.retrying import Retrying
from gantrymq.client.errors import ClientError
from gantrymq.model.group import ConsumeType

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.client.consuming.calls import ConsumerCalls
    from gantrymq.client.consuming.options import ConsumeOptions
    from gantrymq.client.consuming.process_queue import Held
    from gantrymq.client.consuming.statistics import Statistics
    from gantrymq.client.consuming.subscribed import Subscribed, Subscriptions
    from gantrymq.client.core import ClientCore

OFFSETS_FOLDER: Final = ".rocketmq_offsets"
"""In the user's home directory, as Java's client has it."""


def make_delivery(
    calls: ConsumerCalls, options: ConsumeOptions, find: Callable[[Held], Subscribed]
) -> Concurrent | Orderly:
    """Return how messages come to handlers."""
    core = calls.core
    delivery: Concurrent | Orderly
    if options.orderly:
        delivery = Orderly(
            core,
            find,
            workers=options.workers,
            batch=options.batch,
            reconsume_max=options.reconsume_max,
        )
        if not options.broadcasting:
            delivery.locks = QueueLocks(calls, core.clock, delivery.unlocked)
    else:
        delivery = Concurrent(
            core,
            find,
            workers=options.workers,
            batch=options.batch,
            consume_timeout_s=options.consume_timeout_s,
        )
    delivery.retrying = Retrying(
        calls,
        options.reconsume_max,
        delivery.deliver_again,
        gives_back=not options.broadcasting,
    )
    return delivery


async def open_offsets(calls: ConsumerCalls, options: ConsumeOptions) -> OffsetStore:
    """Return where offsets are kept.

    Raises:
        ClientError: they cannot be kept there.
    """
    if not options.broadcasting:
        return RemoteOffsets(calls)
    folder = options.offsets_directory or _home() / OFFSETS_FOLDER
    store = LocalOffsets(folder / calls.core.client_id / calls.group / "offsets.json")
    await store.open()
    return store


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:  # a container's user that nobody has heard of
        raise ClientError(
            f"no place for offsets: {error}: give offsets_directory= to a broadcasting consumer"
        ) from None


def make_member(
    calls: ConsumerCalls,
    options: ConsumeOptions,
    subscriptions: Subscriptions,
    offsets: OffsetStore,
    delivery: Concurrent | Orderly,
    statistics: Statistics,
) -> Member:
    """Return the member that reads queues into a delivery."""
    popping = None
    if options.pop and isinstance(delivery, Concurrent):
        popping = Popping(calls, delivery, options)
    return Member(
        calls,
        subscriptions,
        offsets,
        options.start_position,
        delivery,
        options.limits(),
        statistics,
        pull_batch=options.pull_batch,
        locks=delivery.locks if isinstance(delivery, Orderly) else None,
        popping=popping,
    )


def shown_properties(core: ClientCore, options: ConsumeOptions) -> dict[str, str]:
    """Return what an operator sees of the settings (307)."""
    return {
        "PROP_NAMESERVER_ADDR": ";".join(core.settings.name_servers),
        "PROP_THREADPOOL_CORE_SIZE": str(options.workers),
        "PROP_CONSUMEORDERLY": "true" if options.orderly else "false",
        "PROP_CONSUME_TYPE": ConsumeType.CONSUME_PASSIVELY.name,
        "PROP_CONSUMER_START_TIMESTAMP": str(core.clock.now_ms()),
        "messageModel": options.model.name,
        "consumeFromWhere": options.start_position.where.name,
        "allocateMessageQueueStrategy": options.strategy.name,
    }
