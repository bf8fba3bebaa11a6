"""Which names are legal, which are reserved, and how names are made of other names.

This is the one module that decides about names. The rules are those of Apache's `TopicValidator`,
`Validators`, `MixAll`, `KeyBuilder` and `NamespaceUtil`, release 5.5 (4.9 differs where noted).

Two questions are kept apart on purpose:

* *May a user choose it?* `check_topic` and `check_group`: letters, digits and `% | - _`, and a
  length.
* *May it become a directory?* `check_path_safe`. A topic is a directory under `consumequeue/`, and
  not every topic was chosen by a user: pop retry topics of version 2 contain a `+`, Apache makes
  `%RETRY%` topics out of group names that it never looked at, and a slave takes its master's table
  as it comes. So whoever makes a topic out of anything but a checked name asks this as well.

Lengths are bytes of UTF-8; Apache counts UTF-16 units, which is the same for every legal name.
"""

import re
import unicodedata
from typing import Final

from gantrymq.errors import InvalidValue
from gantrymq.limits import (
    CLIENT_ID_BYTES_MAX,
    GROUP_BYTES_MAX,
    SYSTEM_TOPIC_BYTES_MAX,
    TOPIC_BYTES_MAX,
)

RETRY_PREFIX: Final = "%RETRY%"
DLQ_PREFIX: Final = "%DLQ%"
LMQ_PREFIX: Final = "%LMQ%"
"""5.x light queues: one queue each, kept beside the commit log's own."""
SYSTEM_TOPIC_PREFIX: Final = "rmq_sys_"
SYSTEM_GROUP_PREFIX: Final = "CID_RMQ_SYS_"
NAMESPACE_SEPARATOR: Final = "%"

TEMPLATE_TOPIC: Final = "TBW102"
"""Its settings are copied when a send creates a topic."""
SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
BENCHMARK_TOPIC: Final = "BenchmarkTest"
HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
HALF_OP_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
ROCKSDB_HALF_TOPIC: Final = "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC"
ROCKSDB_HALF_OP_TOPIC: Final = "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC"
CHECKED_TOO_OFTEN_TOPIC: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
SELF_TEST_TOPIC: Final = "SELF_TEST_TOPIC"
OFFSET_MOVED_TOPIC: Final = "OFFSET_MOVED_EVENT"
ROCKSDB_CHECKPOINT_TOPIC: Final = "CHECKPOINT_TOPIC"
TIMER_TOPIC: Final = "rmq_sys_wheel_timer"
REVIVE_PREFIX: Final = f"{SYSTEM_TOPIC_PREFIX}REVIVE_LOG_"
"""Of pop's check points and acknowledgements, one topic for each cluster."""
JOURNAL_TOPIC: Final = "rmq_sys_gantrymq_metadata"
"""Ours: changes of topics, groups and offsets, for slaves that may become master. By its prefix it
is a system topic to every Apache tool."""

NO_SEND_TOPICS: Final = frozenset(
    {
        SCHEDULE_TOPIC,
        HALF_TOPIC,
        HALF_OP_TOPIC,
        ROCKSDB_HALF_TOPIC,
        ROCKSDB_HALF_OP_TOPIC,
        CHECKED_TOO_OFTEN_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_TOPIC,
    }
)
"""Topics that only the broker itself writes to."""
SYSTEM_TOPICS: Final = NO_SEND_TOPICS | {
    TEMPLATE_TOPIC,
    BENCHMARK_TOPIC,
    TRACE_TOPIC,
    ROCKSDB_CHECKPOINT_TOPIC,
    TIMER_TOPIC,
}
"""Reserved on every broker; `system_topics` adds those named after a cluster or a broker."""
SYSTEM_GROUPS: Final = frozenset(
    {
        "TOOLS_CONSUMER",
        "SELF_TEST_C_GROUP",
        "FILTERSRV_CONSUMER",
        "CID_ONS-HTTP-PROXY",
        "CID_ONSAPI_PULL",
        "CID_ONSAPI_PERMISSION",
        "CID_ONSAPI_OWNER",
        "CID_RMQ_SYS_TRANS",
    }
)
"""Groups that exist on every broker from the start."""

_LEGAL: Final = re.compile(r"[%|a-zA-Z0-9_-]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_UNSAFE: Final = re.compile(r"[/\\\x00-\x1f\x7f-\x9f]")
_SHOWN: Final = 64
_REPLY_SUFFIX: Final = "_REPLY_TOPIC"
_POP_RETRY_SEPARATORS: Final = {1: "_", 2: "+"}


def check_topic(name: str) -> str:
    """Return a topic name that a client may use.

    Raises:
        InvalidValue: it is blank, has other characters, or is too long.
    """
    longer = isinstance(name, str) and name.startswith((RETRY_PREFIX, DLQ_PREFIX))
    return _check(name, "topic", SYSTEM_TOPIC_BYTES_MAX if longer else TOPIC_BYTES_MAX)


def check_group(name: str) -> str:
    """Return a producer or consumer group name that a client may use.

    Raises:
        InvalidValue: it is blank, has other characters, or is too long.
    """
    return _check(name, "group", GROUP_BYTES_MAX)


def _check(name: str, what: str, bytes_max: int) -> str:
    """Apply the rules that topics and groups share."""
    if not isinstance(name, str):
        raise InvalidValue(f"the {what} is {repr(name)[:_SHOWN]}: give text")
    if not name.strip():
        raise InvalidValue(f"the {what} name is blank: give one")
    if _LEGAL.fullmatch(name) is None:
        raise InvalidValue(
            f"{what} {name[:_SHOWN]!r} contains illegal characters: "
            "use letters, digits, %, |, - and _"
        )
    if len(name) > bytes_max:
        raise InvalidValue(
            f"{what} {name[:_SHOWN]!r} has {len(name)} bytes: use at most {bytes_max}"
        )
    return name


def check_client_id(text: str) -> str:
    """Return a client id (`address@instance`, with IPv6 and unit names) that can be kept and shown.

    Raises:
        InvalidValue: it is blank, too long, has control characters or cannot be encoded.
    """
    if not text.strip():
        raise InvalidValue("the client id is blank: give one")
    if _CONTROL.search(text):
        raise InvalidValue(
            f"client id {text[:_SHOWN]!r} contains control characters: leave them out"
        )
    if (size := _utf8_bytes(text)) is None or size > CLIENT_ID_BYTES_MAX:
        raise InvalidValue(
            f"client id {text[:_SHOWN]!r} is not {CLIENT_ID_BYTES_MAX} bytes of UTF-8 or less"
        )
    return text


def is_path_safe(name: str) -> bool:
    """Say whether a name is one directory, below the one it is created in, on a POSIX system.

    Characters that nobody sees, and dots and blanks at the end, are refused as well.
    """
    size = _utf8_bytes(name)
    if size is None or not 0 < size <= SYSTEM_TOPIC_BYTES_MAX or name in {".", ".."}:
        return False
    if _UNSAFE.search(name) is not None or name[-1] in ". ":
        return False
    if name.isascii():
        return name.isprintable()
    return not any(unicodedata.category(char) in {"Cc", "Cf"} for char in name)


def check_path_safe(name: str) -> str:
    """Return a name that may become a directory.

    Raises:
        InvalidValue: it could leave the directory, or no file system takes it.
    """
    if not is_path_safe(name):
        raise InvalidValue(
            f"{name[:_SHOWN]!r} cannot be a directory name: use no slash, backslash or invisible "
            f"character, no dot or blank at the end, and at most {SYSTEM_TOPIC_BYTES_MAX} bytes"
        )
    return name


def _utf8_bytes(text: str) -> int | None:
    """Return the encoded size, or None for half a surrogate pair."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return None


def is_system_topic(topic: str) -> bool:
    """Say whether a topic is reserved whatever the cluster is called."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_TOPIC_PREFIX)


def system_topics(cluster: str, broker_name: str) -> frozenset[str]:
    """Return every topic that one broker reserves, with those named after it and its cluster."""
    return SYSTEM_TOPICS | {
        cluster,
        broker_name,
        reply_topic(cluster),
        revive_topic(cluster),
        f"{SYSTEM_TOPIC_PREFIX}SYNC_BROKER_MEMBER_{broker_name}",
    }


def is_system_group(group: str) -> bool:
    """Say whether a group is the system's own."""
    return group in SYSTEM_GROUPS or group.startswith(SYSTEM_GROUP_PREFIX)


def may_send_to(topic: str) -> bool:
    """Say whether a client may send to a topic at all.

    Apache lets clients write into the logs of timers and of pop, too. What is no record of theirs
    is passed over there: it would be acknowledged and never come.
    """
    return (
        topic not in NO_SEND_TOPICS
        and topic not in {JOURNAL_TOPIC, TIMER_TOPIC}
        and not topic.startswith(REVIVE_PREFIX)
    )


def is_retry_topic(topic: str) -> bool:
    """Say whether a topic holds messages that a group will get again."""
    return topic.startswith(RETRY_PREFIX)


def is_dlq_topic(topic: str) -> bool:
    """Say whether a topic holds messages that a group gave up."""
    return topic.startswith(DLQ_PREFIX)


def is_light_queue(topic: str) -> bool:
    """Say whether a topic is a 5.x light queue."""
    return topic.startswith(LMQ_PREFIX)


def retry_topic(group: str) -> str:
    """Return the topic that a group's failed messages go to."""
    return RETRY_PREFIX + group


def dlq_topic(group: str) -> str:
    """Return the topic that a group's lost messages go to."""
    return DLQ_PREFIX + group


def group_of(topic: str) -> str | None:
    """Return whose retry or dead-letter topic it is, or None for any other topic.

    For a pop retry topic of version 1 the answer holds the topic as well: its form cannot be told
    from a group whose name contains `_`.
    """
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if topic.startswith(prefix):
            return topic.removeprefix(prefix).partition("+")[0]
    return None


def pop_retry_topic(group: str, topic: str, version: int = 1) -> str:
    """Return the topic for messages of `topic` that `group` popped and did not acknowledge.

    Raises:
        InvalidValue: there is no such version.
    """
    separator = _POP_RETRY_SEPARATORS.get(version)
    if separator is None:
        raise InvalidValue(f"pop retry topics have version 1 or 2, not {version}")
    return f"{RETRY_PREFIX}{group}{separator}{topic}"


def popped_topic(retry: str, group: str) -> str:
    """Return the topic behind a group's pop retry topic of either version, or the topic itself."""
    for separator in _POP_RETRY_SEPARATORS.values():
        prefix = f"{RETRY_PREFIX}{group}{separator}"
        if retry.startswith(prefix):
            return retry.removeprefix(prefix)
    return retry


def reply_topic(cluster: str) -> str:
    """Return the topic that replies to requests are addressed to."""
    return cluster + _REPLY_SUFFIX


def revive_topic(cluster: str) -> str:
    """Return the topic of pop check points and acknowledgements."""
    return f"{REVIVE_PREFIX}{cluster}"


def with_namespace(namespace: str, name: str) -> str:
    """Put a topic or group into a namespace: `ns%topic`, `%RETRY%ns%group`; system names stay."""
    if not namespace or not name or _is_system(name) or namespace_of(name) == namespace:
        return name
    prefix, bare = _split_prefix(name)
    return f"{prefix}{namespace}{NAMESPACE_SEPARATOR}{bare}"


def without_namespace(name: str) -> str:
    """Return a topic or group as its namespace's own clients call it."""
    prefix, bare = _split_prefix(name)
    namespace = namespace_of(name)
    return prefix + bare.removeprefix(namespace + NAMESPACE_SEPARATOR) if namespace else name


def namespace_of(name: str) -> str:
    """Return the namespace that a topic or group is in, or an empty text."""
    if _is_system(name):
        return ""
    namespace, separator, _ = _split_prefix(name)[1].partition(NAMESPACE_SEPARATOR)
    return namespace if separator else ""


def _is_system(name: str) -> bool:
    """Say whether a name is outside every namespace."""
    return is_system_topic(name) or name.startswith(SYSTEM_GROUP_PREFIX)


def _split_prefix(name: str) -> tuple[str, str]:
    """Split off %RETRY% or %DLQ%."""
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if name.startswith(prefix):
            return prefix, name.removeprefix(prefix)
    return "", name
