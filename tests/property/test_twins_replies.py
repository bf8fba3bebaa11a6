"""The twins agree about the answers to sends, whatever bytes stand in their place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gantrymq.limits import FRAME_BYTES_MAX
from support.kernels import KERNELS
from support.strategies import binary_headers, json_headers, spoiled

ANSWERS = st.builds(
    lambda opaque, kind, queue, offset, region, trace: KERNELS["readable"].encode_send_reply(
        opaque, kind, 407, queue, offset, b"7F00000100002A9F00000000000003E8", region, trace
    ),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(0, 1),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([b"", b"R", b"DefaultRegion"]),
    st.booleans(),
)
"""What a broker sends."""


def check_agreement(data: bytes, least: int = -(2**31)) -> None:
    """Split the same bytes with every kernel; all must find the same."""
    found = {
        name: repr(each.split_send_replies(data, 0, len(data), FRAME_BYTES_MAX, least))
        for name, each in KERNELS.items()
    }
    assert set(found.values()) == {found["readable"]}


@given(st.lists(ANSWERS, max_size=4), st.data())
def test_answers_and_what_is_left_of_them(answers: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(answers)
    spoilt = data.draw(spoiled(st.just(whole)) if whole else st.just(whole))
    for text in (whole, spoilt):
        check_agreement(text)
        check_agreement(text, 0)


@given(st.one_of(json_headers(), binary_headers()), st.integers(0, 1))
def test_other_headers(header: bytes, kind: int) -> None:
    frame = (4 + len(header)).to_bytes(4) + (kind << 24 | len(header)).to_bytes(4) + header
    check_agreement(frame)
