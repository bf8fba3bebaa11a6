"""What goes through topics: in, out, back, dead, decided, timed; and never more series than set."""

from __future__ import annotations

from gantrymq.model.topic import TopicConfig
from support.broker_rig import BrokerRig, pull
from support.samples import json_request
from support.scraping import RigScrapes


def test_messages_are_counted_in_and_out() -> None:
    rig = BrokerRig()
    scrape = RigScrapes(rig)
    for _ in range(3):
        rig.send(b"x" * 100)
    rig.settle()
    rig.ask(pull(0, consumerGroup="g"))
    found = scrape()
    assert found.value("rocketmq_messages_in_total", topic="T", message_type="normal") == 3
    size = found.value("rocketmq_throughput_in_total", topic="T", is_system="false")
    assert size == rig.store.log.wrote_offset
    out = {"topic": "T", "consumer_group": "g", "is_retry": "false", "is_system": "false"}
    assert found.value("rocketmq_messages_out_total", **out) == 3
    assert found.value("rocketmq_throughput_out_total", **out) > 300


def test_a_topic_says_of_which_kind_its_messages_are() -> None:
    rig = BrokerRig()
    rig.broker.tables.topics.put(TopicConfig("F", 1, 1, attributes={"message.type": "FIFO"}))
    rig.send(b"x", b="F", e="0")
    found = RigScrapes(rig)()
    assert found.value("rocketmq_messages_in_total", topic="F", message_type="fifo") == 1


def test_a_message_sent_back_too_often_is_a_dead_letter() -> None:
    rig = BrokerRig()
    scrape = RigScrapes(rig)
    rig.send(b"x")
    rig.settle()
    for level in ("0", "-1"):
        fields = {"offset": "0", "group": "g", "delayLevel": level, "originTopic": "T"}
        assert rig.ask(json_request(36, fields)).code == 0
    rig.settle()
    found = scrape()
    assert found.value("gantrymq_sent_back_total", topic="T", consumer_group="g") == 2
    dead = found.value("rocketmq_send_to_dlq_messages_total", consumer_group="g", topic="%DLQ%g")
    assert dead == 1


def test_decisions_about_transactions_are_counted() -> None:
    rig = BrokerRig()
    scrape = RigScrapes(rig)
    halves = [rig.send(b"half", i="TRAN_MSG\x01true\x02PGROUP\x01p", a="p") for _ in range(3)]
    rig.settle(1)
    assert scrape().value("rocketmq_half_messages") == 3
    for half, decision in zip(halves, ("8", "12"), strict=False):
        fields = {
            "producerGroup": "p",
            "tranStateTableOffset": half.fields["queueOffset"],
            "commitLogOffset": str(int(half.fields["msgId"][16:], 16)),
            "commitOrRollback": decision,
            "fromTransactionCheck": "false",
            "msgId": "x",
        }
        assert rig.ask(json_request(37, fields)).code == 0
    rig.settle(1)
    found = scrape()
    assert found.value("rocketmq_commit_messages_total", topic="T") == 1
    assert found.value("rocketmq_rollback_messages_total", topic="T") == 1
    assert found.value("rocketmq_half_messages") == 1


def test_timers_are_counted() -> None:
    rig = BrokerRig()
    scrape = RigScrapes(rig)
    rig.send(b"later", i="TIMER_DELAY_SEC\x0130")
    rig.settle(1)
    found = scrape()
    assert found.value("rocketmq_timing_messages", topic="T") == 1
    assert found.value("rocketmq_timer_enqueue_total", topic="T") == 1
    assert found.value("rocketmq_timer_dequeue_total", topic="T") == 0
    assert found.value("rocketmq_timer_enqueue_lag") == 0
    for _ in range(40):
        rig.settle(1)
    found = scrape()
    assert found.value("rocketmq_timer_dequeue_total", topic="T") == 1
    assert "rocketmq_timing_messages" not in found


def test_more_topics_than_may_be_shown_are_one() -> None:
    rig = BrokerRig()
    scrape = RigScrapes(rig, shown_max=3)
    for number in range(10):
        name = f"topic{number}"
        rig.broker.tables.topics.put(TopicConfig(name, 1, 1))
        for _ in range(number + 1):
            rig.send(b"x", b=name, e="0")
    rig.settle()
    found = scrape()
    told = {row.labels["topic"]: row.value for row in found.rows("rocketmq_messages_in_total")}
    assert told == {"topic9": 10, "topic8": 9, "topic7": 8, "_other": sum(range(1, 8))}
    assert found.value("gantrymq_metrics_left_out", kind="topics") == 7
    assert len(found.rows("rocketmq_message_size_count")) == 3
    assert found.value("rocketmq_topic_number") > 10
