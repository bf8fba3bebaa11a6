# ruff: noqa: RUF009 - `setting` makes a field, as `dataclasses.field` does
"""Settings of a broker under RocketMQ's names; those of its store are `store.settings`.

`live=True` marks what an admin tool may change while the broker runs: a typed list, in which there
is no path, no address, no command and no credential. Handlers read `LiveSettings.now` each time.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from gantrymq.model.group import OffsetBeyondEnd
from gantrymq.store.settings_kinds import (
    INTERVAL,
    LONG_MAX,
    PAUSE,
    TEXT,
    YES_NO,
    Choice,
    Setting,
    Text,
    Whole,
    Word,
    setting,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME: Final = Text(required=True)
_COUNT: Final = Whole(1, 65536)
_WRITE: Final = 2
_LONG: Final = Whole(0, LONG_MAX)


@dataclass(frozen=True, kw_only=True)
class BrokerSettings:
    """Everything that may be set about a broker beside its store."""

    # Who it is
    cluster: str = setting("brokerClusterName", "DefaultCluster", _NAME, "cluster")
    name: str = setting("brokerName", "", TEXT, "group of one master and its slaves; host name")
    broker_id: int = setting("brokerId", 0, _LONG, "0 is the master, above it slaves")
    address: str = setting("brokerIP1", "", TEXT, "address that clients are told")
    ha_address: str = setting("brokerIP2", "", TEXT, "address that slaves are told")
    region: str = setting("regionId", "DefaultRegion", TEXT, "MSG_REGION of send answers")
    trace_on: bool = setting("traceOn", True, YES_NO, "TRACE_ON of send answers", live=True)

    # Name servers
    name_servers: str = setting("namesrvAddr", "", TEXT, "host:port;host:port")
    register_interval_ms: int = setting(
        "registerNameServerPeriod", 30_000, Whole(10_000, 60_000, clamped=True),
        "pause between two registrations",
    )  # fmt: skip
    register_timeout_ms: int = setting(
        "registerBrokerTimeoutMills", 6_000, INTERVAL, "how long one may take", live=True
    )
    register_compressed: bool = setting(
        "compressedRegister", False, YES_NO, "compress what is registered", live=True
    )
    register_always: bool = setting(
        "forceRegister", True, YES_NO, "register although nothing has changed", live=True
    )

    # Failover
    etcd: str = setting(
        "failoverEtcd", "", TEXT,
        "host:port,host:port of etcd: a group with automatic failover; https:// before each is TLS",
    )  # fmt: skip
    etcd_user: str = setting(
        "failoverEtcdUser", "", TEXT, "who this broker is to etcd, if etcd asks"
    )
    etcd_password_file: str = setting(
        "failoverEtcdPasswordFile", "", TEXT,
        "file for its owner alone (chmod 600) whose first line is that user's password",
    )  # fmt: skip
    etcd_trust_path: str = setting(
        "failoverEtcdTrustCertPath", "", TEXT,
        "who signs the certificates of etcd, PEM; else those whom the machine trusts",
    )  # fmt: skip
    etcd_cert_path: str = setting(
        "failoverEtcdCertPath", "", TEXT, "certificate of this broker for etcd, PEM"
    )
    etcd_key_path: str = setting("failoverEtcdKeyPath", "", TEXT, "its key, PEM")
    member: int = setting(
        "failoverId", 0, Whole(0, 65535), "this broker in its group, from 1; 1 begins the group"
    )
    lease_s: int = setting(
        "failoverLeaseSeconds", 5, Whole(2, 600), "a master that is silent for so long is replaced"
    )
    unsafe_election: bool = setting(
        "failoverUnsafeElection", False, YES_NO,
        "elect a broker that may lack acknowledged messages if none that has them is left",
    )  # fmt: skip

    draining: bool = setting(
        "brokerDraining", False, YES_NO,
        "get ready to be stopped: name servers say that it takes no sends; with failoverEtcd "
        "another member becomes master", live=True,
    )  # fmt: skip
    linger_ms: int = setting(
        "handOverLingerMillis", 35_000, Whole(0, 600_000),
        "a master that stops passes sends on to the next one while they come, for so long at most",
    )  # fmt: skip
    metadata_in_log: bool = setting(
        "metadataInLog", False, YES_NO,
        "keep changes of topics, groups and offsets in the log, too; always so with failoverEtcd",
    )  # fmt: skip

    # Listening
    port: int = setting(
        "listenPort", 10911, Whole(0, 65534), "listener; the port above it is for slaves"
    )
    bind_address: str = setting(
        "bindAddress", "127.0.0.1", TEXT,
        "address it listens at; 0.0.0.0 by itself where aclEnable or insecure is true",
    )  # fmt: skip
    insecure: bool = setting(
        "insecure", False, YES_NO,
        "let other machines in without access control, as Apache does; also --insecure",
    )  # fmt: skip
    idle_s: int = setting(
        "serverChannelMaxIdleTimeSeconds", 120, Whole(1), "silent connections are closed"
    )
    backlog: int = setting("serverSocketBacklog", 1024, Whole(1), "waiting connections")

    connections_max: int = setting(
        "maxConnections", 20_000, Whole(1, 1_000_000),
        "connections in all; the next one is closed", live=True,
    )  # fmt: skip
    address_connections: int = setting(
        "maxConnectionsPerAddress", 0, _LONG, "of one address; 0 is any number", live=True
    )
    user_connections: int = setting(
        "maxConnectionsPerUser", 0, _LONG,
        "of one user or account that says nothing else; 0 is any number", live=True,
    )  # fmt: skip

    # Quotas: what a topic, group or user may do in a second that says nothing itself; 0 is any
    topic_send_bytes: int = setting(
        "quotaTopicSendBytes", 0, _LONG, "bytes a second sent to each topic", live=True
    )
    topic_send_requests: int = setting(
        "quotaTopicSendRequests", 0, _LONG, "sends a second to each topic", live=True
    )
    topic_read_bytes: int = setting(
        "quotaTopicReadBytes", 0, _LONG, "bytes a second read from each topic", live=True
    )
    topic_read_requests: int = setting(
        "quotaTopicReadRequests", 0, _LONG, "pulls and pops a second from each topic", live=True
    )
    group_read_bytes: int = setting(
        "quotaGroupReadBytes", 0, _LONG, "bytes a second read by each consumer group", live=True
    )
    group_read_requests: int = setting(
        "quotaGroupReadRequests", 0, _LONG, "pulls and pops a second of each group", live=True
    )
    user_send_bytes: int = setting(
        "quotaUserSendBytes", 0, _LONG, "bytes a second sent by each user", live=True
    )
    user_send_requests: int = setting(
        "quotaUserSendRequests", 0, _LONG, "sends a second of each user", live=True
    )
    user_read_bytes: int = setting(
        "quotaUserReadBytes", 0, _LONG, "bytes a second read by each user", live=True
    )
    user_read_requests: int = setting(
        "quotaUserReadRequests", 0, _LONG, "pulls, pops and queries a second of each user",
        live=True,
    )  # fmt: skip

    # Reads that are not in memory
    cold_group_bytes: int = setting(
        "cgColdReadThreshold", 0, _LONG,
        "bytes a second that each group may read from the disk; 0 is no limit", live=True,
    )  # fmt: skip
    cold_all_bytes: int = setting(
        "globalColdReadThreshold", 0, _LONG, "the same for all groups together", live=True
    )
    cold_group_reads: int = setting(
        "coldReadsPerGroup", 32, Whole(1, 256), "reads from the disk at once of each group",
        live=True,
    )  # fmt: skip

    # Certificates of brokers to each other
    ha_cert_path: str = setting(
        "haTlsCertPath", "", TEXT,
        "replication over TLS, for brokers with certificates: this one's, PEM, as master and slave",
    )  # fmt: skip
    ha_key_path: str = setting("haTlsKeyPath", "", TEXT, "its key, PEM")
    ha_trust_path: str = setting(
        "haTlsTrustCertPath", "", TEXT, "who signs those of brokers, and nobody else's, PEM"
    )

    # Access control
    acl: bool = setting(
        "aclEnable", False, YES_NO, "check who asks: plain_acl.yml, users.toml (docs/security.md)"
    )
    acl_path: str = setting(
        "aclPath", "", TEXT,
        "directory of plain_acl.yml and acl/*.yml, or one such file; else that of the file given "
        "with -c, else config/ under the store's root",
    )  # fmt: skip
    users_file: str = setting(
        "usersFile", "", TEXT,
        "TOML file of users and roles, which must be there then; else users.toml beside "
        "plain_acl.yml if there is one",
    )  # fmt: skip
    users_key_file: str = setting(
        "usersKeyFile", "", TEXT,
        "key that the secrets in it are sealed with; else users.key beside it",
    )  # fmt: skip
    acl_own_key: str = setting(
        "aclBrokerAccessKey", "", TEXT,
        "account or user with which this broker signs what it asks name servers and masters",
    )  # fmt: skip

    # Looking
    metrics_port: int = setting(
        "metricsPort", -1, Whole(-1, 65535),
        "port of /metrics, /healthz and /readyz; -1 is none, 0 any that is free",
    )  # fmt: skip
    metrics_bind_address: str = setting(
        "metricsBindAddress", "127.0.0.1", _NAME, "address of that port"
    )
    metrics_series_max: int = setting(
        "metricsSeriesMax", 200, Whole(1, 10_000),
        "topics, groups and queues that have series of their own; the rest is one called _other",
    )  # fmt: skip
    log_format: str = setting(
        "logFormat", "text", Word(("text", "json")), "how lines of the log are written"
    )

    # Topics and groups
    permission: int = setting(
        "brokerPermission", 6, Whole(0, 7), "4 read, 2 write; caps those of the topics", live=True
    )
    topic_queues: int = setting(
        "defaultTopicQueueNums", 8, _COUNT, "most queues of a topic made on first use", live=True
    )
    creates_topics: bool = setting(
        "autoCreateTopicEnable", True, YES_NO, "a send to an unknown topic makes it"
    )
    creates_groups: bool = setting(
        "autoCreateSubscriptionGroup", True, YES_NO, "an unknown group is made", live=True
    )
    has_cluster_topic: bool = setting(
        "clusterTopicEnable", True, YES_NO, "the topic named as the cluster may be used"
    )
    has_broker_topic: bool = setting(
        "brokerTopicEnable", True, YES_NO, "the topic named as the broker may be used"
    )
    trace_topic: str = setting(
        "msgTraceTopicName", "RMQ_SYS_TRACE_TOPIC", _NAME, "where clients trace to"
    )
    makes_trace_topic: bool = setting(
        "traceTopicEnable", False, YES_NO, "make the trace topic at the start"
    )
    unused_statistics_go: bool = setting(
        "autoDeleteUnusedStats", False, YES_NO, "forget statistics of what was deleted", live=True
    )

    # Sending
    accepts_sends_from_ms: int = setting(
        "startAcceptSendRequestTimeStamp", 0, _LONG, "refuse sends before", live=True
    )
    send_wait_ms: int = setting(
        "waitTimeMillsInSendQueue", 200, INTERVAL,
        "a send that lay unread for so long is refused as busy", live=True,
    )  # fmt: skip
    fast_failure: bool = setting(
        "brokerFastFailureEnable", True, YES_NO, "refuse requests that lay for too long", live=True
    )
    waiting_sends_max: int = setting(
        "sendThreadPoolQueueCapacity", 10_000, Whole(1), "sends that wait for disk or slave"
    )
    stores_replies: bool = setting(
        "storeReplyMessageEnable", True, YES_NO, "store the replies of request-reply too", live=True
    )

    # Pulling
    pull_wait_ms: int = setting(
        "waitTimeMillsInPullQueue", 5_000, INTERVAL, "the same for pulls and pops", live=True
    )
    lite_pull_wait_ms: int = setting(
        "waitTimeMillsInLitePullQueue", 5_000, INTERVAL, "the same for lite pulls", live=True
    )
    ack_wait_ms: int = setting(
        "waitTimeMillsInAckQueue", 3_000, INTERVAL, "the same for what pops acknowledge", live=True
    )
    heartbeat_wait_ms: int = setting(
        "waitTimeMillsInHeartbeatQueue", 31_000, INTERVAL, "the same for heartbeats", live=True
    )
    long_polling: bool = setting(
        "longPollingEnable", True, YES_NO, "hold an empty pull until there is something", live=True
    )
    short_polling_ms: int = setting(
        "shortPollingTimeMills", 1_000, PAUSE, "how long it is held otherwise", live=True
    )
    slave_read: bool = setting(
        "slaveReadEnable", False, YES_NO, "slow readers are sent to a slave", live=True
    )
    property_filter: bool = setting(
        "enablePropertyFilter", False, YES_NO, "SQL92 subscriptions are allowed", live=True
    )
    filter_bitmap: bool = setting(
        "enableCalcFilterBitMap", False, YES_NO, "evaluate SQL92 when a message arrives", live=True
    )
    filter_retry: bool = setting(
        "filterSupportRetry", False, YES_NO, "apply SQL92 to retry topics", live=True
    )
    filter_consumers: int = setting(
        "expectConsumerNumUseFilter", 32, Whole(1, 1024), "consumers that the bitmap is made for"
    )
    filter_error_percent: int = setting(
        "maxErrorRateOfBloomFilter", 20, Whole(1, 99), "errors that the bitmap may make"
    )
    filter_kept_ms: int = setting(
        "filterDataCleanTimeSpan", 86_400_000, _LONG, "then a dead filter is forgotten"
    )
    notifies_members: bool = setting(
        "notifyConsumerIdsChangedEnable", True, YES_NO, "tell a group who joined or left", live=True
    )
    slow_groups_stop: bool = setting(
        "disableConsumeIfConsumerReadSlowly", False, YES_NO,
        "stop groups that are too far behind", live=True,
    )  # fmt: skip
    slow_group_bytes: int = setting(
        "consumerFallbehindThreshold", 16 << 30, _LONG, "how far that is", live=True
    )
    offsets_interval_ms: int = setting(
        "flushConsumerOffsetInterval", 5_000, INTERVAL, "pause between two saves of offsets",
        live=True,
    )  # fmt: skip
    resets_here: bool = setting(
        "useServerSideResetOffset", True, YES_NO,
        "a reset waits here for the group's next pull; false: members are told", live=True,
    )  # fmt: skip
    lock_life_ms: int = setting(
        "lockMaxLiveTime", 60_000, Whole(1_000, 600_000),
        "a queue's lock that its member does not renew is anyone's after so long",
    )  # fmt: skip
    offset_beyond_end: OffsetBeyondEnd = setting(
        "offsetBeyondEnd", OffsetBeyondEnd.NEAREST, Choice(OffsetBeyondEnd),
        "where a group goes whose offset lies behind the queue's end, unless it says so itself",
        live=True,
    )  # fmt: skip
    lite_pull: bool = setting("litePullMessageEnable", True, YES_NO, "5.x lite pull", live=True)

    # Transactions
    transaction_wait_ms: int = setting(
        "waitTimeMillsInTransactionQueue", 3_000, INTERVAL,
        "a decision that lay unread for so long is refused as busy", live=True,
    )  # fmt: skip
    rejects_transactions: bool = setting(
        "rejectTransactionMessage", False, YES_NO, "refuse transactional messages", live=True
    )
    transaction_timeout_ms: int = setting(
        "transactionTimeOut", 6_000, PAUSE, "age at which a half message is asked about", live=True
    )
    transaction_checks_max: int = setting(
        "transactionCheckMax", 15, Whole(1), "times it is asked about", live=True
    )
    transaction_interval_ms: int = setting(
        "transactionCheckInterval", 60_000, INTERVAL, "pause between two rounds", live=True
    )

    # Timers and pop, 5.x
    timers: bool = setting("timerWheelEnable", True, YES_NO, "deliver at any second")
    timer_delay_max_s: int = setting(
        "timerMaxDelaySec", 3 * 86_400, Whole(1), "longest delay of a timer", live=True
    )
    recalls: bool = setting(
        "recallMessageEnable", False, YES_NO, "timers can be recalled", live=True
    )
    request_mode: str = setting(
        "defaultMessageRequestMode", "PULL", Word(("PULL", "POP")),
        "what a group does that asks the broker for its queues and has no mode of its own",
        live=True,
    )  # fmt: skip
    pop_share_queues: int = setting(
        "defaultPopShareQueueNum", -1, Whole(-1, 65536),
        "neighbours whose queues each of its members pops as well; below 0: those of all",
        live=True,
    )  # fmt: skip
    pop_polling_max: int = setting(
        "popPollingSize", 1024, Whole(1), "pops that wait on one queue", live=True
    )
    revive_queues: int = setting("reviveQueueNum", 8, Whole(1, 1024), "queues of pop's own log")
    pop_retry_percent: int = setting(
        "popFromRetryProbability", 20, Whole(0, 100), "pops that take retries first", live=True
    )
    pop_retry_v2: bool = setting(
        "enableRetryTopicV2", False, YES_NO, "retries go to %RETRY%group+topic", live=True
    )

    @property
    def shown_permission(self) -> int:
        """Return what name servers are told of it: one that drains takes no sends.

        In a group with failover another member takes them.
        """
        return self.permission & ~_WRITE if self.draining and not self.etcd else self.permission

    @property
    def has_journal(self) -> bool:
        """Tell whether changes of the tables are kept in the log."""
        return self.metadata_in_log or bool(self.etcd)

    @property
    def shown(self) -> str:
        """Return what clients know the broker by, for sentences: its address, or else its name."""
        return self.address or self.name


def broker_rows() -> Iterator[tuple[str, Setting]]:
    """Yield attribute and row of every setting of a broker."""
    for column in fields(BrokerSettings):
        row = column.metadata.get("setting")
        if isinstance(row, Setting):
            yield column.name, row


def broker_properties(settings: BrokerSettings) -> dict[str, str]:
    """Return a broker's settings under RocketMQ's names."""
    return {row.name: row.kind.text(getattr(settings, name)) for name, row in broker_rows()}


class LiveSettings:
    """The settings that hold now; replaced as a whole when an admin changes some."""

    __slots__ = ("now",)

    def __init__(self, now: BrokerSettings) -> None:
        self.now = now
