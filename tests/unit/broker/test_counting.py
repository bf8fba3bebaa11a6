"""What is counted is what happened, whichever way it came."""

from __future__ import annotations

from support.broker_rig import BrokerRig, pull


def test_sends_of_lane_and_policy_and_pulls_are_counted() -> None:
    rig = BrokerRig()
    for _ in range(3):
        rig.send(b"lane")
    for _ in range(2):
        rig.send(b"policy", i="WAIT\x01false")
    rig.turns()
    put: list[tuple[str, int]] = []
    got: list[tuple[int, int, int]] = []
    counting = rig.broker.counting
    real_topics, real_got = counting.store.put_topics, counting.store.got_many

    def put_topics(counts: list[tuple[bytes, int, int]]) -> None:
        put.extend((topic.decode(), messages) for topic, messages, _size in counts)
        real_topics(counts)

    def got_many(hits: int, misses: int, messages: int) -> None:
        got.append((hits, misses, messages))
        real_got(hits, misses, messages)

    counting.store.put_topics = put_topics  # type: ignore[method-assign, assignment]
    counting.store.got_many = got_many  # type: ignore[method-assign, assignment]
    rig.ask(pull(0))
    rig.ask(pull(5))
    counting.collect()
    assert put == [("T", 3)]
    assert got == [(1, 1, 5)]
    counting.collect()
    assert len(got) == 1, "nothing is counted twice"
