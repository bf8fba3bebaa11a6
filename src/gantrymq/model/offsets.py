"""How far groups have read: keys of the offset table, and the version that says a table changed."""

from typing import NamedTuple

import msgspec

from gantrymq.errors import InvalidValue


class DataVersion(msgspec.Struct, frozen=True, order=True):
    """The version of a table; peers fetch the table again when any of the three numbers differs.

    `state_version` exists since 5.0 and is compared first when the newer of two is wanted.
    """

    state_version: int = 0
    timestamp_ms: int = 0
    counter: int = 0

    def next(self, now_ms: int, state_version: int | None = None) -> "DataVersion":
        """Return the version after one more change."""
        state = self.state_version if state_version is None else state_version
        return DataVersion(state, now_ms, self.counter + 1)


class OffsetKey(NamedTuple):
    """Whose offsets: the text form is `topic@group`."""

    topic: str
    group: str

    @property
    def text(self) -> str:
        """Return the key as offset tables and statistics spell it."""
        return f"{self.topic}@{self.group}"

    @classmethod
    def parse(cls, text: str) -> "OffsetKey":
        """Split at the only `@`: neither a topic nor a group may contain one.

        Raises:
            InvalidValue: there is none, there are several, or a side is empty.
        """
        topic, at, group = text.partition("@")
        if not (topic and at and group) or "@" in group:
            raise InvalidValue(f"an offset key is topic@group, not {text[:64]!r}")
        return cls(topic, group)
