"""A broker that is sent more than it can take in refuses a share of the sends, and nothing else."""

from __future__ import annotations

import pytest

from gantrymq.wire.frame import FrameParser
from support.broker_rig import BrokerRig, pull
from support.samples import json_request, send_fields

FOUND, BUSY = 0, 2


def sends(count: int, first: int = 0) -> bytes:
    return b"".join(
        json_request(310, send_fields(b="T", i=""), b"x", opaque=first + number)
        for number in range(count)
    )


def picking(rig: BrokerRig, *numbers: float) -> None:
    """Let the dice of a broker fall so."""
    left = list(numbers)
    rig.service._pick = lambda: left.pop(0)


def test_a_share_is_refused_with_the_cause_and_the_rest_is_stored() -> None:
    rig = BrokerRig()
    rig.service.press(0.5)
    picking(rig, 0.7, 0.2)
    refused = rig.begin(sends(3)).answers
    assert [one.code for one in refused] == [BUSY] * 3
    assert str(refused[0].remark).startswith("[OVERLOAD]broker busy: more comes than it can")
    assert refused[0].fields["MSG_REGION"] == "DefaultRegion"
    assert [one.code for one in rig.begin(sends(3)).answers] == [FOUND] * 3
    assert len(rig.bodies()) == 3
    assert rig.store.statistics.busy["OVERLOAD"] == 3
    assert rig.service.taken_share == 0.5


def test_pulls_and_everything_else_are_never_refused_for_it() -> None:
    rig = BrokerRig()
    rig.store_some(b"here")
    rig.service.press(0.01)
    rig.service._pick = lambda: 0.99
    answers = rig.begin(sends(2) + pull(0, opaque=50) + json_request(28, {}, opaque=51)).answers
    codes = {one.opaque: one.code for one in answers}
    assert codes == {0: BUSY, 1: BUSY, 50: FOUND, 51: FOUND}
    assert rig.ask(pull(0, opaque=52)).code == FOUND, "a pull that the kernel knows"


def test_of_many_connections_at_once_some_are_taken_in_still_in_one_call() -> None:
    rig = BrokerRig()
    rig.store_some(b"before")
    data = b"".join(sends(1, number) for number in range(4))
    size = len(data) // 4
    parts = [(number * size, (number + 1) * size, rig.peer) for number in range(4)]
    rig.service.press(0.5)
    picking(rig, 0.1, 0.9, 0.9, 0.1)
    runs = rig.service.take_turn(data, parts)
    assert [end for end, _ in runs] == [end for _, end, _ in parts]
    codes = [FrameParser().feed(replies)[0] for _, replies in runs]
    assert [(one.opaque, one.code) for one in codes] == [(0, 0), (1, BUSY), (2, BUSY), (3, 0)]
    assert len(rig.bodies()) == 3
    picking(rig, 0.9)
    other = pull(0)
    assert rig.service.take_turn(other, [(0, len(other), rig.peer)]) == [(0, b"")], "no send"


def test_what_the_lane_does_not_take_is_left_whoever_is_refused_behind_it() -> None:
    rig = BrokerRig()
    rig.service.press(0.5)
    picking(rig, 0.1, 0.9)
    first, second = json_request(310, send_fields(b="New", i=""), b"x"), sends(1)
    parts = [(0, len(first), rig.peer), (len(first), len(first + second), rig.peer)]
    runs = rig.service.take_turn(first + second, parts)
    assert all(end == start for (end, _), (start, _, _) in zip(runs[:1], parts, strict=False))
    assert rig.bodies() == []


@pytest.mark.parametrize("is_on", [True, False])
def test_it_can_be_turned_off(is_on: bool) -> None:
    rig = BrokerRig(fast_failure=is_on)
    rig.service.press(0.01)
    rig.service._pick = lambda: 0.99
    assert rig.ask(sends(1)).code == (BUSY if is_on else FOUND)
