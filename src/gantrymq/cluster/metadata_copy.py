"""The tables beside the log on a slave: asked of the master at the start and on a timer.

Topics, groups, consumer offsets, delay progress and (of a master that has them) request modes, each
in Apache's own request. One that fails holds up no other and is asked for again with the next
round; what did not change is not taken over, so that nothing is written for it.

Agrees with SlaveSynchronize, which waits for 3 s first and merges offsets where this replaces them.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from gantrymq.errors import GantryError
from gantrymq.wire.bodies.assignment import REQUEST_MODE_TABLE
from gantrymq.wire.bodies.group import GROUP_TABLE
from gantrymq.wire.bodies.offsets import CONSUMER_OFFSETS, DELAY_OFFSETS
from gantrymq.wire.bodies.topic import TOPIC_TABLE
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.broker.config_saving import ConfigSaver
    from gantrymq.broker.journal.journal import Journal
    from gantrymq.broker.tables import Tables
    from gantrymq.transport.requester import Connections

log = logging.getLogger(__name__)

INTERVAL_S: Final = 10.0
"""Between two rounds, as in Apache's slave."""
QUICK_INTERVAL_S: Final = 1.0
"""The same while all tables together have `QUICK_BYTES_MAX` at most: that costs next to nothing,
and a consumer that moves to this slave finds its topic and its last second's offset."""
QUICK_BYTES_MAX: Final = 256 << 10
ANSWER_S_MAX: Final = 3.0


class MetadataCopy:
    """Keeps a slave's tables like its master's. Owned by the event loop's thread."""

    def __init__(
        self, tables: Tables, saver: ConfigSaver, connections: Connections, journal: Journal
    ) -> None:
        self._tables = tables
        self._journal = journal
        self._saver = saver
        self._connections = connections
        self._master: str | None = None
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._seen: dict[int, bytes] = {}
        """What the last answers said."""
        self._failing: set[int] = set()
        self.rounds = 0
        """Rounds in which every table of this master came."""

    def follow(self, address: str | None) -> None:
        """Copy the tables of the broker at `host:port` from now on."""
        if address != self._master:
            self._master = address
            self._seen.clear()
            self.rounds = 0
            self._changed.set()

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.get_running_loop().create_task(self._keep())

    async def stop(self) -> None:
        """Copy no more."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _keep(self) -> None:
        while True:
            self._changed.clear()
            if self._master is not None:
                await self.copy(self._master)
            with suppress(TimeoutError):
                async with asyncio.timeout(None if self._master is None else self._pause_s):
                    await self._changed.wait()

    @property
    def _pause_s(self) -> float:
        is_small = sum(map(len, self._seen.values())) <= QUICK_BYTES_MAX
        return QUICK_INTERVAL_S if is_small else INTERVAL_S

    async def copy(self, master: str) -> bool:
        """Ask for every table once; tell whether all of them came."""
        takers: dict[int, Callable[[bytes], None]] = {
            RequestCode.GET_ALL_TOPIC_CONFIG: self._take_topics,
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: self._take_groups,
            RequestCode.GET_ALL_CONSUMER_OFFSET: self._take_offsets,
            RequestCode.GET_ALL_DELAY_OFFSET: self._take_delays,
            RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: self._take_modes,
        }
        came = [await self._copy_one(master, code, take) for code, take in takers.items()]
        self.rounds += all(came) and master == self._master
        return all(came)

    async def _copy_one(self, master: str, code: int, take: Callable[[bytes], None]) -> bool:
        asked_at = self._journal.reader.position
        try:
            answer = await self._connections.ask(master, Command.request(code, 0), ANSWER_S_MAX)
            if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                return True  # 4.9 has no request modes
            if answer.code != ResponseCode.SUCCESS:
                return self._failed(master, code, f"it answers {answer.code}: {answer.remark}")
            if answer.body and self._seen.get(code) != answer.body and master == self._master:
                take(answer.body)
                self._seen[code] = bytes(answer.body)
                # What the master has written since it was asked may be younger than its answer.
                self._journal.again_from(asked_at)
        except GantryError as error:
            return self._failed(master, code, str(error))
        self._failing.discard(code)
        return True

    def _failed(self, master: str, code: int, why: str) -> bool:
        if code not in self._failing:  # once, until it comes
            log.warning("table %d of master %s did not come: %s", code, master, why)
        self._failing.add(code)
        return False

    def _take_topics(self, body: bytes) -> None:
        table = TOPIC_TABLE.decode(body)
        if table.data_version != self._tables.topics.data_version:
            self._tables.topics.adopt(table)
            self._saver.soon(self._tables.topics)

    def _take_groups(self, body: bytes) -> None:
        table = GROUP_TABLE.decode(body)
        if table.data_version != self._tables.groups.data_version:
            self._tables.groups.adopt(table)
            self._saver.soon(self._tables.groups)

    def _take_offsets(self, body: bytes) -> None:
        self._tables.offsets.adopt(CONSUMER_OFFSETS.decode(body))
        self._saver.soon(self._tables.offsets)

    def _take_delays(self, body: bytes) -> None:
        self._tables.delays.adopt(DELAY_OFFSETS.decode(body))
        self._saver.soon(self._tables.delays)

    def _take_modes(self, body: bytes) -> None:
        self._tables.modes.adopt(REQUEST_MODE_TABLE.decode(body))
        self._saver.soon(self._tables.modes)
