"""The rules for names, at their edges."""

from __future__ import annotations

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.model import names

NO_NAMES = [
    ("", "blank"),
    (" \t", "blank"),
    ("a b", "illegal characters"),
    ("a/b", "illegal characters"),
    ("..", "illegal characters"),
    ("a+b", "illegal characters"),
    ("a\n", "illegal characters"),
    ("a\x00", "illegal characters"),
    ("主题", "illegal characters"),
    ("\u0661", "illegal characters"),
    ("\ud800", "illegal characters"),
]


@pytest.mark.parametrize("name", ["a", "TopicTest", "t-Safe_%7C|Name-09", "%RETRY%g", "x" * 127])
def test_a_legal_topic_is_returned(name: str) -> None:
    assert names.check_topic(name) is name


@pytest.mark.parametrize(("name", "problem"), NO_NAMES)
def test_an_illegal_name_is_refused_with_the_reason(name: str, problem: str) -> None:
    for check, what in ((names.check_topic, "topic"), (names.check_group, "group")):
        with pytest.raises(InvalidValue, match=problem) as caught:
            check(name)
        assert what in str(caught.value)


@pytest.mark.parametrize("prefix", ["%RETRY%", "%DLQ%"])
def test_retry_and_dead_letter_topics_may_be_longer(prefix: str) -> None:
    assert names.check_topic(prefix.ljust(255, "g"))
    with pytest.raises(InvalidValue, match="256 bytes: use at most 255"):
        names.check_topic(prefix.ljust(256, "g"))
    with pytest.raises(InvalidValue, match="128 bytes: use at most 127"):
        names.check_topic("t" * 128)


def test_a_group_has_its_own_length() -> None:
    assert names.check_group("g" * 248)
    with pytest.raises(InvalidValue, match="at most 248"):
        names.check_group("g" * 249)


def test_a_long_name_is_not_repeated_in_full() -> None:
    with pytest.raises(InvalidValue) as caught:
        names.check_topic("t" * 1_000_000)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("text", ["192.0.2.2@go5", "FD00::2@1#2@unit", "中@1", "c" * 1024])
def test_client_ids_are_free(text: str) -> None:
    assert names.check_client_id(text) is text


@pytest.mark.parametrize(
    "text", ["", "  ", "a\nb", "a\x00", "a\x85b", "c" * 1025, "中" * 342, "\ud800"]
)
def test_a_client_id_must_fit_on_a_line(text: str) -> None:
    with pytest.raises(InvalidValue, match="client id"):
        names.check_client_id(text)


@pytest.mark.parametrize("name", ["t", "%RETRY%g+t", "a.b", "...x", "主题", "x" * 255])
def test_safe_directory_names(name: str) -> None:
    assert names.check_path_safe(name) is name


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "a/b",
        "/etc",
        "a\\b",
        "a\x00b",
        "a\nb",
        "a\x7f",
        "x" * 256,
        "主" * 86,
        "\udc00",
    ],
)
def test_names_that_could_leave_the_directory(name: str) -> None:
    with pytest.raises(InvalidValue, match="directory"):
        names.check_path_safe(name)


def test_system_topics() -> None:
    assert names.is_system_topic("SCHEDULE_TOPIC_XXXX")
    assert names.is_system_topic("rmq_sys_anything")
    assert not names.is_system_topic("RMQ_SYS_MINE")
    assert not names.is_system_topic("%RETRY%g")


def test_the_answer_of_a_5_5_broker_about_its_system_topics() -> None:
    recorded = {
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "BenchmarkTest",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "OFFSET_MOVED_EVENT",
        "TBW102",
        "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC",
        "rmq_sys_REVIVE_LOG_DefaultCluster",
        "SELF_TEST_TOPIC",
        "DefaultCluster",
        "SCHEDULE_TOPIC_XXXX",
        "RMQ_SYS_TRACE_TOPIC",
        "DefaultCluster_REPLY_TOPIC",
        "rmq_sys_wheel_timer",
        "CHECKPOINT_TOPIC",
        "rmq_sys_SYNC_BROKER_MEMBER_broker-a",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC",
        "broker-a",
    }
    assert names.system_topics("DefaultCluster", "broker-a") == recorded


def test_topics_that_only_the_broker_writes() -> None:
    for topic in (
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "rmq_sys_wheel_timer",
        "rmq_sys_REVIVE_LOG_DefaultCluster",
        "rmq_sys_gantrymq_metadata",
    ):
        assert not names.may_send_to(topic)
    assert names.may_send_to("rmq_sys_TRACE_DATA_DefaultRegion")
    assert names.may_send_to("TBW102")
    assert names.may_send_to("RMQ_SYS_TRACE_TOPIC")


def test_system_groups() -> None:
    assert names.is_system_group("TOOLS_CONSUMER")
    assert names.is_system_group("CID_RMQ_SYS_REVIVE_GROUP")
    assert not names.is_system_group("CID_MINE")


def test_topics_of_groups() -> None:
    assert names.retry_topic("g") == "%RETRY%g"
    assert names.dlq_topic("g") == "%DLQ%g"
    assert names.group_of("%RETRY%g") == "g"
    assert names.group_of("%DLQ%g") == "g"
    assert names.group_of("t") is None
    assert names.is_retry_topic("%RETRY%g")
    assert names.is_dlq_topic("%DLQ%g")
    assert names.is_light_queue("%LMQ%q")
    assert not any(f("t") for f in (names.is_retry_topic, names.is_dlq_topic, names.is_light_queue))


def test_pop_retry_topics() -> None:
    assert names.pop_retry_topic("g", "t") == "%RETRY%g_t"
    assert names.pop_retry_topic("g", "t", version=2) == "%RETRY%g+t"
    assert names.group_of("%RETRY%g+t") == "g"
    assert names.popped_topic("%RETRY%g_t", "g") == "t"
    assert names.popped_topic("%RETRY%g+t", "g") == "t"
    assert names.popped_topic("t", "g") == "t"
    with pytest.raises(InvalidValue, match="not 3"):
        names.pop_retry_topic("g", "t", version=3)


@pytest.mark.parametrize(
    ("bare", "full"),
    [("t", "ns%t"), ("%RETRY%g", "%RETRY%ns%g"), ("%DLQ%g", "%DLQ%ns%g")],
)
def test_namespaces(bare: str, full: str) -> None:
    assert names.with_namespace("ns", bare) == full
    assert names.with_namespace("ns", full) == full
    assert names.without_namespace(full) == bare
    assert names.without_namespace(bare) == bare
    assert names.namespace_of(full) == "ns"
    assert names.namespace_of(bare) == ""


@pytest.mark.parametrize("name", ["TBW102", "rmq_sys_wheel_timer", "CID_RMQ_SYS_TRANS", ""])
def test_system_names_have_no_namespace(name: str) -> None:
    assert names.with_namespace("ns", name) == name
    assert names.without_namespace(name) == name


def test_no_namespace_changes_nothing() -> None:
    assert names.with_namespace("", "t") == "t"
