"""The exceptions that gantrymq raises, from the root down.

Two questions decide which one it is. *Whose fault?* `ProtocolError` and `RecordError` say that
bytes from outside broke the rules; `InvalidValue` says that the caller's own argument did. *What
next?* a `ResponseError` (in `gantrymq.wire.response_errors`, one class for each response code)
carries `retriable`.
"""

from __future__ import annotations


class GantryError(Exception):
    """Anything that gantrymq raises on purpose."""


class ProtocolError(GantryError):
    """Bytes from a peer that are not the protocol; the connection they came on is of no more use.

    `field` names the place in the frame (`frame.length`, `header.extFields.queueId`, `body.topic`),
    `problem` says what is wrong with it and with which value.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem

    def __reduce__(self) -> tuple[type[ProtocolError], tuple[str, str]]:
        """Let the error cross a process border, as Spark's workers need."""
        return type(self), (self.field, self.problem)


class RecordError(ProtocolError):
    """A stored message, batch or property string that does not have the layout it must have."""


class InvalidValue(GantryError, ValueError):
    """An argument that cannot be: a name, a number out of range, a value too large."""
