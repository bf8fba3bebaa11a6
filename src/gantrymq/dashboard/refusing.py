"""How the dashboard says no: an error with its status, as JSON."""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.responses import Response

from gantrymq.admin.deleting import InUse
from gantrymq.admin.offsets import NotMoved
from gantrymq.admin.protected import Untouchable
from gantrymq.admin.session import NoSuchTarget
from gantrymq.errors import GantryError, InvalidValue
from gantrymq.wire.response_errors import (
    ConsumerNotOnline,
    NoMessage,
    QueryNotFound,
    SubscriptionGroupNotExist,
    TopicNotExist,
)

STATUSES: Final[tuple[tuple[type[GantryError], int], ...]] = (
    (Untouchable, 409), (InUse, 409), (NotMoved, 409), (ConsumerNotOnline, 409),
    (TopicNotExist, 404), (NoMessage, 404), (QueryNotFound, 404),
    (SubscriptionGroupNotExist, 404), (NoSuchTarget, 404), (InvalidValue, 400),
)  # fmt: skip
ELSEWHERE: Final = 502
"""Whatever else is wrong is wrong with the cluster, and not with the question."""


class Refused(GantryError):
    """The dashboard itself says no."""

    def __init__(self, status: int, kind: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.kind = kind


def error_response(error: GantryError) -> Response:
    """Return an error as JSON with its status."""
    if isinstance(error, Refused):
        status, kind = error.status, error.kind
    else:
        known = (code for cls, code in STATUSES if isinstance(error, cls))
        status, kind = next(known, ELSEWHERE), type(error).__name__
    text = "; ".join([*str(error).splitlines(), *getattr(error, "__notes__", [])]) or kind
    told = {"error": {"kind": kind, "text": text}}
    return Response(msgspec.json.encode(told), status_code=status, media_type="application/json")
