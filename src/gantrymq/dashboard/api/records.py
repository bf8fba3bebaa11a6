"""The audit log, for those who may see it."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.dashboard.calls import Endpoint, Page, Rows
from gantrymq.model.roles import Role

if TYPE_CHECKING:
    from gantrymq.dashboard.audit import Entry
    from gantrymq.dashboard.calls import Call

LOOKED_AT_MAX: Final = 100_000


async def list_entries(call: Call) -> object:
    """Return one page of entries, newest first."""
    page, wanted = Page.of(call), (call.maybe("filter") or "").lower()
    log = call.parts.audit

    def read() -> list[Entry]:
        return [
            each
            for each in islice(log.newest_first(), LOOKED_AT_MAX)
            if wanted in f"{each.user} {each.action} {each.target} {each.outcome}".lower()
        ]

    found = await asyncio.to_thread(read)
    begin = (page.number - 1) * page.rows
    told = Rows(len(found), page)
    told.rows = [msgspec.structs.asdict(each) for each in found[begin : begin + page.rows]]
    return told.data()


ENDPOINTS: Final = (Endpoint("GET", "/api/audit", Role.ADMIN, list_entries),)
