"""Where a group is in a topic; and where it has never been, told apart from the beginning.

Brokers answer 0 for a queue in which a group has never committed: in the statistics all of them,
and 4.9 also to the question for one queue. Whoever takes that for a place moves a group to the
beginning of all that is stored when a reset is undone. So a 0 is looked at twice: 5.x brokers and
ours say of one queue that they know nothing, if they are asked not to make it a 0; of the others
the whole table is read, as a slave does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.admin import groups as groups_of
from gantrymq.wire.bodies.offsets import CONSUMER_OFFSETS
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.offset import OffsetResponse, QueryConsumerOffsetRequest
from gantrymq.wire.response_errors import QueryNotFound, ResponseError, TopicNotExist

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.admin.session import Session
    from gantrymq.model.queue import MessageQueue


async def committed_offsets(session: Session, group: str, topic: str) -> dict[MessageQueue, int]:
    """Return where a group is in a topic; queues that it never committed are left out.

    Raises:
        GantryError: a broker did not answer: half of it is nothing.
    """
    try:
        brokers = await groups_of.brokers_of(session, group)
    except TopicNotExist:
        brokers = await session.masters_of_topic(topic)

    async def ask(name: str) -> Mapping[MessageQueue, int]:
        stats = await groups_of.consume_stats(session, brokers[name], group, topic)
        found = {
            queue: each.consumer_offset
            for queue, each in stats.offset_table.items()
            if queue.topic == topic
        }
        for queue in await _never_committed(session, brokers[name], group, found):
            del found[queue]
        return found

    answers = await session.gather(brokers, ask)
    for error in answers.problems.values():
        raise error
    return {queue: offset for table in answers.found.values() for queue, offset in table.items()}


async def _never_committed(
    session: Session, address: str, group: str, found: Mapping[MessageQueue, int]
) -> list[MessageQueue]:
    """Return the queues whose 0 is no place."""

    async def is_known(queue: MessageQueue) -> bool:
        header = QueryConsumerOffsetRequest(
            consumer_group=group, topic=queue.topic, queue_id=queue.queue_id,
            set_zero_if_not_found=False,
        )  # fmt: skip
        try:
            await session.remote.call(
                address, RequestCode.QUERY_CONSUMER_OFFSET, header, answer=OffsetResponse
            )
        except QueryNotFound:
            return False
        return True

    answers = await session.gather([each for each, at in found.items() if at == 0], is_known)
    for error in answers.problems.values():
        raise error
    doubtful = [queue for queue, known in answers.found.items() if known]
    never = [queue for queue, known in answers.found.items() if not known]
    if not doubtful:
        return never
    try:
        answered = await session.remote.call(address, RequestCode.GET_ALL_CONSUMER_OFFSET)
    except ResponseError:  # not for everybody: then 0 is all that can be known
        return never
    table = CONSUMER_OFFSETS.decode(answered.body).offset_table
    return never + [
        queue for queue in doubtful if queue.queue_id not in table.get(f"{queue.topic}@{group}", {})
    ]
