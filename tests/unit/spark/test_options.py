"""Options as values: defaults, names in any case, and everything that is wrong said at once."""

from __future__ import annotations

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.spark.options import (
    Positions,
    read_sink_options,
    read_source_options,
)

BASE = {"nameServer": "127.0.0.1:9876", "topic": "Orders"}


def test_defaults_and_names_in_any_case() -> None:
    found = read_source_options({"NAMESERVER": "127.0.0.1:9876", "Topic": "Orders"})
    assert (found.mode, found.topics, found.on_loss) == ("broker", ("Orders",), "fail")
    assert found.starting is None
    assert found.ending == Positions("latest")
    assert not found.commits


def test_a_path_alone_means_the_store() -> None:
    found = read_source_options({"path": "/data/store", "topic": "Orders"})
    assert found.mode == "store"
    assert [(store.broker, store.path) for store in found.stores] == [("broker-a", "/data/store")]
    two = read_source_options({"path": "a=/one,b=/two", "topic": "Orders"})
    assert [(store.broker, store.path) for store in two.stores] == [("a", "/one"), ("b", "/two")]
    with pytest.raises(InvalidValue, match="say whose they are"):
        read_source_options({"path": "/one,/two", "topic": "Orders"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("earliest", Positions("earliest")),
        ("LATEST", Positions("latest")),
        ("timestamp:1794800000000", Positions("time", "1794800000000")),
        ("group:readers", Positions("group", "readers")),
        ('{"T": {}}', Positions("offsets", '{"T": {}}')),
    ],
)
def test_starting_positions(text: str, expected: Positions) -> None:
    assert read_source_options({**BASE, "startingOffsets": text}).starting == expected


@pytest.mark.parametrize(
    ("text", "seconds"), [("500", 0.5), ("500ms", 0.5), ("30s", 30), ("5m", 300), ("2 hours", 7200)]
)
def test_times_have_units(text: str, seconds: float) -> None:
    assert read_source_options({**BASE, "maxTriggerDelay": text}).trigger_delay_s == seconds


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InvalidValue) as caught:
        read_source_options({"topic": "Orders", "minPartitions": "many", "startingOffset": "x"})
    said = str(caught.value)
    assert "nameServer is missing" in said
    assert "minPartitions" in said
    assert "did you mean startingOffsets?" in said


def test_secrets_are_not_shown() -> None:
    options = {**BASE, "accessKey": "who", "secretKey": "sesame", "securityToken": "opensesame"}
    assert "sesame" not in repr(read_source_options(options))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"level": "once"}, "say one of at_least_once"),
        ({"onError": "ignore"}, "say fail, or dlq:<topic>"),
        ({"level": "idempotent", "onError": "dlq:Dead"}, "at_least_once alone"),
        ({"groupId": "no group!"}, "groupId"),
    ],
)
def test_sinks_refuse_what_cannot_be(options: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        read_sink_options({**BASE, **options})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"topics": "A,B"}, "topic and topics exclude each other"),
        ({"tags": "a", "subExpression": "b"}, "two names of one thing"),
        ({"tags": "a", "sql92": "x > 1"}, "tags and sql92 exclude each other"),
        ({"timeoutMs": "0"}, "timeoutMs is 0: give a time of at least"),
        ({"timeoutMs": "soon"}, "timeoutMs"),
        ({"nameServer": "nohost"}, "nameServer"),
        ({"nameServer": "host:99999"}, "nameServer"),
        ({"accessKey": "who"}, "belong together"),
        ({"secretKey": "sesame"}, "belong together"),
        ({"securityToken": "x"}, "needs accessKey"),
        ({"tlsCaFile": "/ca.pem"}, "tlsCaFile without tls=true"),
        ({"tls": "false", "tlsInsecure": "true"}, "tlsInsecure without tls=true"),
        ({"tls": "yes"}, "say true or false"),
        ({"tls": "true", "tlsKeyFile": "/k"}, "tlsKeyFile needs tlsCertFile"),
        ({"minRowsPerTrigger": "10", "maxRowsPerTrigger": "5"}, "no batch has both"),
        ({"lostRangesPath": "/lost"}, "lostRangesPath is for failOnDataLoss"),
        ({"startingOffsets": "latest", "startingTimestamp": "1"}, "exclude each other"),
        ({"startingOffsets": "group:no group!"}, "startingOffsets"),
        ({"topicPattern": "("}, "no regular expression"),
        ({"maxRowsPerTrigger": "1e6"}, "give a whole number"),
        ({"pullCount": "0"}, "give a whole number"),
        ({"mode": "files"}, "say one of broker, store"),
        ({"topicPattern": "x"}, "say what to read, in one way"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss"),
        ({"commitOffsets": "true"}, "commitOffsets needs groupId"),
    ],
)
def test_reads_refuse_what_contradicts_itself(options: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidValue, match=said) as caught:
        read_source_options({**BASE, **options})
    assert "sesame" not in str(caught.value)


def test_what_is_for_streams_alone_and_for_batches_alone() -> None:
    from pyspark.sql.types import StructType  # noqa: PLC0415

    from gantrymq.spark.source import RocketMQSource  # noqa: PLC0415

    ending = RocketMQSource({**BASE, "endingOffsets": "earliest"})
    with pytest.raises(InvalidValue, match="a stream has no end"):
        ending.streamReader(StructType())
    committing = RocketMQSource({**BASE, "commitOffsets": "true", "groupId": "g"})
    with pytest.raises(InvalidValue, match="commitOffsets is for streams"):
        committing.reader(StructType())
    committing.streamReader(StructType())
