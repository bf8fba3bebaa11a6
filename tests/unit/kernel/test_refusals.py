"""Refusals of sends, many at once: every send has its own, and nothing else is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.errors import InvalidValue
from gantrymq.kernel import available
from gantrymq.wire.frame import FrameParser
from support.samples import binary_request, json_request, pull_fields, send_fields

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel
    from gantrymq.kernel.values import Refused

BUSY, MAX = 2, 1 << 24
REMARK, REGION = b"[OVERLOAD]later", b"here"


def refused(
    kernel: Kernel, data: bytes, *, trace_on: bool = True, region: bytes = REGION
) -> Refused:
    return kernel.refuse_sends(data, 0, len(data), MAX, 407, BUSY, REMARK, region, trace_on)


def send(opaque: int, *, binary: bool = False, code: int = 310, flag: int = 0) -> bytes:
    make = binary_request if binary else json_request
    return make(code, send_fields(b="T", i=""), b"body", opaque=opaque, flag=flag)


@pytest.mark.parametrize("binary", [False, True], ids=["json", "binary"])
def test_every_send_is_told_the_cause(kernel: Kernel, binary: bool) -> None:
    data = b"".join(send(number, binary=binary) for number in range(3))
    found = refused(kernel, data, trace_on=False)
    assert (found.end, found.requests) == (len(data), 3)
    answers = FrameParser().feed(found.replies)
    assert [one.opaque for one in answers] == [0, 1, 2]
    assert {(one.code, one.flag, one.remark, one.serialize_type) for one in answers} == {
        (BUSY, 1, REMARK.decode(), int(binary))
    }
    assert answers[0].fields == {"MSG_REGION": "here", "TRACE_ON": "false"}


def test_what_is_no_send_ends_it(kernel: Kernel) -> None:
    first = send(1) + send(2, flag=2)
    pull = json_request(11, pull_fields(topic="T"), opaque=3)
    for behind in (pull, b"", send(4)[:-1], b"\x00\x00", b"\xff" * 12, json_request(34, {})):
        found = refused(kernel, first + behind)
        assert (found.end, found.requests) == (len(first), 2)
        (only,) = FrameParser().feed(found.replies)
        assert only.opaque == 1, "a oneway send has no answer"
    assert refused(kernel, pull + first) == (0, 0, b"")
    assert refused(kernel, b"\xff" * 12) == (0, 0, b"")


def test_texts_that_are_no_json_are_refused(kernel: Kernel) -> None:
    for remark, region in ((b'"', b""), (b"", b"\\"), (b"\n", b"")):
        with pytest.raises(InvalidValue, match="printable"):
            kernel.refuse_sends(b"", 0, 0, MAX, 407, BUSY, remark, region, True)
    with pytest.raises(InvalidValue, match="out of range"):
        kernel.refuse_sends(b"", 0, 0, MAX, 1 << 40, BUSY, b"", b"", True)
    with pytest.raises(InvalidValue, match="16777215"):
        kernel.refuse_sends(b"", 0, 0, MAX, 407, BUSY, b"x" * (1 << 24), b"", True)
    with pytest.raises(InvalidValue, match="range"):
        kernel.refuse_sends(b"", 0, 1, MAX, 407, BUSY, b"", b"", True)


@given(
    pieces=st.lists(
        st.one_of(
            st.binary(max_size=30),
            st.builds(
                send,
                st.integers(-(2**31), 2**31 - 1),
                binary=st.booleans(),
                code=st.sampled_from([10, 310, 320]),
                flag=st.integers(0, 3),
            ),
        ),
        max_size=6,
    ),
    cut=st.integers(0, 40),
    region=st.sampled_from([b"", b"DefaultRegion"]),
)
def test_the_twins_agree(pieces: list[bytes], cut: int, region: bytes) -> None:
    data = b"".join(pieces)
    data = data[: len(data) - cut] if cut < len(data) else data
    first, *others = [refused(one, data, region=region) for one in available()]
    assert all(one == first for one in others)
