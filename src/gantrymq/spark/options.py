"""What a read or a write was told, as frozen values; everything wrong is said at once.

Names are those that Spark users know from Kafka's source, and RocketMQ's where a thing is its own.
Spark hands options over as text, in any case. A name that is not known is refused, with the one it
may have been meant to be: an option that does nothing is worse than an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gantrymq.client.settings import parse_name_servers
from gantrymq.errors import shown
from gantrymq.model.names import check_group, check_topic
from gantrymq.spark.given import Given, words

if TYPE_CHECKING:
    from collections.abc import Mapping

MODES: Final = ("broker", "store")
LOSSES: Final = {
    "fail": "fail", "true": "fail", "warn": "warn", "skip": "skip", "false": "skip",
}  # fmt: skip
LEVELS: Final = ("at_least_once", "idempotent", "transactional")
DECISION_TOPIC: Final = "spark-sink-decisions"
BATCH_BYTES: Final = 1 << 20
CONNECTION_NAMES: Final = (
    "nameServer", "accessKey", "secretKey", "securityToken", "namespace", "tls", "tlsCaFile",
    "tlsCertFile", "tlsKeyFile", "tlsInsecure", "timeoutMs", "retries", "groupId",
)  # fmt: skip
SOURCE_NAMES: Final = (
    *CONNECTION_NAMES,
    "mode", "path", "brokerName", "brokerConf", "topic", "topics", "topicPattern", "queues",
    "startingOffsets", "endingOffsets", "startingTimestamp", "endingTimestamp",
    "startingOffsetsByTimestamp", "endingOffsetsByTimestamp", "failOnDataLoss", "lostRangesPath",
    "tags", "subExpression", "sql92", "keys", "decompress", "verifyCrc", "minPartitions",
    "maxRecordsPerPartition", "maxRowsPerTrigger", "maxBytesPerTrigger", "minRowsPerTrigger",
    "maxTriggerDelay", "commitOffsets", "pinPath", "pullCount",
)  # fmt: skip
SINK_NAMES: Final = (
    *CONNECTION_NAMES,
    "topic", "level", "tags", "decisionTopic", "onError", "batchBytes",
)  # fmt: skip
_TLS_NAMES: Final = ("tlsCaFile", "tlsCertFile", "tlsKeyFile", "tlsInsecure")


@dataclass(frozen=True)
class ConnectionOptions:
    """How servers are reached."""

    name_server: str = ""
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    security_token: str | None = field(default=None, repr=False)
    namespace: str = ""
    tls: bool = False
    tls_ca_file: str | None = None
    tls_cert_file: str | None = None
    tls_key_file: str | None = None
    tls_insecure: bool = False
    timeout_s: float = 10.0
    retries: int = 5
    group: str = ""


@dataclass(frozen=True)
class StorePath:
    """A store directory, and the name of the broker that it belongs to."""

    broker: str
    path: str
    configuration: str | None = None


@dataclass(frozen=True)
class Positions:
    """Where to begin, or to end; one of the five."""

    kind: str
    """`earliest`, `latest`, `offsets`, `times`, `time` or `group`."""
    text: str = ""
    """The JSON, the time or the group."""


@dataclass(frozen=True)
class SourceOptions:
    """What a read was told."""

    connection: ConnectionOptions
    mode: str
    stores: tuple[StorePath, ...]
    topics: tuple[str, ...]
    topic_pattern: str
    queues: str
    starting: Positions | None
    """None where the user has said nothing: batches and streams differ."""
    ending: Positions
    on_loss: str
    lost_ranges_path: str
    tags: str
    sql92: str
    keys: tuple[str, ...]
    decompress: bool
    verify_crc: bool
    slices_min: int | None
    slice_rows_max: int | None
    trigger_rows_max: int | None
    trigger_bytes_max: int | None
    trigger_rows_min: int | None
    trigger_delay_s: float
    commits: bool
    pin_path: str
    pull_count: int

    @property
    def reads_broker(self) -> bool:
        """Tell whether messages come over the wire."""
        return self.mode == "broker"


@dataclass(frozen=True)
class SinkOptions:
    """What a write was told."""

    connection: ConnectionOptions
    topic: str
    level: str
    tags: str
    """The tag of rows that have none."""
    decision_topic: str
    """Where the level transactional notes what it has decided."""
    dead_letter_topic: str
    """Where rows go that brokers refuse; empty: the task fails."""
    batch_bytes: int


def read_source_options(options: Mapping[str, str]) -> SourceOptions:
    """Read the options of a read.

    Raises:
        InvalidValue: some cannot be; all of them are named.
    """
    given = Given(options, SOURCE_NAMES)
    default_mode = "store" if given.text("path") and not given.text("nameServer") else "broker"
    mode = given.choice("mode", MODES, default_mode)
    found = SourceOptions(
        connection=connection_options(given, is_needed=mode == "broker"),
        mode=mode,
        stores=_stores(given) if mode == "store" else (),
        topics=_topics(given),
        topic_pattern=given.text("topicPattern"),
        queues=given.text("queues"),
        starting=_positions(given, "starting"),
        ending=_positions(given, "ending") or Positions("latest"),
        on_loss=given.choice("failOnDataLoss", LOSSES, "fail"),
        lost_ranges_path=given.text("lostRangesPath"),
        tags=given.text("tags") or given.text("subExpression"),
        sql92=given.text("sql92"),
        keys=words(given.text("keys")),
        decompress=given.flag("decompress", default=True),
        verify_crc=given.flag("verifyCrc", default=True),
        slices_min=given.number("minPartitions"),
        slice_rows_max=given.number("maxRecordsPerPartition"),
        trigger_rows_max=given.number("maxRowsPerTrigger"),
        trigger_bytes_max=given.number("maxBytesPerTrigger"),
        trigger_rows_min=given.number("minRowsPerTrigger"),
        trigger_delay_s=given.seconds("maxTriggerDelay", 900.0),
        commits=given.flag("commitOffsets", default=bool(given.text("groupId"))),
        pin_path=given.text("pinPath"),
        pull_count=given.number("pullCount", 1024) or 1024,
    )
    _check_source(found, given)
    given.refuse()
    return found


def _check_source(found: SourceOptions, given: Given) -> None:
    named = [bool(found.topics), bool(found.topic_pattern), bool(found.queues)]
    if sum(named) != 1:
        given.problems.append(
            "say what to read, in one way: topic or topics, topicPattern, or queues"
        )
    try:
        re.compile(found.topic_pattern)
    except re.error as error:
        given.problems.append(f"topicPattern is no regular expression: {error}")
    if given.text("topic") and given.text("topics"):
        given.problems.append("topic and topics exclude each other: put all of them into topics")
    if given.text("tags") and given.text("subExpression"):
        given.problems.append("tags and subExpression are two names of one thing: give one")
    if found.tags and found.sql92:
        given.problems.append("tags and sql92 exclude each other: SQL92 knows TAGS")
    least, most = found.trigger_rows_min, found.trigger_rows_max
    if least and most and least > most:
        given.problems.append(
            f"minRowsPerTrigger {least} is more than maxRowsPerTrigger {most}: no batch has both"
        )
    if found.lost_ranges_path and found.on_loss == "fail":
        given.problems.append("lostRangesPath is for failOnDataLoss=warn or skip: it says fail")
    if found.commits and not found.connection.group:
        given.problems.append("commitOffsets needs groupId: whose progress is it?")
    if found.commits and not found.connection.name_server:
        given.problems.append(
            "commitOffsets needs nameServer, also in mode=store: a broker keeps progress"
        )


def _topics(given: Given) -> tuple[str, ...]:
    found = words(given.text("topics")) or words(given.text("topic"))
    for topic in found:
        given.check("topic", topic, check_topic)
    return found


def _stores(given: Given) -> tuple[StorePath, ...]:
    """Read `path`: directories, each with `name=` before it if there are several."""
    paths, names = words(given.text("path")), words(given.text("brokerName"))
    configurations = words(given.text("brokerConf"))
    if not paths:
        given.problems.append("mode=store needs path: the directory that storePathRootDir names")
    found = []
    for index, entry in enumerate(paths):
        name, equals, path = entry.partition("=")
        if not equals or "/" in name:
            name, path = names[index] if index < len(names) else "", entry
        if not name:
            if len(paths) > 1:
                given.problems.append(
                    f"path names {len(paths)} stores: say whose they are, as "
                    "broker-a=/data/a,broker-b=/data/b"
                )
            name = "broker-a"
        configuration = configurations[index] if index < len(configurations) else None
        found.append(StorePath(name, path, configuration))
    if len({store.broker for store in found}) < len(found):
        given.problems.append("path names a broker twice: each store is one broker's")
    return tuple(found)


def connection_options(given: Given, *, is_needed: bool) -> ConnectionOptions:
    """Read how servers are reached."""
    name_server = given.text("nameServer")
    if is_needed and not name_server:
        given.problems.append(
            "nameServer is missing: give host:port, or path of a store directory for mode=store"
        )
    given.check("nameServer", name_server, parse_name_servers)
    given.check("groupId", given.text("groupId"), check_group)
    _check_secrets(given)
    return ConnectionOptions(
        name_server=name_server,
        access_key=given.optional("accessKey"),
        secret_key=given.optional("secretKey"),
        security_token=given.optional("securityToken"),
        namespace=given.text("namespace"),
        tls=given.flag("tls", default=False),
        tls_ca_file=given.optional("tlsCaFile"),
        tls_cert_file=given.optional("tlsCertFile"),
        tls_key_file=given.optional("tlsKeyFile"),
        tls_insecure=given.flag("tlsInsecure", default=False),
        timeout_s=given.seconds("timeoutMs", 10.0, least=0.001),
        retries=given.number("retries", 5, 0) or 0,
        group=given.text("groupId"),
    )


def _check_secrets(given: Given) -> None:
    """Note what would make a connection less safe than it looks."""
    if bool(given.text("accessKey")) != bool(given.text("secretKey")):
        given.problems.append("accessKey and secretKey belong together: give both")
    if given.text("securityToken") and not given.text("accessKey"):
        given.problems.append("securityToken needs accessKey and secretKey")
    named = [name for name in _TLS_NAMES if given.text(name)]
    if named and given.text("tls").lower() != "true":
        given.problems.append(f"{', '.join(named)} without tls=true: nothing would be encrypted")
    if given.text("tlsKeyFile") and not given.text("tlsCertFile"):
        given.problems.append("tlsKeyFile needs tlsCertFile, the certificate that it is the key of")


def _positions(given: Given, which: str) -> Positions | None:
    text = given.text(f"{which}Offsets")
    time = given.text(f"{which}Timestamp")
    times = given.text(f"{which}OffsetsByTimestamp")
    if sum(map(bool, (text, time, times))) > 1:
        given.problems.append(
            f"{which}Offsets, {which}Timestamp and {which}OffsetsByTimestamp exclude each other"
        )
    if time:
        return Positions("time", time)
    if times:
        return Positions("times", times)
    if not text:
        return None
    return _named_position(given, text, which)


def _named_position(given: Given, text: str, which: str) -> Positions:
    kind, _colon, value = text.partition(":")
    if text.lower() in {"earliest", "latest"}:
        return Positions(text.lower())
    if kind.lower() == "timestamp":
        return Positions("time", value.strip())
    if kind.lower() == "group":
        given.check(f"{which}Offsets", value.strip(), check_group)
        return Positions("group", value.strip())
    return Positions("offsets", text)


def read_sink_options(options: Mapping[str, str]) -> SinkOptions:
    """Read the options of a write.

    Raises:
        InvalidValue: some cannot be; all of them are named.
    """
    given = Given(options, SINK_NAMES)
    topic = given.text("topic")
    given.check("topic", topic, check_topic)
    on_error = given.text("onError", "fail")
    kind, _colon, dead_letters = on_error.partition(":")
    if on_error != "fail" and (kind != "dlq" or not dead_letters):
        given.problems.append(f"onError is {shown(on_error)}: say fail, or dlq:<topic>")
    decision_topic = given.text("decisionTopic")
    given.check("decisionTopic", decision_topic, check_topic)
    given.check("onError", dead_letters, check_topic)
    found = SinkOptions(
        connection=connection_options(given, is_needed=True),
        topic=topic,
        level=given.choice("level", LEVELS, "at_least_once"),
        tags=given.text("tags"),
        decision_topic=decision_topic or DECISION_TOPIC,
        dead_letter_topic=dead_letters,
        batch_bytes=given.number("batchBytes", BATCH_BYTES) or BATCH_BYTES,
    )
    if found.level != "at_least_once" and found.dead_letter_topic:
        given.problems.append("onError=dlq is for the level at_least_once alone")
    given.refuse()
    return found
