"""A message by its id without its topic: not every topic of a large cluster is asked."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.admin import explaining, messages, topics
from gantrymq.admin.session import Gathered, Session
from gantrymq.wire.peer import PeerGone
from gantrymq.wire.response_errors import NoMessage

if TYPE_CHECKING:
    from gantrymq.admin.messages import Found


class Cluster:
    """Many topics, of which few have the message."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, names: list[str], having: set[str]) -> None:
        self.names = names
        self.having = having
        self.asked: list[str] = []
        self.searches = 0
        self.searches_most = 0
        monkeypatch.setattr(topics, "topic_names", self.topic_names)
        monkeypatch.setattr(messages, "query", self.query)

    async def topic_names(self, _session: Session) -> list[str]:
        self.searches += 1
        self.searches_most = max(self.searches_most, self.searches)
        return sorted(self.names)

    async def query(self, _session: Session, topic: str, *_given: Any, **_more: Any) -> Any:  # noqa: ANN401
        self.asked.append(topic)
        await asyncio.sleep(0)
        if topic not in self.having:
            return Gathered()
        record: Any = SimpleNamespace(topic=topic, raw=SimpleNamespace(store_timestamp=1))
        return Gathered({"broker-a": [record]})

    async def find(self) -> Found:
        try:
            return await explaining.find_message(self.session, "some-id", None)
        finally:
            self.searches -= 1

    def run(self, times: int = 1) -> list[Any]:
        async def main() -> list[Any]:
            self.session = Session("127.0.0.1:9876")
            finding = (self.find() for _ in range(times))
            return await asyncio.gather(*finding, return_exceptions=True)

        return asyncio.run(main())


def test_no_more_topics_are_asked_than_the_bound_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"%RETRY%g{number}" for number in range(500)] + [f"T{n:04}" for n in range(1_200)]
    cluster = Cluster(monkeypatch, names, set())
    (error,) = cluster.run()
    assert isinstance(error, NoMessage)
    assert "in the first 1000 of 1700 topics: name the topic" in str(error)
    assert len(cluster.asked) == 1_000
    assert not any(name.startswith("%") for name in cluster.asked)


def test_nobody_is_asked_once_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, [f"T{n:04}" for n in range(900)], {"T0100"})
    (found,) = cluster.run()
    assert found.record.topic == "T0100"
    assert len(cluster.asked) == 128


def test_a_copy_is_found_where_nothing_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, ["%DLQ%g", "T1", "rmq_sys_x"], {"%DLQ%g"})
    (found,) = cluster.run()
    assert found.record.topic == "%DLQ%g"
    assert cluster.asked == ["T1", "%DLQ%g"]


def test_one_search_of_all_topics_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, [f"T{n:04}" for n in range(100)], {"T0000"})
    assert len(cluster.run(5)) == 5
    assert cluster.searches_most == 1


def test_that_nobody_has_it_is_not_said_while_somebody_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(monkeypatch, ["Whole", "Half"], set())
    gone = PeerGone("cannot connect to 10.0.0.2:10911")

    async def query(_session: Session, topic: str, *_given: Any, **_more: Any) -> Any:  # noqa: ANN401
        half: Gathered[str, list[Any]] = Gathered({"broker-a": []}, {"broker-b": gone})
        return half if topic == "Half" else Gathered({"broker-a": []})

    monkeypatch.setattr(messages, "query", query)
    (error,) = cluster.run()
    assert isinstance(error, NoMessage)
    assert "in 2 topics; but who may have it did not answer: Half: cannot connect" in str(error)
    with pytest.raises(PeerGone):
        asyncio.run(explaining.find_message(Session("127.0.0.1:9876"), "some-id", "Half"))
