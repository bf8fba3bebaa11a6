"""A header means the same whatever came before it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from support.samples import BORN_HOST, frame, json_request, make_lane, send_fields

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel

NOW = 1700000000123
ROOM = 20_000
FIRST = json_request(310, send_fields(), b"hello", opaque=7)


def text_of(raw: bytes) -> str:
    """Return the header of a frame."""
    return raw[8 : 8 + int.from_bytes(raw[5:8])].decode()


def changed(old: str, new: str) -> bytes:
    """Return the first header with a part of its text replaced."""
    text = text_of(FIRST)
    assert text.count(old) == 1, old
    return frame(text.replace(old, new).encode(), b"hello")


VARIANTS = {
    "itself": FIRST,
    "other values": json_request(
        310,
        send_fields(b="Other", e="3", g="1700000000999", h="-5", i="KEYS\x01b\x02TAGS\x01B"),
        b"body",
        opaque=-1,
    ),
    "a longer opaque": json_request(310, send_fields(), b"hello", opaque=2147483647),
    "an opaque out of range": changed('"opaque":7', '"opaque":2147483648'),
    "an opaque as text": changed('"opaque":7', '"opaque":"7"'),
    "an opaque that is null": changed('"opaque":7', '"opaque":null'),
    "an opaque with a fraction": changed('"opaque":7', '"opaque":7.5'),
    "an opaque with a zero in front": changed('"opaque":7', '"opaque":07'),
    "oneway": json_request(310, send_fields(), b"hello", flag=2),
    "a response": json_request(310, send_fields(), b"hello", flag=1),
    "another version": changed('"version":399', '"version":400'),
    "another code": changed('"code":310', '"code":320'),
    "a pull's code": changed('"code":310', '"code":11'),
    "a queue as a number": changed('"e":"0"', '"e":0'),
    "a queue as a long number": changed('"e":"0"', '"e":12'),
    "a queue that is true": changed('"e":"0"', '"e":true'),
    "a queue that is null": changed('"e":"0"', '"e":null'),
    "an empty queue": changed('"e":"0"', '"e":""'),
    "a queue with a quote in it": changed('"e":"0"', '"e":"\\"0"'),
    "an escaped name": changed('"e":"0"', '"\\u0065":"0"'),
    "one field more": changed('"m":"false"', '"m":"false","n":"broker"'),
    "one field that nobody knows": changed('"m":"false"', '"m":"false","x":"y"'),
    "a field less": json_request(310, send_fields(l=None), b"hello"),
    "a field twice": changed('"e":"0"', '"e":"0","e":"1"'),
    "two names swapped": changed('"d":"4","e":"0"', '"e":"4","d":"0"'),
    "extFields twice": changed('},"flag"', '},"extFields":{"a":"other"},"flag"'),
    "extFields taken back": changed('},"flag"', '},"extFields":null,"flag"'),
    "blanks": changed('"flag":0', ' "flag" : 0 '),
    "a remark": changed('"flag":0', '"flag":0,"remark":"x"'),
    "letters outside ASCII": json_request(310, send_fields(i="KEYS\x01\u4e2d\u6587"), b"hello"),
    "ill-formed letters": frame(
        text_of(FIRST).replace("group", "gr\0up").encode().replace(b"\0", b"\xff"), b"hello"
    ),
    "a control character": changed('"a":"group"', '"a":"gr\tup"'),
    "half a surrogate": changed('"a":"group"', '"a":"\\ud800"'),
    "an escape cut off": changed('"version":399}', '"version":399,"x":"\\u00'),
    "the end missing": frame(text_of(FIRST)[:-1].encode(), b"hello"),
    "something behind": frame(text_of(FIRST).encode() + b" x", b"hello"),
    "blanks behind": frame(text_of(FIRST).encode() + b"  ", b"hello"),
    "long values": json_request(310, send_fields(a="g" * 200, i="KEYS\x01" + "k" * 5000), b"hello"),
    "empty values": json_request(310, send_fields(a="", i=""), b"hello"),
    "half of it": frame(text_of(FIRST)[: len(text_of(FIRST)) // 2].encode(), b"hello"),
    "very short": frame(b"{}", b"hello"),
}


def told(kernel: Kernel, *before: bytes, raw: bytes) -> object:
    """Return what a lane says of a frame, stores of it and keeps, when others came before."""
    lane, log = make_lane(kernel), bytearray(ROOM)
    lane.open_topic(b"TopicTest", [0, 0, 0, 0])
    for one in before:
        lane.append(one, 0, len(one), bytearray(ROOM), 0, ROOM, 0, BORN_HOST, NOW)
    lane.close_topic(b"TopicTest")
    lane.open_topic(b"TopicTest", [5, 6, 7, 8])
    try:
        run = lane.append(raw, 0, len(raw), log, 0, ROOM, 0, BORN_HOST, NOW)
    except Exception as error:  # noqa: BLE001  (whatever it is must be the same)
        return repr(error)
    return run, bytes(log), lane.next_offsets(b"TopicTest")


@pytest.mark.parametrize("name", VARIANTS)
def test_what_came_before_changes_nothing(kernel: Kernel, name: str) -> None:
    expected = told(kernel, raw=VARIANTS[name])
    assert told(kernel, FIRST, raw=VARIANTS[name]) == expected
    assert told(kernel, FIRST, FIRST, raw=VARIANTS[name]) == expected
    # And whatever it is, it does not spoil what comes after it.
    assert told(kernel, FIRST, VARIANTS[name], raw=FIRST) == told(kernel, raw=FIRST)
    assert told(kernel, VARIANTS[name], raw=FIRST) == told(kernel, raw=FIRST)


def test_each_pair_of_variants(kernel: Kernel) -> None:
    alone = {name: told(kernel, raw=raw) for name, raw in VARIANTS.items()}
    for name, raw in VARIANTS.items():
        for before, first in VARIANTS.items():
            assert told(kernel, first, raw=raw) == alone[name], (before, name)


def test_clients_that_write_their_headers_in_other_ways_take_turns(kernel: Kernel) -> None:
    fields = send_fields()
    shapes: list[dict[str, object]] = [
        {"code": 310, "extFields": fields, "flag": 0, "opaque": 1, "version": version}
        for version in range(20)
    ]
    shapes.append({"extFields": fields, "code": 310, "flag": 0, "opaque": 1, "version": 1})
    shapes.append({"code": 310, "opaque": 1, "extFields": dict(reversed(fields.items()))})
    raws = [frame(json.dumps(shape).encode(), b"x") for shape in shapes]
    lane, log = make_lane(kernel), bytearray(100_000)
    lane.open_topic(b"TopicTest", [0])
    stream = b"".join(raws * 3)
    run = lane.append(stream, 0, len(stream), log, 0, len(log), 0, BORN_HOST, NOW)
    assert (run.consumed, run.requests) == (len(stream), 3 * len(raws))


@pytest.mark.parametrize("count", [20, 60])
@pytest.mark.parametrize("size", [1, 30])
def test_a_header_that_is_too_large_to_remember_is_read_all_the_same(
    kernel: Kernel, count: int, size: int
) -> None:
    fields = send_fields() | {f"{'x' * size}{number}": "v" for number in range(count)}
    raw = json_request(310, fields, b"x")
    assert told(kernel, raw, raw, raw=raw) == told(kernel, raw=raw)
