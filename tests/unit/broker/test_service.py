"""Received bytes: however they are cut and mixed, every request gets the answer it gets alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.errors import ProtocolError
from gantrymq.kernel import kernel
from support.broker_rig import BrokerRig, commands, pull
from support.client_peers import FakePeer
from support.samples import binary_request, inner_message, json_request, send_fields

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Buffer
    from gantrymq.kernel.values import Frame
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Pending

RESPONSE = json_request(0, {}, flag=1, opaque=99)
BAD = b"\x7f\xff\xff\xff" + bytes(8)
NOT_A_HEADER = (8).to_bytes(4) + (4).to_bytes(4) + b"{{{{"


def lane(opaque: int) -> bytes:
    return json_request(310, send_fields(b="T", i=""), b"lane", opaque=opaque)


def binary_lane(opaque: int) -> bytes:
    return binary_request(310, send_fields(b="T", e="1", i="k\x01v"), b"binary", opaque=opaque)


def batch(opaque: int) -> bytes:
    body = inner_message(b"a") + inner_message(b"b")
    return json_request(320, send_fields(b="T", m="true", i=""), body, opaque=opaque)


def delayed(opaque: int) -> bytes:
    return json_request(310, send_fields(b="T", i="DELAY\x011"), b"later", opaque=opaque)


def refused(opaque: int) -> bytes:
    return json_request(310, send_fields(b="T", e="9", i=""), b"refused", opaque=opaque)


def broken_field(opaque: int) -> bytes:
    return json_request(310, send_fields(b="T", e="nine", i=""), b"refused", opaque=opaque)


def oneway(opaque: int) -> bytes:
    return json_request(310, send_fields(b="T", i=""), b"oneway", opaque=opaque, flag=2)


def pulled(opaque: int) -> bytes:
    return pull(0, opaque=opaque, topic="Read")


def nothing_there(opaque: int) -> bytes:
    return pull(2**40, opaque=opaque, topic="Read")


def unknown(opaque: int) -> bytes:
    return json_request(4711, {}, opaque=opaque)


def question(opaque: int) -> bytes:
    return json_request(30, {"topic": "Read", "queueId": "0"}, opaque=opaque)


KINDS = (
    lane, binary_lane, batch, delayed, refused, broken_field, oneway, pulled, nothing_there,
    unknown, question,
)  # fmt: skip


def fresh() -> BrokerRig:
    """Return a broker with a message in a topic that nobody sends to.

    What is sent can be read in the next turn of the loop, long before its sender knows that it was
    stored; so a pull in the same buffer would make a difference that no client can see.
    """
    rig = BrokerRig()
    rig.store_some(b"read me", b="Read")
    return rig


class Line:
    """A connection's way of handing over what arrives, as `Service` asks for it."""

    def __init__(self, rig: BrokerRig, peer: FakePeer) -> None:
        self.rig = rig
        self.peer = peer
        self.responses = 0
        self._kept = b""
        self.pendings: list[Pending] = []

    def feed(self, data: bytes) -> None:
        """Let bytes arrive; raises what closes the connection."""
        data = self._kept + data
        position = 0
        while position < len(data):
            end, answers, _ = self.rig.service.take(data, position, len(data), self.peer)
            self.pendings += answers
            if end == position:
                if not data.startswith(RESPONSE, position):
                    break
                self.responses += 1
                end += len(RESPONSE)
            position = end
        self._kept = data[position:]

    def answers(self) -> list[Command]:
        """Return what was answered, once everything has come to rest."""
        self.rig.turns()
        return commands(self.pendings)


def summary(answers: list[Command]) -> list[tuple[object, ...]]:
    """Return what must not depend on how requests came."""
    return sorted(
        (one.opaque, one.code, one.remark, one.body, tuple(sorted(one.fields.items())))
        for one in answers
    )


def one_by_one(requests: list[bytes]) -> tuple[list[tuple[object, ...]], list[list[bytes]]]:
    rig = fresh()
    found: list[Command] = []
    for request in requests:
        if request != RESPONSE:
            line = Line(rig, FakePeer(1))
            line.feed(request)
            found += line.answers()
    return summary(found), [rig.bodies("T", queue_id) for queue_id in range(2)]


@given(st.data())
def test_any_cutting_and_mixing_gives_the_same_answers(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from((*KINDS, None)), max_size=12))
    requests = [RESPONSE if kind is None else kind(opaque) for opaque, kind in enumerate(kinds, 1)]
    stream = b"".join(requests)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    rig = fresh()
    line = Line(rig, FakePeer(1))
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        line.feed(stream[start:end])
        if data.draw(st.booleans()):
            rig.turns()
    expected, bodies = one_by_one(requests)
    assert summary(line.answers()) == expected
    assert [rig.bodies("T", queue_id) for queue_id in range(2)] == bodies
    assert line.responses == requests.count(RESPONSE)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("bad", [BAD, NOT_A_HEADER], ids=["length", "header"])
@pytest.mark.parametrize("before", [(), (pulled,), (lane,)], ids=["new", "puller", "sender"])
def test_what_stands_before_a_bad_frame_is_answered(
    kind: type, bad: bytes, before: tuple[type, ...]
) -> None:
    rig = BrokerRig()
    line = Line(rig, FakePeer(1))
    for number, earlier in enumerate(before):
        line.feed(earlier(100 + number))
    with pytest.raises(ProtocolError):
        line.feed(kind(1) + kind(2) + bad)
    expected = [] if kind is oneway else [1, 2]
    assert [one.opaque for one in line.answers() if one.opaque < 100] == expected


def test_a_bad_frame_disturbs_nobody_else() -> None:
    rig = BrokerRig()
    bad, good = Line(rig, FakePeer(1)), Line(rig, FakePeer(2))
    good.feed(lane(1)[:20])
    with pytest.raises(ProtocolError):
        bad.feed(BAD)
    rig.service.closed(bad.peer)
    good.feed(lane(1)[20:])
    assert [one.code for one in good.answers()] == [0]


def test_a_reader_that_sends_again_is_not_forgotten() -> None:
    """The lane is not tried for a connection that pulls, until it sends."""
    rig = BrokerRig()
    line = Line(rig, FakePeer(1))
    for opaque in range(1, 60, 3):
        line.feed(pulled(opaque))
        line.feed(lane(opaque + 1) + pulled(opaque + 2))
    assert sorted(one.opaque for one in line.answers()) == list(range(1, 61))
    assert len(rig.bodies()) == 20
    rig.service.closed(line.peer)
    assert rig.service._pullers == set()


def test_without_the_lane_everything_still_works() -> None:
    rig = BrokerRig()
    rig.service.uses_lane = False
    line = Line(rig, FakePeer(1))
    line.feed(b"".join(kind(opaque) for opaque, kind in enumerate(KINDS, 1)))
    other = BrokerRig()
    same = Line(other, FakePeer(1))
    same.feed(b"".join(kind(opaque) for opaque, kind in enumerate(KINDS, 1)))
    assert [one[:2] for one in summary(line.answers())] == [
        one[:2] for one in summary(same.answers())
    ]
    assert rig.bodies() == other.bodies()


def test_sends_to_a_store_that_takes_nothing_are_refused_one_by_one() -> None:
    rig = BrokerRig()
    rig.store.writability.forbid("test", "no room")
    line = Line(rig, FakePeer(1))
    line.feed(b"".join(lane(opaque) for opaque in range(100)))
    answers = line.answers()
    assert [one.opaque for one in answers] == list(range(100))
    assert {one.code for one in answers} == {14}


def test_a_buffer_full_of_sends_for_policy_is_split_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = BrokerRig()
    split = kernel.split_frames
    looked_at: list[int] = []

    def counted(buffer: Buffer, start: int, end: int, most: int) -> tuple[list[Frame], int]:
        looked_at.append(end - start)
        return split(buffer, start, end, most)

    monkeypatch.setattr(kernel, "split_frames", counted)
    sends = b"".join(delayed(opaque) for opaque in range(200))
    assert len(rig.take(sends)) == 200
    assert sum(looked_at) == len(sends)
