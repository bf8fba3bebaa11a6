"""Tables as slaves copy them: consumer offsets, delay offsets, request modes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from gantrymq.broker.admin.parts import body_answer
from gantrymq.wire.bodies.assignment import REQUEST_MODE_TABLE
from gantrymq.wire.codes import RequestCode

if TYPE_CHECKING:
    from gantrymq.broker.admin.parts import AdminParts
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Handler, Peer


class CopyRequests:
    """Answers with whole tables."""

    def __init__(self, parts: AdminParts) -> None:
        self._tables = parts.tables

    @property
    def handlers(self) -> dict[int, Handler]:
        """Return what is handled here."""
        return {
            RequestCode.GET_ALL_CONSUMER_OFFSET: self.offsets,
            RequestCode.GET_ALL_DELAY_OFFSET: self.delays,
            RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: self.modes,
        }

    async def offsets(self, request: Command, _peer: Peer) -> Answer:
        """Answer all committed offsets; they are encoded on a thread, since they may be many."""
        body = await asyncio.to_thread(self._tables.offsets.snapshot())
        return body_answer(request, body, hint="; gantrymq slaves copy the file")

    def delays(self, request: Command, _peer: Peer) -> Answer:
        """Answer how far each delay level is."""
        return body_answer(request, self._tables.delays.encode())

    def modes(self, request: Command, _peer: Peer) -> Answer:
        """Answer which groups pop which topics."""
        return body_answer(request, REQUEST_MODE_TABLE.encode(self._tables.modes.table()))
