"""Every metric there is: its name, what kind it is, its labels, and what it means.

Nothing is exported that is not in this table, and docs/metrics.md is compared with it. Names that
begin with `rocketmq_` are Apache RocketMQ 5's, with its labels, so that boards made for it work.
Apache's later releases put the unit behind some of the names; `also` is that spelling, and a metric
that has one is exported under both.

Every metric of a broker or a name server has the labels of `COMMON` too.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

COMMON: Final = ("cluster", "node_type", "node_id")
OTHER: Final = "_other"
"""The label of what has no series of its own."""


class Kind(Enum):
    """What Prometheus takes a metric for."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Family(NamedTuple):
    """One metric."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    text: str
    also: str = ""
    """Another name of the same."""
    is_common: bool = True
    """Whether it has the labels of `COMMON`; what is about the process has not."""


_C, _G, _H = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM
_IN: Final = ("topic", "message_type", "is_system")
_GROUP: Final = ("consumer_group", "topic", "is_retry", "is_system")
_DISK: Final = ("storage_type", "storage_medium")
_MAKING: Final = ("invocation_status", "is_system")
_QUEUE: Final = ("consumer_group", "topic", "queue_id")
_RPC: Final = ("protocol_type", "request_code", "response_code", "is_long_polling", "result")

_APACHE: Final = (
    Family("rocketmq_messages_in_total", _C, _IN, "messages stored, by topic"),
    Family("rocketmq_messages_out_total", _C, _GROUP, "messages handed out to a group"),
    Family("rocketmq_throughput_in_total", _C, _IN, "bytes of the records stored, by topic"),
    Family("rocketmq_throughput_out_total", _C, _GROUP, "bytes of the records handed out"),
    Family("rocketmq_message_size", _H, _IN, "sizes of stored records, in bytes"),
    Family("rocketmq_rpc_latency", _H, _RPC,
           "milliseconds until a request was answered; of sends, those of all codes together",
           "rocketmq_rpc_latency_milliseconds"),
    Family("rocketmq_topic_create_execution_time", _H, _MAKING,
           "milliseconds until an operator's request for a topic was answered",
           "rocketmq_topic_create_execution_time_milliseconds"),
    Family("rocketmq_consumer_group_create_execution_time", _H, _MAKING,
           "milliseconds until an operator's request for a group was answered",
           "rocketmq_consumer_group_create_execution_time_milliseconds"),
    Family("rocketmq_processor_watermark", _G, ("processor",),
           "requests that wait: sends for disk or slave, reads for the disk"),
    Family("rocketmq_broker_permission", _G, (), "4 read, 2 write (brokerPermission)"),
    Family("rocketmq_topic_number", _G, (), "topics"),
    Family("rocketmq_consumer_group_number", _G, (), "subscription groups"),
    Family("rocketmq_producer_connections", _G, ("language", "version", "protocol_type"),
           "producers that are connected"),
    Family("rocketmq_consumer_connections", _G,
           ("consumer_group", "language", "version", "consume_mode", "protocol_type", "is_system"),
           "consumers that are connected"),
    Family("rocketmq_consumer_lag_messages", _G, _GROUP,
           "messages that the group has not committed yet"),
    Family("rocketmq_consumer_lag_latency", _G, _GROUP,
           "milliseconds since the oldest message that is not committed was stored",
           "rocketmq_consumer_lag_latency_milliseconds"),
    Family("rocketmq_consumer_inflight_messages", _G, _GROUP,
           "messages that were handed out and not committed yet"),
    Family("rocketmq_consumer_queueing_latency", _G, _GROUP,
           "milliseconds since the oldest message that was not handed out was stored",
           "rocketmq_consumer_queueing_latency_milliseconds"),
    Family("rocketmq_consumer_ready_messages", _G, _GROUP, "messages that were not handed out yet"),
    Family("rocketmq_send_to_dlq_messages_total", _C, ("topic", "consumer_group", "is_system"),
           "messages that became dead letters; the topic is the one they are in"),
    Family("rocketmq_half_messages", _G, (), "transactions that nobody has decided about"),
    Family("rocketmq_commit_messages_total", _C, ("topic",), "transactions committed"),
    Family("rocketmq_rollback_messages_total", _C, ("topic",), "transactions rolled back"),
    Family("rocketmq_storage_size", _G, _DISK, "bytes used on the disk of the store",
           "rocketmq_storage_size_bytes"),
    Family("rocketmq_storage_flush_behind_bytes", _G, _DISK,
           "bytes of the log that are not on the disk"),
    Family("rocketmq_storage_dispatch_behind_bytes", _G, _DISK,
           "bytes of the log that are in no queue yet; with failover also those that slaves of the "
           "in-sync set lack"),
    Family("rocketmq_storage_message_reserve_time", _G, _DISK,
           "milliseconds since the oldest message of the log was stored",
           "rocketmq_storage_message_reserve_time_milliseconds"),
    Family("rocketmq_timing_messages", _G, ("topic", *_DISK), "timer messages that wait"),
    Family("rocketmq_timer_enqueue_total", _C, ("topic", *_DISK), "timer messages taken in"),
    Family("rocketmq_timer_dequeue_total", _C, ("topic", *_DISK),
           "timer messages delivered or recalled"),
    Family("rocketmq_timer_enqueue_lag", _G, _DISK, "timer messages stored and not taken in yet"),
    Family("rocketmq_timer_enqueue_latency", _G, _DISK,
           "milliseconds since the oldest of them was stored",
           "rocketmq_timer_enqueue_latency_milliseconds"),
    Family("rocketmq_timer_dequeue_latency", _G, _DISK,
           "milliseconds that the delivery of timer messages is late",
           "rocketmq_timer_dequeue_latency_milliseconds"),
    Family("rocketmq_pop_revive_lag", _G, ("queue_id",),
           "records of popped messages that were not looked at yet",
           "rocketmq_pop_revive_lag_milliseconds"),
    Family("rocketmq_pop_revive_latency", _G, ("queue_id",),
           "milliseconds since the oldest of them was stored",
           "rocketmq_pop_revive_latency_milliseconds"),
)  # fmt: skip
_CONSUMING: Final = (
    Family("gantrymq_queue_lag_messages", _G, _QUEUE, "messages of a queue not committed yet"),
    Family("gantrymq_queue_lag_seconds", _G, _QUEUE, "age of the first of them; 0 without one"),
    Family("gantrymq_group_oldest_unconsumed_seconds", _G, ("consumer_group",),
           "age of the oldest message that a group has not committed, in any topic"),
    Family("gantrymq_sent_back_total", _C, ("topic", "consumer_group"),
           "messages that consumers gave back for a retry"),
    Family("gantrymq_pulls_total", _C, ("result",), "pulls, by whether they found messages"),
    Family("gantrymq_held_pulls", _G, (), "pulls that wait for a message"),
    Family("gantrymq_held_pops", _G, (), "pops that wait for a message"),
    Family("gantrymq_subscription_mismatch_groups", _G, (),
           "groups whose members subscribe to different things"),
    Family("gantrymq_offsets_beyond_end_total", _C, (),
           "offsets of groups that lay behind the end of their queue"),
)  # fmt: skip
_STORE: Final = (
    Family("gantrymq_append_seconds", _H, (),
           "time of an append to the log, one for all messages of a turn"),
    Family("gantrymq_flush_seconds", _H, (), "time that forcing the log to the disk took"),
    Family("gantrymq_gate_wait_seconds", _H, (),
           "time from an append until the durability gate let its answer out; SYNC_FLUSH and "
           "SYNC_MASTER only"),
    Family("gantrymq_gate_outcomes_total", _C, ("status",), "puts by how they left the gate"),
    Family("gantrymq_gate_waiting", _G, ("side",), "answers that wait for disk or replica"),
    Family("gantrymq_waiting_sends", _G, (), "sends that wait for disk or slave"),
    Family("gantrymq_busy_refusals_total", _C, ("cause",),
           "requests refused by a busy broker, by the word that the remark begins with"),
    Family("gantrymq_throttled_requests", _G, (), "requests that wait for a quota"),
    Family("gantrymq_throttled_requests_total", _C, ("cause",),
           "requests that were made to wait for a quota, by the same words"),
    Family("gantrymq_taken_share", _G, (),
           "part of the sends that is taken in; below 1 more comes than the broker can do"),
    Family("gantrymq_puts_failed_total", _C, (), "messages that could not be stored"),
    Family("gantrymq_forwarded_requests_total", _C, (), "requests passed on to another master"),
    Family("gantrymq_dispatch_lag_bytes", _G, (), "bytes of the log that nobody can read yet"),
    Family("gantrymq_cold_reads_waiting", _G, (), "pulls that wait for a read of the disk"),
    Family("gantrymq_cold_read_bytes_total", _C, (), "bytes that groups have read from the disk"),
    Family("gantrymq_cold_read_refusals_total", _C, ("cause",),
           "reads from the disk that had to wait for a budget: reads at once, or bytes"),
    Family("gantrymq_cold_questions_waiting", _G, (), "other requests that wait for one"),
    Family("gantrymq_log_offset", _G, ("point",),
           "offsets of the log: min, end, committed, flushed, dispatched, replicated"),
    Family("gantrymq_store_writable", _G, (), "1 while the store takes messages"),
    Family("gantrymq_disk_used_ratio", _G, ("disk",),
           "used part of the disk of the log and of the queues, 0 to 1"),
)  # fmt: skip
_CLUSTER: Final = (
    Family("gantrymq_is_master", _G, (), "1 on a master, 0 on a slave"),
    Family("gantrymq_replication_slaves", _G, (), "slaves that copy this broker"),
    Family("gantrymq_replication_lag_bytes", _G, ("slave",), "bytes that a slave is behind"),
    Family("gantrymq_replication_in_sync", _G, ("slave",), "1 if a slave is near the end"),
    Family("gantrymq_replication_connected", _G, (), "of a slave: 1 while it copies its master"),
    Family("gantrymq_replication_level", _G, (), "of a slave: 1 if it has all of its master"),
    Family("gantrymq_etcd_reachable", _G, (), "1 if etcd answered when it was last asked"),
    Family("gantrymq_etcd_troubles_total", _C, (), "requests to etcd that failed"),
    Family("gantrymq_etcd_lease_held", _G, (), "1 while this member's lease certainly holds"),
    Family("gantrymq_failover_epoch", _G, (), "epoch in which the log was last written"),
    Family("gantrymq_in_sync_members", _G, (), "of a master with failover: members in sync"),
    Family("gantrymq_name_servers", _G, ("state",),
           "name servers that are configured, and that know this broker"),
    Family("gantrymq_namesrv_brokers", _G, (), "brokers that are registered"),
    Family("gantrymq_namesrv_broker_groups", _G, (), "broker groups among them"),
    Family("gantrymq_namesrv_topics", _G, (), "topics that have a route"),
)  # fmt: skip
_PROCESS: Final = (
    Family("gantrymq_open_connections", _G, (), "connections of clients and brokers"),
    Family("gantrymq_connections_refused_total", _C, ("cause",),
           "connections that were one too many: in all, of their address, of their user"),
    Family("gantrymq_connections_closed_total", _C, ("cause",),
           "connections closed from here: idle, answers unread, memory short"),
    Family("gantrymq_slow_connections", _G, (),
           "connections that are not read because they do not take their answers"),
    Family("gantrymq_busy_answers_total", _C, (),
           "answers with data that became SYSTEM_BUSY, for such a connection"),
    Family("gantrymq_buffered_bytes", _G, (), "bytes that connections hold or have to send"),
    Family("gantrymq_loop_delay_seconds", _H, (),
           "how late the event loop runs what is due", is_common=False),
    Family("gantrymq_loop_delay_max_seconds", _G, (),
           "the worst of them since the last scrape", is_common=False),
    Family("gantrymq_build_info", _G, ("version", "kernel"), "1", is_common=False),
    Family("gantrymq_scrape_seconds", _G, (), "how long the scrape before took", is_common=False),
    Family("gantrymq_metrics_left_out", _G, ("kind",),
           "topics, groups, queues and ages that have no series of their own (metricsSeriesMax)"),
    Family("process_cpu_seconds_total", _C, (), "user and system time", is_common=False),
    Family("process_resident_memory_bytes", _G, (), "memory in use", is_common=False),
    Family("process_virtual_memory_bytes", _G, (), "address space", is_common=False),
    Family("process_start_time_seconds", _G, (), "when it was started", is_common=False),
    Family("process_open_fds", _G, (), "open files and sockets", is_common=False),
    Family("process_max_fds", _G, (), "how many there may be", is_common=False),
)  # fmt: skip

FAMILIES: Final[Mapping[str, Family]] = {
    family.name: family for family in (*_APACHE, *_CONSUMING, *_STORE, *_CLUSTER, *_PROCESS)
}
"""By name, in the order of exposition."""


def exported_names() -> Iterator[str]:
    """Yield every name that a scrape can have, the other spellings included."""
    for family in FAMILIES.values():
        yield family.name
        if family.also:
            yield family.also
