"""The exceptions that gantrymq raises, from the root down.

    GantryError
    ├── ProtocolError        the frame cannot be read            the connection is closed
    │   └── ContentError     the frame can, what is in it not    code 1 is answered, and on it goes
    │       └── RecordError  a message among it cannot           the same
    ├── InvalidValue         the caller's own argument           nothing was written
    └── ResponseError        a peer's answer (`wire.response_errors`, one class for each code)

Texts are for logs and for the remark of an answer. What a peer wrote stands in them in part at
most: `shown` cuts a value, and the errors themselves have a bound.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from gantrymq.limits import ERROR_TEXT_CHARACTERS_MAX, SHOWN_CHARACTERS_MAX

_BYTE_MAX: Final = 0xFF
_OBEYED: Final = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
_UNSEEN: Final = re.compile(f"[{_OBEYED}]")
_UNSEEN_IN_LINES: Final = re.compile(f"[\n{_OBEYED}]")


def shown(text: str, characters_max: int = SHOWN_CHARACTERS_MAX) -> str:
    """Return a peer's text as an error may repeat it: a short one whole, else its beginning."""
    return text if len(text) <= characters_max else text[: characters_max - 1] + "…"


def visible(text: str, *, lines: bool = True) -> str:
    """Return a text without anything that a terminal would obey, or that turns text around.

    Whoever sends a message or gives a client a name may write to an operator's terminal, and to the
    log. With `lines` line breaks stay.
    """
    return (_UNSEEN if lines else _UNSEEN_IN_LINES).sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code <= _BYTE_MAX else f"\\u{code:04x}"


class GantryError(Exception):
    """Anything that gantrymq raises on purpose."""

    retriable: ClassVar[bool] = False
    """Whether the same call may well succeed a little later, or with another broker."""


class ProtocolError(GantryError):
    """Bytes from a peer that are not the protocol.

    Raised as this class itself, it says that a frame's lengths or its header cannot be read. Then
    nobody knows where the next frame begins or which request to answer: a server closes the
    connection without an answer, a client closes it and fails all that waits for one.

    `field` names the place in the frame (`frame.length`, `header.extFields.queueId`, `body.topic`),
    `problem` says what is wrong with it and with which value.
    """

    def __init__(self, field: str, problem: str) -> None:
        field = shown(field, ERROR_TEXT_CHARACTERS_MAX)
        problem = shown(problem, ERROR_TEXT_CHARACTERS_MAX)
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem

    def __reduce__(self) -> tuple[type[ProtocolError], tuple[str, str]]:
        """Let the error cross a process border, as Spark's workers need."""
        return type(self), (self.field, self.problem)


class ContentError(ProtocolError):
    """A readable frame with an ext field or a body that is missing or not what it must be.

    It concerns one command only. A server answers SYSTEM_ERROR (1) with this text as the remark,
    unless the request is oneway, and keeps the connection; a client fails the one call.
    """


class RecordError(ContentError):
    """A stored message, batch or property string that does not have the layout it must have.

    In a request it is answered like any `ContentError`. From a file it says that the file is
    damaged, which is the store's to judge.
    """


class InvalidValue(GantryError, ValueError):
    """An argument that cannot be: a name, a number out of range, a value too large."""
