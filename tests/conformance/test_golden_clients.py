"""What ordinary clients asked Apache's brokers, asked of ours in the same order.

The recorded broker had topics and messages that the files do not tell of. Here a broker has every
topic that a conversation names, and each of its queues has messages; then the codes must be the
recorded ones, with the same fields. Numbers, ids and times are another broker's. What depends on
messages that were there is compared by its form alone, and named in `LOOSE`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec
import pytest

from gantrymq.model.topic import TopicConfig
from gantrymq.testing.clock import START_MS, VirtualClock
from gantrymq.wire.frame import FrameParser, encode_frame
from support.broker_rig import BrokerRig, commands
from support.client_peers import FakePeer
from support.golden import WIRE_FILES, Entry, exchanges, wire_entries, wire_id

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.wire.command import Command

SEND: Final = frozenset({10, 310, 320})
OF_A_MESSAGE: Final = frozenset({33, 36})
"""Asked about a log offset of the recorded broker: ours is asked about the first of its own."""
TAKEN: Final = SEND | OF_A_MESSAGE | {11, 12, 14, 15, 29, 30, 31, 32, 34, 35, 38, 41, 42, 46, 361}
"""Codes of clients; transactions, replies, pop and admin have tests of their own."""
LOOSE: Final = frozenset({11, 12, 14, 38, 361})
"""Answered by what had been stored, committed or joined before: the code may be another of them."""
NOTICE: Final = 40
"""The broker tells members of a group that it has changed."""
LOOSE_CODES: Final = {
    11: {0, 19, 20, 21, 24, 25}, 361: {0, 19, 20, 21, 24, 25}, 14: {0, 22}, 38: {0, 1},
    12: {0, 22},
}  # fmt: skip
LATER_FIELDS: Final = frozenset(
    {"offsetDelta", "topicSysFlag", "groupSysFlag", "forbiddenType", "transactionId",
     "IS_SUPPORT_HEART_BEAT_V2", "IS_SUB_CHANGE", "batchUniqId", "recallHandle"}
)  # fmt: skip
"""Fields that only one of the two releases has, or that no client asks for."""
CLIENTS: Final = [
    path
    for path in WIRE_FILES
    if path.parent.name.startswith(("java", "go", "ali", "cpp", "pyrocketmq"))
]


def command(entry: Entry) -> Command:
    (decoded,) = FrameParser().feed(entry.frame)
    return decoded


def topics_of(requests: list[Command]) -> set[str]:
    """Return every topic that is named where a broker must know it."""
    found = set()
    for one in requests:
        found.add(one.fields.get("topic") or one.fields.get("b") or "")
    return found - {""}


def broker_for(asked: list[tuple[Command, Command | None]]) -> BrokerRig:
    """Return a broker with the topics that were there: those whose use did not fail."""
    born = [one.fields.get("g") or one.fields.get("bornTimestamp") for one, _answer in asked]
    moments = [int(one) for one in born if one is not None]
    rig = BrokerRig(clock=VirtualClock(min(moments, default=START_MS)), property_filter=True)
    rig.store_some(b"the first message of the log")
    failed = {
        one.fields.get("topic") or one.fields.get("b")
        for one, answer in asked
        if answer is not None and answer.code in {1, 16, 17, 29}
    }
    table = rig.broker.tables.topics
    for topic in topics_of([one for one, _answer in asked]) - failed:
        if table.find(topic) is None:
            table.put(TopicConfig(topic, 16, 16))
    return rig


@pytest.mark.parametrize("path", CLIENTS, ids=wire_id)
def test_clients_get_the_answers_they_know(path: Path) -> None:
    entries = wire_entries(path)
    asked = [
        (command(one), None if answer is None else command(answer), one)
        for one, answer in exchanges(entries)
        if one.peer.startswith("broker") and one.direction == "c2s" and one.code in TAKEN
    ]
    rig = broker_for([(request, answer) for request, answer, _entry in asked])
    peers: dict[int, FakePeer] = {}
    seen: Counter[int] = Counter()
    for request, expected, entry in asked:
        peer = peers.setdefault(entry.connection, FakePeer(entry.connection + 1))
        frame = entry.frame
        if request.code in OF_A_MESSAGE:
            fields = {**request.fields, "offset": "0"}
            frame = encode_frame(msgspec.structs.replace(request, fields=fields, wire_pairs=None))
        pendings = rig.take(frame, peer)
        rig.turns()
        if request.is_oneway:
            assert commands(pendings) == []
            continue
        rig.settle(0 if request.code not in LOOSE else 31)  # whoever waits has waited enough
        (answer,) = commands(pendings)
        if expected is None:
            continue
        seen[request.code] += 1
        check(request, answer, expected)
    told = any(one.direction == "s2c-req" and one.code == NOTICE for one in entries)
    if told and "broadcast" not in path.stem:  # nothing to share out; 4.9 tells them all the same
        assert NOTICE in {notice.code for peer in peers.values() for notice in peer.told}
    assert seen or not asked or all(expected is None for _one, expected, _entry in asked)


def check(request: Command, answer: Command, expected: Command) -> None:
    """Compare what a client sees."""
    told = f"{request}\n  ours: {answer}\n  Apache's: {expected}"
    assert answer.opaque == request.opaque
    assert answer.is_response
    assert answer.version >= 407, "some clients do without features otherwise"
    assert answer.serialize_type == request.serialize_type
    if request.code in LOOSE:
        assert answer.code in LOOSE_CODES[request.code], told
    else:
        # What 5.x calls an illegal parameter is a system error in 4.9.
        same = {answer.code, expected.code} == {1, 29} or answer.code == expected.code
        assert same, told
    if answer.code == expected.code:
        ours = answer.fields.keys() - LATER_FIELDS
        assert ours == expected.fields.keys() - LATER_FIELDS, told
        assert bool(answer.body) == bool(expected.body) or request.code in LOOSE, told


def test_there_is_something_to_compare() -> None:
    codes: Counter[int] = Counter()
    for path in CLIENTS:
        for one, answer in exchanges(wire_entries(path)):
            if one.peer.startswith("broker") and one.direction == "c2s" and answer is not None:
                codes[one.code] += 1
    assert {code for code in TAKEN if codes[code]} >= TAKEN - {32}
    assert sum(codes[code] for code in TAKEN) > 1000
