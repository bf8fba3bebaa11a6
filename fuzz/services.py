"""Targets beyond single parsers: whole services, the replication link, settings and stores.

Each takes bytes as a port or a file would give them to it, and returns the kind of what happened.
What a peer may cause is an answer, a closed connection (`ProtocolError`, `LinkBroken`) or a refusal
with a sentence (`GantryError`); anything else is a finding. So is an error that nobody foresaw and
that servers turn into an answer for their peer's sake: they log it.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from functools import cache
from inspect import iscoroutine
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fuzz.ports import untimed
from fuzz.twins import DisagreementError
from gantrymq.broker.filter.compiled import compile_filter
from gantrymq.broker.filter.errors import FilterError
from gantrymq.cluster.frames import FrameReader, LinkBroken
from gantrymq.cluster.master_link import LinkRules, MasterLink
from gantrymq.cluster.slave_link import SlaveLink
from gantrymq.errors import GantryError, InvalidValue, ProtocolError
from gantrymq.node.config import read_broker_config, read_namesrv_settings, settings_text
from gantrymq.wire.bodies.settings import SETTINGS
from gantrymq.wire.command import Command
from gantrymq.wire.frame import FrameParser
from support.broker_rig import BrokerRig
from support.client_peers import FakePeer
from support.flips import Sample
from support.namesrv import FakePeer as NamesrvPeer
from support.namesrv import Site
from support.replicas import PlainLog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gantrymq.wire.peer import Pending

INPUTS_A_LIFE: Final = 500
"""A service that has taken so many inputs makes room for a new one: state must stay small."""
LOG_BYTES: Final = 4096
RULES: Final = LinkRules(batch_bytes_max=100)
HOME: Final = Path("/home-of-nobody")
PROPERTIES: Final = {"colour": "red", "n": "7", "TAGS": "a", "x": "1.5e3", "empty": ""}


class _Faults(logging.Handler):
    """Keeps the errors that were logged with the place where they came from."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        if record.exc_info:
            self.seen.append(record)


@contextmanager
def no_faults() -> Iterator[None]:
    """Fail for an error of ours that became an answer."""
    faults, log = _Faults(), logging.getLogger("gantrymq")
    log.addHandler(faults)
    try:
        yield
    finally:
        log.removeHandler(faults)
    for record in faults.seen:
        error = record.exc_info[1] if record.exc_info else None
        raise DisagreementError(f"{record.getMessage()}: {error!r}") from error


class _Lives:
    """A service of a kind, begun anew now and then."""

    def __init__(self) -> None:
        self._count = 0
        self._broker: BrokerRig | None = None
        self._site: Site | None = None

    def broker(self) -> BrokerRig:
        """Return a broker with a few messages."""
        self._count += 1
        if self._broker is None or self._count % INPUTS_A_LIFE == 0:
            rig = BrokerRig(property_filter=True, recalls=True)
            rig.store_some(b"one", b"two", tags="a")
            self._broker = rig
        return self._broker

    def site(self) -> Site:
        """Return a name server."""
        self._count += 1
        if self._site is None or self._count % INPUTS_A_LIFE == 0:
            self._site = Site()
        return self._site


_lives: Final = _Lives()


def broker(data: bytes) -> str:
    """Take what a connection of a broker receives, and let it be answered."""
    with no_faults():
        return _broker(data)


def _broker(data: bytes) -> str:
    rig = _lives.broker()
    peer = FakePeer(1)
    codes: list[int] = []
    position = 0
    try:
        while position < len(data):
            end, answers, _ = rig.service.take(data, position, len(data), peer)
            codes += [_code(rig, pending) for pending in answers]
            if end == position:
                break
            position = end
        kind = "ok"
    except ProtocolError as error:
        kind = type(error).__name__
    rig.turns()
    rig.service.closed(peer)
    rig.settle()
    return f"{kind} {sorted(set(codes))[:4]}"


def _code(rig: BrokerRig, pending: Pending) -> int:
    """Return the code of an answer that is there; -1 of one that takes its time, or of bytes."""
    made = rig.loop.create_task(pending) if iscoroutine(pending) else pending
    rig.turns()
    if isinstance(made, asyncio.Future):
        if not made.done():
            made.cancel()
            return -1
        if made.exception() is not None:
            raise DisagreementError(f"a request failed: {made.exception()!r}")
        made = made.result()
    return made.code if isinstance(made, Command) else -1


def namesrv(data: bytes) -> str:
    """Take what a connection of a name server receives."""
    parser = FrameParser()
    codes = set()
    for command in parser.feed(data):
        answer = _lives.site().server.handle(command, NamesrvPeer())
        codes.add(-1 if answer is None else getattr(answer, "code", -2))
    return f"{type(parser.error).__name__} {sorted(codes)[:4]}"


def replication(data: bytes) -> str:
    """Take what either side of the replication port receives, whole and in pieces."""
    kinds = []
    for size in (len(data) or 1, 3):
        log = PlainLog(1000)
        log.append(0, bytes(range(250)) * 4)
        link = MasterLink(log, 0.0)
        kind = "ok"
        try:
            for at in range(0, len(data), size):
                confirmed = link.received(data[at : at + size], 0.0)
                if confirmed is not None and confirmed > log.end:
                    raise DisagreementError(f"{confirmed} was confirmed of {log.end}")
        except LinkBroken:
            kind = "broken"
        kinds.append(f"master {kind} {link.has_begun}")
    if kinds[0] != kinds[1]:
        raise DisagreementError(f"reports differ when they come in pieces: {kinds}")
    return f"{kinds[0]} {_copied(data)} {_framed(data)}"


def _copied(data: bytes) -> str:
    log = PlainLog(LOG_BYTES)
    link = SlaveLink(log, 0.0)
    try:
        for at in range(0, len(data), 1000):
            piece = data[at : at + 1000]
            link.space()[: len(piece)] = piece
            link.received(len(piece), 0.0)
    except (LinkBroken, InvalidValue) as error:
        return f"slave {type(error).__name__}"
    return f"slave {log.end > 0}"


def _framed(data: bytes) -> str:
    reader, count = FrameReader(), 0
    space = reader.space()
    room = min(len(space), len(data))
    space[:room] = data[:room]
    try:
        for frame in reader.feed(room):
            count += len(frame.body) > 0
    except LinkBroken:
        return "frames broken"
    return f"frames {min(count, 3)}"


def sql92(data: bytes) -> str:
    """Read a filter and try it."""
    try:
        chosen = compile_filter(data.decode(errors="replace"))
    except FilterError as error:
        return "".join(letter for letter in str(error) if not letter.isdigit())[:60]
    return f"{chosen.matches(PROPERTIES)} {chosen.matches({})} {bool(chosen.ignored)}"


def settings(data: bytes) -> str:
    """Read a file of settings, as a broker's, a name server's, and after writing it."""
    try:
        found = dict(SETTINGS.decode(data))
    except ProtocolError as error:
        return type(error).__name__
    if dict(SETTINGS.decode(settings_text(found).encode())) != found:
        raise DisagreementError("settings differ when they are written and read")
    kinds = []
    for read in (lambda: read_broker_config(found, HOME), lambda: read_namesrv_settings(found)):
        try:
            read()
            kinds.append("ok")
        except GantryError as error:
            kinds.append(type(error).__name__)
    return f"{min(len(found), 3)} {kinds}"


@cache
def _sample(*, clean: bool) -> Sample:
    return Sample(clean=clean)


def store(data: bytes) -> str:
    """Open a store of which one file has other content: two bytes say which, the rest is it."""
    if len(data) < 2:
        return "nothing"
    with untimed():
        sample = _sample(clean=data[0] % 2 == 0)
    paths = sorted(sample.files)
    path = paths[data[1] % len(paths)]
    found = sample.outcome(path, lambda _: data[2:])
    if path.parent.name == "commitlog" and "body" in found.wrong:
        raise DisagreementError("a body was served that nobody stored")
    state = "refused" if found.refused else f"{min(len(found.missing), 2)} {found.wrong[:1]}"
    return f"{path.name} {state}"


TARGETS: Final = {
    "broker": broker,
    "namesrv": namesrv,
    "replication": replication,
    "sql92": sql92,
    "settings": settings,
    "store": store,
}
