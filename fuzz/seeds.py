"""Good inputs to begin with: what Apache RocketMQ and its clients really sent and stored.

One input of each sort is enough (a code, a direction, a set of fields; a topic), so a target has a
few hundred seeds and not some ten thousand.
"""

from __future__ import annotations

import re
import struct
import tarfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fuzz import more_seeds
from fuzz.keep import kept
from fuzz.targets import CODECS
from gantrymq.cluster.frames import encode_head, encode_hello, encode_report
from gantrymq.kernel import kernel
from gantrymq.wire.bodies import BODIES, CONFIG_FILES, Bodies
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.frame import FrameParser
from support.filter_cases import CASES
from support.flips import Sample
from support.golden import STORE, STORE_LABELS, WIRE_FILES, Entry, exchanges, wire_entries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gantrymq.kernel.values import Record
    from gantrymq.wire.command import Command

SEED_BYTES_MAX: Final = 1 << 13
REGRESSIONS: Final = Path(__file__).parent / "regressions"
CONF: Final = Path(__file__).parents[1] / "conf"


@cache
def _exchanged() -> tuple[tuple[Entry, Command], ...]:
    """Return one small frame of each sort, with what it says."""
    sorts: dict[object, Entry] = {}
    for path in WIRE_FILES:
        for entry in wire_entries(path):
            fields = entry.header.get("extFields")
            names = tuple(sorted(fields)) if isinstance(fields, dict) else ()
            sort = (entry.code, entry.is_request, entry.serializer, entry.body_bytes > 0, names)
            best = sorts.get(sort)
            if best is None or len(entry.frame) < len(best.frame):
                sorts[sort] = entry
    small = [entry for entry in sorts.values() if len(entry.frame) <= SEED_BYTES_MAX]
    return tuple((entry, FrameParser().feed(entry.frame)[0]) for entry in small)


@cache
def _records() -> tuple[tuple[bytes, Record], ...]:
    """Return stored records: for each store and topic the first and, if smaller, a later one."""
    found: dict[tuple[str, bytes], tuple[bytes, Record]] = {}
    for label in STORE_LABELS:
        for _, log in _store_files(label, "/commitlog/"):
            at, end = 0, kernel.scan_records(log, 0, len(log), -1, True, 1 << 20).end
            while at < end:
                record, behind = kernel.decode_record(log, at, end, True)
                key = (label, record.topic)
                if key not in found or behind - at < len(found[key][0]):
                    found[key] = (log[at:behind], record)
                at = behind
    return tuple(pair for pair in found.values() if len(pair[0]) <= SEED_BYTES_MAX)


def _store_files(label: str, folder: str) -> Iterator[tuple[str, bytes]]:
    """Return name and content of the files in one folder of a golden store."""
    with tarfile.open(STORE / label / "store.tar.gz") as archive:
        for member in archive:
            if member.isfile() and folder in member.name:
                content = archive.extractfile(member)
                if content is not None:
                    yield member.name.rpartition("/")[2], content.read()


def _frames() -> list[bytes]:
    frames = [entry.frame for entry, _ in _exchanged()]
    return frames + [b"".join(frames[at : at + 3]) for at in range(0, len(frames), 20)]


def _headers() -> list[bytes]:
    seeds = []
    for entry, command in _exchanged():
        (head,) = struct.unpack_from(">I", entry.frame, 4)
        raw = entry.frame[8 : 8 + (head & 0xFFFFFF)]
        seeds.append(bytes([command.serialize_type]) + raw)
    return seeds


def _bodies() -> list[bytes]:
    """Return the smallest body of each kind and client, behind the number of its kind."""
    found: dict[tuple[str, int], bytes] = {}

    def offer(client: str, codec: object, raw: bytes) -> None:
        if codec in CODECS and raw:
            key = (client, CODECS.index(codec))
            found[key] = min(raw, found.get(key, raw), key=len)

    for path in WIRE_FILES:
        for request, answer in exchanges(wire_entries(path)):
            kinds = BODIES.get(request.code, Bodies())
            offer(path.parent.name, kinds.request, request.frame[-request.body_bytes :])
            if answer is not None and answer.code == 0:
                offer(path.parent.name, kinds.response, answer.frame[-answer.body_bytes :])
    for label in STORE_LABELS:
        for name, content in _store_files(label, "/config/"):
            offer(label, CONFIG_FILES.get(name), content)
    small = [(kind, raw) for (_, kind), raw in found.items() if len(raw) <= SEED_BYTES_MAX]
    return [kind.to_bytes(2) + raw for kind, raw in small]


def _property_strings() -> list[bytes]:
    sent = [
        text.encode()
        for _, command in _exchanged()
        for name in ("properties", "i")
        if (text := command.fields.get(name))
    ]
    return sent + [record.properties for _, record in _records() if record.properties]


def _batches() -> list[bytes]:
    return [
        command.body
        for entry, command in _exchanged()
        if entry.is_request and command.code == RequestCode.SEND_BATCH_MESSAGE
    ]


def _record_ranges() -> list[bytes]:
    raw = [data for data, _ in _records()]
    blank = struct.pack(">iI", 64, 0xCBD43194)
    return raw + [b"".join(raw[at : at + 2]) + blank for at in range(0, len(raw), 20)]


def _links() -> list[bytes]:
    """Return what slaves and masters say on the replication port."""
    reports = [encode_report(offset) for offset in (0, 100, 500, 1000, 2**62)]
    piece = encode_head(0, 100) + bytes(100)
    return [
        *reports,
        reports[1] + reports[2],
        encode_hello(3, 2) + reports[0],
        encode_head(0, 0),
        piece,
        piece + encode_head(100, 50) + bytes(50),
    ]


def _settings() -> list[bytes]:
    """Return the settings files that there are, every setting taken out of its comment."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(CONF.rglob("*.conf"))]
    lines = [line.removeprefix("#").encode() for text in texts for line in text.splitlines()]
    named = [line for line in lines if re.fullmatch(rb"[A-Za-z.]+=.*", line)]
    return [b"\n".join(named[at : at + 20]) for at in range(0, len(named), 20)] + named[::7]


def _store_changes() -> list[bytes]:
    """Return every file of the small stores behind the two bytes that choose it."""
    found = []
    for number, clean in enumerate((True, False)):
        files = Sample(clean=clean).files
        found += [bytes([number, at]) + files[path] for at, path in enumerate(sorted(files))]
    return found


SEEDS: Final[dict[str, Callable[[], list[bytes]]]] = {
    "frame": _frames,
    "header": _headers,
    "body": _bodies,
    "properties": _property_strings,
    "batch": _batches,
    "record": _record_ranges,
    "broker": _frames,
    "namesrv": _frames,
    "replication": _links,
    "sql92": lambda: [case.expression.encode() for case in CASES],
    "settings": _settings,
    "store": _store_changes,
    "arguments": more_seeds.arguments,
    "metrics": more_seeds.metrics,
    "dashboard": more_seeds.dashboard,
    "tls": more_seeds.hellos,
    "accounts": more_seeds.accounts,
    "users": more_seeds.users,
    "declared": more_seeds.declared,
    "config": lambda: more_seeds.config(_store_files),
}


def for_target(name: str) -> list[bytes]:
    """Return the seeds of a target, what was found with it once, and what is kept of long runs."""
    found = {path.read_bytes() for path in sorted((REGRESSIONS / name).glob("*"))}
    found |= {*kept(name), *SEEDS[name]()}
    return sorted(found, key=lambda seed: (len(seed), seed))
