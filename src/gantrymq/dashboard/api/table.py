"""Every method and path below `/api` that needs a login, with the role that may use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.dashboard.api import (
    brokers,
    configuration,
    dead_letters,
    groups,
    login,
    members,
    messages,
    moving,
    overview,
    pipelines,
    records,
    topics,
)

if TYPE_CHECKING:
    from gantrymq.dashboard.calls import Endpoint

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    *login.ENDPOINTS,
    *overview.ENDPOINTS,
    *brokers.ENDPOINTS,
    *configuration.ENDPOINTS,
    *topics.ENDPOINTS,
    *groups.ENDPOINTS,
    *members.ENDPOINTS,
    *moving.ENDPOINTS,
    *messages.ENDPOINTS,
    *dead_letters.ENDPOINTS,
    *pipelines.ENDPOINTS,
    *records.ENDPOINTS,
)
