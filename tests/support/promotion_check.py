"""Tables of a promoted slave beside what its master had acknowledged.

A client commits offsets without a pause and notes when each commit was answered; topics and groups
are made meanwhile. The master is killed; what the new one knows is compared.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import GantryError
from gantrymq.model.group import SubscriptionGroup
from gantrymq.wire.bodies.group import GROUP_CONFIG
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.offset import QueryConsumerOffsetRequest, UpdateConsumerOffsetRequest
from gantrymq.wire.headers.topic import CreateTopicRequest, GetTopicConfigRequest
from support.failover_group import QUEUES, SEND, TOPIC, header

if TYPE_CHECKING:
    from random import Random

    from support.failover_group import Broker, Group
    from support.remoting import RemotingClient

GROUPS: Final = 4
TOPIC_PAUSE_S: Final = 0.1


class Lacking(NamedTuple):
    """What a new master does not know."""

    commits: int
    """Offsets that were committed, by group and queue."""
    lost: int
    """Of them, those that it has none of at all."""
    behind_s: float
    """Of the one that is furthest behind: how old the first commit is that it does not know."""
    topics: int
    """Topics that were made."""
    topics_lost: int

    def in_words(self) -> str:
        return (
            f"{self.commits} offsets, {self.lost} lost, behind by {self.behind_s:.3f} s of commits "
            f"at most; {self.topics} topics, {self.topics_lost} lost"
        )


class Committing:
    """Commits offsets of some groups and makes topics, until the master is gone."""

    def __init__(self, broker: Broker, name: str) -> None:
        self._broker = broker
        self._name = name
        self.answered: dict[tuple[str, int], list[tuple[int, float]]] = {}
        """By group and queue: offsets, and when they were answered."""
        self.topics: list[str] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join(30)

    def _run(self) -> None:
        turn, made = 0, 0.0
        try:
            with self._broker.client() as client:
                for number in range(GROUPS):
                    group = SubscriptionGroup(f"{self._name}-{number}")
                    body = GROUP_CONFIG.encode(group)
                    client.want(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)
                    for queue in range(QUEUES):
                        # A new master believes who has read its log, as any consumer does.
                        client.pull(TOPIC, queue, 0, group.name)
                while True:
                    turn += 1
                    self._send_and_commit(client, turn % QUEUES)
                    if time.monotonic() - made > TOPIC_PAUSE_S:
                        made = time.monotonic()
                        self._make_topic(client, f"{self._name}-{turn}")
        except (OSError, GantryError):
            return  # it was killed; a run without any commit shows in the report

    def _send_and_commit(self, client: RemotingClient, queue: int) -> None:
        """Commit that a message was read, as soon as it is taken."""
        sent = client.ask(SEND, header(queue), b"x")
        if sent.code == 0:
            for number in range(GROUPS):
                offset = int(sent.fields["queueOffset"]) + 1
                self._commit(client, f"{self._name}-{number}", queue, offset)

    def _commit(self, client: RemotingClient, group: str, queue: int, offset: int) -> None:
        client.want(
            RequestCode.UPDATE_CONSUMER_OFFSET,
            UpdateConsumerOffsetRequest(
                consumer_group=group, topic=TOPIC, queue_id=queue, commit_offset=offset
            ),
        )
        self.answered.setdefault((group, queue), []).append((offset, time.monotonic()))

    def _make_topic(self, client: RemotingClient, name: str) -> None:
        client.want(
            RequestCode.UPDATE_AND_CREATE_TOPIC,
            CreateTopicRequest(
                topic=name, default_topic="TBW102", read_queue_nums=3, write_queue_nums=3, perm=6,
                topic_filter_type="SINGLE_TAG", topic_sys_flag=0, order=False,
            ),
        )  # fmt: skip
        self.topics.append(name)


def promotion_rounds(group: Group, rounds: int, dice: Random) -> list[Lacking]:
    """Kill the master again and again; return what each successor lacked."""
    found = []
    for number in range(rounds):
        master = group.master(frozenset({0}))
        committing = Committing(master, f"round-{number}")
        time.sleep(dice.uniform(1.0, 2.5))
        killed = time.monotonic()
        master.kill()
        committing.join()
        found.append(compared(group.master(), committing, killed))
        master.start()
    return found


def compared(broker: Broker, committing: Committing, killed: float) -> Lacking:
    """Return what a broker lacks of what was answered."""
    lost, behind = 0, 0.0
    with broker.client() as client:
        for (name, queue), answered in committing.answered.items():
            answer = client.ask(
                RequestCode.QUERY_CONSUMER_OFFSET,
                QueryConsumerOffsetRequest(consumer_group=name, topic=TOPIC, queue_id=queue),
            )
            known = int(answer.fields.get("offset", "-1")) if answer.code == 0 else -1
            missing = [when for offset, when in answered if offset > known]
            lost += known < 0
            if missing:
                behind = max(behind, killed - missing[0])
        topics_lost = sum(
            client.ask(RequestCode.GET_TOPIC_CONFIG, GetTopicConfigRequest(topic=name)).code != 0
            for name in committing.topics
        )
    return Lacking(len(committing.answered), lost, behind, len(committing.topics), topics_lost)
