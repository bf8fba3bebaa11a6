"""5.x attributes of topics and groups: which there are, and how a request changes them.

A request carries changes, not values: `+message.type=FIFO,-reserve.time` sets one and deletes
another. The rules are those of Apache's `AttributeUtil`, the names those of `TopicAttributes` and
`SubscriptionGroupAttributes`, release 5.5, and those of quotas (`quotas`), which are ours. What
stands in a file is kept as it is.

Where Apache takes a value that asks for something this broker does not do (compaction, batch
consume queues, light topics), it is refused: a topic that is silently not compacted
is worse than an error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.broker.kept_topics import RESERVE_TIME
from gantrymq.errors import InvalidValue, shown
from gantrymq.limits import ATTRIBUTE_CHARACTERS_MAX
from gantrymq.model.group import OffsetBeyondEnd

if TYPE_CHECKING:
    from collections.abc import Mapping

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_LONG_MAX: Final = (1 << 63) - 1
_MINUTES_OF_30_DAYS: Final = 30 * 24 * 60


class Attribute(NamedTuple):
    """One attribute: what values it takes, and whether they can change later."""

    changeable: bool = True
    values: frozenset[str] | None = None
    """What may be chosen from; None where anything may be said, or a number in a range."""
    least: int | None = None
    most: int = _LONG_MAX
    unsupported: frozenset[str] = frozenset()
    """Values that Apache has and this broker has not."""

    def check(self, name: str, value: str) -> None:
        """Refuse a value that is none, or that asks for what is not there.

        Raises:
            InvalidValue: says what may be given.
        """
        if self.values is not None and value not in self.values:
            raise InvalidValue(
                f"attribute {name} cannot be {shown(value)!r}: give one of "
                f"{', '.join(sorted(self.values))}"
            )
        if self.least is not None:
            number = int(value) if _INTEGER.fullmatch(value) else None
            if number is None or not self.least <= number <= self.most:
                raise InvalidValue(
                    f"attribute {name} cannot be {shown(value)!r}: give a number from "
                    f"{self.least} to {self.most}"
                )
        if value in self.unsupported:
            raise InvalidValue(
                f"attribute {name}={shown(value)} asks for what this broker does not do: "
                "leave it out"
            )


_RATE: Final = Attribute(least=0)
"""Of a quota, for a second; 0 is no limit, whatever the broker's default is."""
_BOOLEAN: Final = frozenset({"true", "false", "TRUE", "FALSE", "True", "False"})

TOPIC_ATTRIBUTES: Final[Mapping[str, Attribute]] = {
    "queue.type": Attribute(
        changeable=False,
        values=frozenset({"SimpleCQ", "BatchCQ"}),
        unsupported=frozenset({"BatchCQ"}),
    ),
    "cleanup.policy": Attribute(
        changeable=False,
        values=frozenset({"DELETE", "COMPACTION"}),
        unsupported=frozenset({"COMPACTION"}),
    ),
    "message.type": Attribute(
        values=frozenset(
            {"UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "PRIORITY", "LITE", "MIXED"}
        ),
        unsupported=frozenset({"LITE"}),
    ),
    RESERVE_TIME: Attribute(least=-1),
    "lite.topic.expiration": Attribute(least=-1, most=_MINUTES_OF_30_DAYS),
    "quota.send.bytes": _RATE,
    "quota.send.requests": _RATE,
    "quota.read.bytes": _RATE,
    "quota.read.requests": _RATE,
}
GROUP_ATTRIBUTES: Final[Mapping[str, Attribute]] = {
    "priority.factor": Attribute(least=0, most=100),
    "offset.beyond.end": Attribute(values=frozenset(one.name for one in OffsetBeyondEnd)),
    "lite.bind.topic": Attribute(),
    "lite.sub.model": Attribute(values=frozenset({"Shared", "Exclusive"})),
    "lite.sub.reset.offset.exclusive": Attribute(values=_BOOLEAN),
    "lite.sub.reset.offset.unsubscribe": Attribute(values=_BOOLEAN),
    "lite.sub.client.quota": Attribute(least=-1),
    "lite.sub.client.max.event.cnt": Attribute(least=10),
    "quota.read.bytes": _RATE,
    "quota.read.requests": _RATE,
}


def parse_changes(text: str | None) -> dict[str, str]:
    """Read `+key=value,-key` into a map whose keys keep their sign; values of `-` are empty.

    Raises:
        InvalidValue: it has another form, or names a key twice.
    """
    if not text:
        return {}
    if len(text) > ATTRIBUTE_CHARACTERS_MAX:
        raise InvalidValue(
            f"attributes of {len(text)} characters: use at most {ATTRIBUTE_CHARACTERS_MAX}"
        )
    changes: dict[str, str] = {}
    for item in text.split(","):
        key, equals, value = item.partition("=")
        if not (key.startswith("+") and equals and value) and not (
            key.startswith("-") and not equals
        ):
            raise InvalidValue(
                f"an attribute is set by +key=value, deleted by -key, not by {shown(item)!r}"
            )
        if key in changes:
            raise InvalidValue(f"attribute {shown(key)!r} stands there twice: give it once")
        changes[key] = value
    return changes


def changed_attributes(
    known: Mapping[str, Attribute], current: Mapping[str, str] | None, changes: Mapping[str, str]
) -> dict[str, str]:
    """Return the attributes after some changes; `current` is None where the owner is created.

    Raises:
        InvalidValue: a change has no sign, is of an unknown or unchangeable attribute, gives a
            value that it cannot have, or deletes what is not there.
    """
    if not changes:
        return dict(current or {})
    result = dict(current or {})
    if len({key[1:] for key in changes}) < len(changes):
        raise InvalidValue("an attribute is both set and deleted: do one of them")
    for key, value in changes.items():
        sign, name = key[:1], key[1:]
        attribute = _known(known, sign, name)
        if current is not None and not attribute.changeable:
            raise InvalidValue(f"attribute {name} cannot be changed: it is given at creation")
        if sign == "+":
            attribute.check(name, value)
            result[name] = value
        elif current is None or name not in current:
            raise InvalidValue(f"attribute {name} is not set, so it cannot be deleted")
        else:
            del result[name]
    return result


def _known(known: Mapping[str, Attribute], sign: str, name: str) -> Attribute:
    """Find what a change is about."""
    if sign not in {"+", "-"}:
        raise InvalidValue(f"attribute {shown(sign + name)!r} has no sign: write +key or -key")
    attribute = known.get(name)
    if attribute is None:
        raise InvalidValue(
            f"there is no attribute {shown(name)!r}: give one of {', '.join(sorted(known))}"
        )
    return attribute
