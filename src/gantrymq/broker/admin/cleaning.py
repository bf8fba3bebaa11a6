"""Cleaning by hand: what has expired goes at the next looks of the cleaner, whatever the hour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.broker.answers import answer
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.response_errors import SystemFailure

if TYPE_CHECKING:
    from gantrymq.broker.admin.parts import AdminParts
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Handler, Peer


class CleaningRequests:
    """Has the store cleaned."""

    def __init__(self, parts: AdminParts) -> None:
        self._store = parts.store

    @property
    def handlers(self) -> dict[int, Handler]:
        """Return what is handled here."""
        return {
            RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: self.queues,
            RequestCode.DELETE_EXPIRED_COMMITLOG: self.log,
        }

    def queues(self, request: Command, _peer: Peer) -> Answer:
        """Look now for queue files whose messages are gone."""
        self._store.cleaner.clean()
        self._check()
        return answer(request)

    def log(self, request: Command, _peer: Peer) -> Answer:
        """Delete expired log files, at any hour."""
        self._store.cleaner.order()
        self._store.cleaner.clean()
        self._check()
        return answer(request)

    def _check(self) -> None:
        trouble = self._store.cleaner.last_error
        if trouble is not None:
            raise SystemFailure(f"{trouble}; it is tried again by itself")
