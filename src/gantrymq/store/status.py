"""The outcomes of putting and getting messages, under RocketMQ's names."""

from __future__ import annotations

from enum import Enum


class PutStatus(Enum):
    """What became of a message that was to be stored."""

    PUT_OK = "PUT_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    """Stored; the disk had not confirmed it in time."""
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    """Stored; no slave had confirmed it in time."""
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"
    """Stored; there was no slave to confirm it."""
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
    """Not stored: stopped, a slave, or not writable."""
    CREATE_MAPPED_FILE_FAILED = "CREATE_MAPEDFILE_FAILED"
    """Not stored: the next log file could not be made."""
    MESSAGE_ILLEGAL = "MESSAGE_ILLEGAL"
    """Not stored: a length over its limit."""
    PROPERTIES_SIZE_EXCEEDED = "PROPERTIES_SIZE_EXCEEDED"
    """Not stored: properties over 32767 bytes."""
    OS_PAGE_CACHE_BUSY = "OS_PAGECACHE_BUSY"
    """Not stored: appending takes too long."""
    UNKNOWN_ERROR = "UNKNOWN_ERROR"
    """It is not known whether it was stored: the disk failed."""

    @property
    def is_stored(self) -> bool:
        """Tell whether the message is in the log."""
        return self in _STORED


_STORED = frozenset(
    {
        PutStatus.PUT_OK,
        PutStatus.FLUSH_DISK_TIMEOUT,
        PutStatus.FLUSH_SLAVE_TIMEOUT,
        PutStatus.SLAVE_NOT_AVAILABLE,
    }
)


class GetStatus(Enum):
    """What a read of a queue found."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
