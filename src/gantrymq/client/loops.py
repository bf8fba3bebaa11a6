"""New event loops for clients that have a thread of their own."""

from __future__ import annotations

import asyncio

from gantrymq.transport.loop import uvloop_factory


def new_loop() -> asyncio.AbstractEventLoop:
    """Return a loop that nobody runs yet: uvloop's where it can be had, else asyncio's own."""
    return (uvloop_factory() or asyncio.new_event_loop)()
