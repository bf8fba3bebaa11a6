"""Answers to requests, whichever form the request was decoded into.

The two hot requests come from the kernel as tuples, all others as commands. Both know the number
that the answer repeats and the header codec that the sender reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.settling import problem

if TYPE_CHECKING:
    from collections.abc import Mapping

_RESPONSE: Final = 1


class Asked(Protocol):
    """What an answer needs to know of its request."""

    @property
    def opaque(self) -> int:
        """Return the number that the answer repeats."""
        ...

    @property
    def serialize_type(self) -> int:
        """Return the header codec of the sender."""
        ...


def answer(
    asked: Asked,
    code: int = ResponseCode.SUCCESS,
    fields: Mapping[str, str] | None = None,
    body: bytes = b"",
    *,
    remark: str | None = None,
) -> Command:
    """Return the response to a request."""
    return Command(
        code=code,
        opaque=asked.opaque,
        flag=_RESPONSE,
        remark=remark,
        fields=dict(fields or {}),
        body=body,
        serialize_type=asked.serialize_type,
    )


def refusal(asked: Asked, error: Exception, fields: Mapping[str, str] | None = None) -> Command:
    """Return the response that says what went wrong, as `wire.settling` puts it."""
    code, remark = problem(error)
    return answer(asked, code, fields, remark=remark)
