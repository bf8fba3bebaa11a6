"""However the bytes are cut, the answers are the same."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from gantrymq.transport.settings import TransportSettings
from support.transport import COROUTINE, ECHO, LARGE, REFUSES, Echo, feed, request, turns, wired

REQUESTS = st.lists(
    st.tuples(
        st.sampled_from([ECHO, COROUTINE, REFUSES, LARGE]),
        st.binary(max_size=40) | st.integers(60_000, 70_000).map(bytes),
        st.booleans(),
    ),
    max_size=12,
)


async def answers(data: bytes, sizes: list[int], receive_bytes: int) -> list[bytes]:
    settings = TransportSettings(receive_bytes=receive_bytes)
    connection, transport, table = wired(Echo().service, settings)
    feed(connection, data, sizes)
    await turns()
    assert connection.is_open
    assert table.held_bytes == 0
    table.stop_sweeping()
    return sorted(repr(answer).encode() for answer in transport.answers())


@given(
    REQUESTS,
    st.lists(st.integers(1, 5) | st.integers(1, 70_000), max_size=60),
    st.sampled_from([1_000, 65_536, 524_288]),
)
def test_random_pieces_give_the_same_answers(
    wanted: list[tuple[int, bytes, bool]], sizes: list[int], receive_bytes: int
) -> None:
    data = b"".join(
        request(code, number, body, oneway=oneway)
        for number, (code, body, oneway) in enumerate(wanted)
    )
    whole = asyncio.run(answers(data, [], 1 << 21))
    assert len(whole) == sum(not oneway for _code, _body, oneway in wanted)
    assert asyncio.run(answers(data, sizes, receive_bytes)) == whole
