"""What the handlers of one name server share. One event loop owns all of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from gantrymq.wire.command import Command
from gantrymq.wire.peer import Peer

if TYPE_CHECKING:
    from gantrymq.clock import Clock
    from gantrymq.namesrv.answers import RouteAnswers
    from gantrymq.namesrv.kv import KvTables
    from gantrymq.namesrv.reach import Reach
    from gantrymq.namesrv.routes import RouteTable
    from gantrymq.namesrv.settings import NamesrvSettings

Function: TypeAlias = Callable[[Command, Peer], Command]
"""Handles one kind of request. It may raise ContentError, InvalidValue or a ResponseError."""


@dataclass(slots=True)
class State:
    """The parts of a name server."""

    table: RouteTable
    kv: KvTables
    reach: Reach
    answers: RouteAnswers
    settings: NamesrvSettings
    clock: Clock
    started: float
    """Monotonic seconds when it began to serve."""
    save_settings: Callable[[bytes], None]
    brokers: dict[int, Peer] = field(default_factory=dict)
    """Connections by which brokers registered, until they close."""
