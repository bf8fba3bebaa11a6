"""One of several brokers is silent: rows of the others are shown, and who is missing is said."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.admin import topics
from gantrymq.admin.messages import topic_queue
from gantrymq.admin.session import Gathered, Session
from gantrymq.admin.topics import QueueStatus, TopicStatus
from gantrymq.cli.daily import dlq
from gantrymq.cli.daily import topics as topic_commands
from gantrymq.cli.given import Given
from gantrymq.clock import SystemClock
from gantrymq.wire.peer import PeerGone

if TYPE_CHECKING:
    from gantrymq.cli.output import Answer

NAMES = ["Orders", "Bills", "%DLQ%billing", "%DLQ%audit"]


@pytest.fixture(autouse=True)
def half_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have topics on two brokers, of which one does not answer."""

    async def names(_session: Session) -> list[str]:
        return NAMES

    async def status(_session: Session, topic: str) -> TopicStatus:
        gone = PeerGone("cannot connect to 10.0.0.2:10911")
        answers: Gathered[str, Any] = Gathered({"broker-a": {}}, {"broker-b": gone})
        return TopicStatus([QueueStatus(topic_queue(topic, "broker-a", 0), 0, 5, 0)], answers)

    monkeypatch.setattr(topics, "topic_names", names)
    monkeypatch.setattr(topics, "topic_status", status)


@pytest.mark.parametrize("command", [topic_commands.list_topics, dlq.list_groups])
def test_a_list_says_once_who_is_missing(command: Any) -> None:  # noqa: ANN401
    async def main() -> Answer:
        given = Given(SimpleNamespace(all=True), SystemClock())  # type: ignore[arg-type]
        told: Answer = await command(Session("127.0.0.1:9876"), given)
        return told

    answer = asyncio.run(main())
    assert answer.problems == ["broker-b: cannot connect to 10.0.0.2:10911"]
    (table,) = answer.parts
    assert len(list(table.rows)) >= 2  # type: ignore[union-attr]
