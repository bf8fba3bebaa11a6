"""Reading the golden data: conversations and stored messages recorded from Apache RocketMQ.

`tests/golden/README.md` says what the files hold. Nothing here decodes a frame with the code under
test.
"""

from __future__ import annotations

import base64
import gzip
import tarfile
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

GOLDEN = Path(__file__).parent.parent / "golden"
WIRE = GOLDEN / "wire"
STORE = GOLDEN / "store"

HA = GOLDEN / "ha"

FRAMES: Final = 7000
"""What the conversations hold together; a file that is cut short must not go unnoticed."""
WIRE_FILE_COUNT: Final = 368
STORE_LABELS: Final = (
    "apache-4.9.7-clean",
    "apache-4.9.7-cqext-sql92",
    "apache-4.9.7-killed",
    "apache-4.9.7-torn",
    "apache-4.9.7-zero-length-file",
    "apache-5.5.0-clean",
    "apache-5.5.0-killed",
    "apache-5.5.0-pop-v2records",
    "apache-5.5.0-torn",
)
"""By name, so that the tests of a store that is missing fail rather than not exist."""
STORE_FILES: Final = ("broker.conf", "manifest.json", "messages.jsonl.gz", "store.tar.gz")
HA_CONVERSATIONS: Final = tuple(
    f"ha-{what}-{version}"
    for what in ("new-empty-slave", "slave-rejoins")
    for version in ("4.9.7", "5.5.0")
)
HA_FILES: Final = (
    "facts-4.9.7.json",
    "facts-5.5.0.json",
    *(
        f"{conversation}{suffix}"
        for conversation in HA_CONVERSATIONS
        for suffix in (".json", ".master-to-slave.bin", ".slave-to-master.bin")
    ),
)


def wire_files(folder: Path) -> list[Path]:
    """Return every recorded conversation in order.

    Raises FileNotFoundError unless they are those that `index.json` lists, all of them.
    """
    found = sorted(folder.glob("*/*.jsonl"))
    listed = msgspec.json.decode((folder / "index.json").read_bytes(), type=dict[str, object])
    names = {path.relative_to(folder).as_posix() for path in found}
    if names != listed.keys() or len(found) != WIRE_FILE_COUNT:
        differ = sorted(names ^ listed.keys())[:3]
        raise FileNotFoundError(
            f"{folder}: {len(found)} conversations, {len(listed)} listed,"
            f" {WIRE_FILE_COUNT} expected; not in both: {differ}"
        )
    return found


WIRE_FILES: Final = wire_files(WIRE)
"""Every recorded conversation."""


class Entry(NamedTuple):
    """One recorded frame with what the recorder understood of it."""

    line: int
    direction: str
    """`c2s` and `s2c-req` are requests, `s2c` and `c2s-resp` their answers."""
    connection: int
    peer: str
    code: int
    opaque: int
    oneway: bool
    serializer: str
    header: dict[str, object]
    body_bytes: int
    frame: bytes

    @property
    def is_request(self) -> bool:
        """Say whether somebody asks here."""
        return self.direction in {"c2s", "s2c-req"}

    @property
    def exchange(self) -> tuple[int, int, bool]:
        """Return what a request and its answer have in common: connection, opaque, who asked."""
        return self.connection, self.opaque, self.direction in {"c2s", "s2c"}


class _Line(msgspec.Struct):
    """A line of a conversation file; events have none of the frame's fields."""

    dir: str = ""
    conn: int = 0
    peer: str = ""
    code: int = 0
    opaque: int = 0
    oneway: bool = False
    ser: str = ""
    header: dict[str, object] = msgspec.field(default_factory=dict)
    body_len: int = 0
    frame_b64: str = ""


_LINE = msgspec.json.Decoder(_Line)


def wire_id(path: Path) -> str:
    """Return the name of a conversation as a test id: `java-5.5.0/pop`."""
    return f"{path.parent.name}/{path.stem}"


def wire_entries(path: Path) -> list[Entry]:
    """Return the frames of one conversation in the order they were seen."""
    entries: list[Entry] = []
    for number, text in enumerate(path.read_bytes().splitlines(), 1):
        line = _LINE.decode(text)
        if not line.dir:
            continue
        entries.append(
            Entry(
                number,
                line.dir,
                line.conn,
                line.peer,
                line.code,
                line.opaque,
                line.oneway,
                line.ser,
                line.header,
                line.body_len,
                base64.b64decode(line.frame_b64, validate=True),
            )
        )
    return entries


def exchanges(entries: list[Entry]) -> list[tuple[Entry, Entry | None]]:
    """Pair each request with its answer, or with None where none was recorded."""
    answers = {entry.exchange: entry for entry in entries if not entry.is_request}
    return [(entry, answers.get(entry.exchange)) for entry in entries if entry.is_request]


def stored_messages(label: str) -> list[dict[str, object]]:
    """Return what an Apache broker serves from a golden store, by commit log offset."""
    with gzip.open(STORE / label / "messages.jsonl.gz") as lines:
        return [msgspec.json.decode(line, type=dict[str, object]) for line in lines]


def commit_log(label: str) -> dict[int, bytes]:
    """Return the commit log files of a golden store by the log offset of their first byte."""
    files: dict[int, bytes] = {}
    with tarfile.open(STORE / label / "store.tar.gz") as archive:
        for member in archive:
            if member.isfile() and member.name.startswith("store/commitlog/"):
                content = archive.extractfile(member)
                if content is not None:
                    files[int(Path(member.name).name)] = content.read()
    return files
