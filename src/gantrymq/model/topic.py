"""The settings of a topic on one broker group (RocketMQ's `TopicConfig` and `PermName`)."""

from collections.abc import Mapping
from enum import IntEnum, IntFlag
from typing import Final

import msgspec

from gantrymq.errors import InvalidValue
from gantrymq.limits import QUEUES_MAX
from gantrymq.model.widths import Int32

DEFAULT_QUEUES: Final = 16
"""Read and write queues of a topic that says nothing else."""
UNIT_FLAG: Final = 1
"""Bit of `TopicConfig.system_flags`: created by a client in unit mode."""
UNIT_SUBSCRIPTION_FLAG: Final = 2
"""Bit of `TopicConfig.system_flags`: retry topic of a group in unit mode."""


class Perm(IntFlag):
    """What clients may do with a topic's queues."""

    INHERIT = 1
    """A send to an unknown topic may create it after this one."""
    WRITE = 2
    READ = 4
    PRIORITY = 8
    """Defined by RocketMQ, and refused by its admin tools."""

    @property
    def text(self) -> str:
        """Return the three letters that mqadmin prints: `RW-`, `R--`, `RWX`."""
        read = "R" if Perm.READ in self else "-"
        write = "W" if Perm.WRITE in self else "-"
        inherit = "X" if Perm.INHERIT in self else "-"
        return read + write + inherit

    @classmethod
    def parse(cls, text: str) -> "Perm":
        """Read a number (`6`) or the three letters (`RW-`).

        Raises:
            InvalidValue: it is neither, or not among 0 to 7.
        """
        if text.isascii() and text.isdigit():
            if len(text) == 1 and int(text) < cls.PRIORITY:
                return cls(int(text))
        else:
            for number in range(cls.PRIORITY):
                if cls(number).text == text.upper():
                    return cls(number)
        raise InvalidValue(
            f"a permission is a number from 0 to 7 or three letters such as RW-, not {text[:32]!r}"
        )


READ_WRITE: Final = Perm.READ | Perm.WRITE
_READ: Final = int(Perm.READ)  # asked at every pull, and an IntFlag's `in` costs a microsecond
_WRITE: Final = int(Perm.WRITE)


class FilterType(IntEnum):
    """How many tags a message of the topic carries; brokers have only ever used the first."""

    SINGLE_TAG = 0
    MULTI_TAG = 1


class TopicConfig(msgspec.Struct, frozen=True):
    """A topic's settings; the defaults are RocketMQ's."""

    name: str
    read_queues: Int32 = DEFAULT_QUEUES
    write_queues: Int32 = DEFAULT_QUEUES
    perm: Perm = READ_WRITE
    filter_type: FilterType = FilterType.SINGLE_TAG
    system_flags: Int32 = 0
    order: bool = False
    """Ordered across a broker's absence: such a topic refuses writes rather than move them."""
    attributes: Mapping[str, str] = {}
    """5.x: `message.type`, `cleanup.policy` and the like, kept as they are."""

    def __post_init__(self) -> None:
        """Refuse counts that no broker can have."""
        for what, count in (("read", self.read_queues), ("write", self.write_queues)):
            if not 0 <= count <= QUEUES_MAX:
                raise InvalidValue(
                    f"topic {self.name[:64]!r} cannot have {count} {what} queues: "
                    f"give 0 to {QUEUES_MAX}"
                )

    @property
    def readable(self) -> bool:
        """Say whether consumers may pull."""
        return bool(int(self.perm) & _READ)

    @property
    def writable(self) -> bool:
        """Say whether producers may send."""
        return bool(int(self.perm) & _WRITE)
