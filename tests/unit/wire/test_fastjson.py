"""What fastjson writes is read, what it reads is read too, the rest is refused with its place."""

from __future__ import annotations

import contextlib
import math
import time
from enum import IntEnum
from typing import Final

import pytest

from gantrymq.errors import InvalidValue, ProtocolError
from gantrymq.limits import JSON_DEPTH_MAX
from gantrymq.model.topic import Perm
from gantrymq.wire.fastjson import ObjectKeyed, encode, parse

QUEUE: Final = {"brokerName": "b", "queueId": 0, "topic": "t"}

READ: Final[list[tuple[bytes, object]]] = [
    (b'{"a":[1,-2.5,true,false,null,"x"]}', {"a": [1, -2.5, True, False, None, "x"]}),
    (b'{0:"a",-1:"b",1.5:"c"}', {"0": "a", "-1": "b", "1.5": "c"}),
    (b'{{"brokerName":"b","queueId":0,"topic":"t"}:5}', ObjectKeyed(((QUEUE, 5),))),
    (b"{{}:1,{}:{{}:2}}", ObjectKeyed((({}, 1), ({}, ObjectKeyed((({}, 2),)))))),
    (b'{"x":{{"a":1}:[{2:3}]}}', {"x": ObjectKeyed((({"a": 1}, [{"2": 3}]),))}),
    (b"{'a':'b','it\\'s':\"\"}", {"a": "b", "it's": ""}),
    (b"{a:1,_b$2:2,null:3,true:4}", {"a": 1, "_b$2": 2, "null": 3, "true": 4}),
    (b"[1,2,]", [1, 2]),
    (b'{"a":1,}', {"a": 1}),
    (b"[undefined, null]", [None, None]),
    (b"[+5,1e2,1.,007]", [5, 100.0, 1.0, 7]),
    (rb"['\x41\101\7\'\v\F\b\f\n\r\t\/\\\u4e2d']", ["AA\x07'\v\f\b\f\n\r\t/\\中"]),
    (rb"['\ud83d\ude00']", ["😀"]),
    (b"'a\nb\tc\x01'", "a\nb\tc\x01"),
    (b' \t\r\n\f{ "a" : [ ] , b : { } } \n', {"a": [], "b": {}}),
    (b'{"a":1,a:2}', {"a": 2}),
    (b'{"$ref":"$.x",}', {"$ref": "$.x"}),
    ("{'键':'值'}".encode(), {"键": "值"}),
    (b"[18446744073709551616,]", [2**64]),
]

REFUSED: Final[list[tuple[bytes, str]]] = [
    (b"", "ends too early, at character 0"),
    (b"  ", "ends too early"),
    (b"{", "ends too early"),
    (b'{"a"', "expected a colon"),
    (b'{"a":1', "expected a comma or the end"),
    (b'{"a" 1}', "expected a colon"),
    (b"[1 2]", "expected a comma or the end of the object or list, found '2'"),
    (b"[1}", "found '}'"),
    (b"[1,,2]", "found ','"),
    (b"{,}", "found ','"),
    (b"{} {}", "expected nothing behind the end, found '{'"),
    (b"5L", "expected nothing behind the end, found 'L'"),
    (b"tru", "found 'tru'"),
    (b"Infinity", "found 'Infinity'"),
    (b"-", "found '-'"),
    (b"// x", "found '/'"),
    (b'"abc', "ends inside quotes"),
    (b'"\\', "ends inside quotes"),
    (b'"\\u12"', "unknown escape"),
    (b'"\\q"', "unknown escape \\q"),
    (b'"\\ud800"', "half a surrogate pair"),
    (b"{[1]:2}", "a key is a text, a number or an object"),
    (b"{{{}:1}:2}", "a key is a text, a number or an object"),
    (b"\xff", "not UTF-8 at byte 0"),
    (b'{"a":"\xe4\xb8"}', "not UTF-8 at byte 6"),
    (b"\xef\xbb\xbf{}", "found '\\ufeff'"),
]


@pytest.mark.parametrize(("data", "value"), READ)
def test_reading(data: bytes, value: object) -> None:
    assert parse(data) == value


def test_not_a_number() -> None:
    value = parse(b"NaN")
    assert isinstance(value, float)
    assert math.isnan(value)


@pytest.mark.parametrize(("data", "problem"), REFUSED)
def test_refusing_names_the_problem_and_the_place(data: bytes, problem: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        parse(data)
    assert problem in caught.value.problem
    assert caught.value.field.startswith("body")


def test_the_field_is_the_path_of_keys() -> None:
    with pytest.raises(ProtocolError) as caught:
        parse(b'{"table":{"broker-a":{0:{{"q":1}:wrong}}}}', "header.extFields.x")
    assert caught.value.field == "header.extFields.x.table.broker-a.0"


@pytest.mark.parametrize("data", [data for data, _ in READ])
def test_a_text_cut_anywhere_is_refused(data: bytes) -> None:
    whole = data.strip()
    for end in range(len(whole)):
        with pytest.raises(ProtocolError):
            parse(whole[:end])


@pytest.mark.parametrize("opener", [b"[", b"{", b'{"a":', b"{a:[", b"[{{"])
@pytest.mark.parametrize("lead", [b"", b"[1,]", b"'"])
def test_depth_is_refused_at_once(opener: bytes, lead: bytes) -> None:
    begun = time.process_time()
    with pytest.raises(ProtocolError):
        parse(lead + opener * 100_000)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("opener", "closer"),
    [(b"[", b"]"), (b'{"a":', b"}"), (b"{a:", b"}"), (b'{"":[', b"]}")],
)
def test_the_limit_of_depth_is_exact(opener: bytes, closer: bytes) -> None:
    times = JSON_DEPTH_MAX // (opener.count(b"{") + opener.count(b"["))
    parse(opener * times + b"1" + closer * times)
    with pytest.raises(ProtocolError, match="levels of nesting"):
        parse(opener * (times + 1) + b"1" + closer * (times + 1))


def test_many_brackets_side_by_side_are_not_deep() -> None:
    assert parse(b"[" + b"[]," * 1000 + b"{}]") == [[]] * 1000 + [{}]
    assert parse(b'["' + b"[" * 1000 + b'"]') == ["[" * 1000]


@pytest.mark.parametrize("number", [b"1" * 401, b"-" + b"9" * 2_000_000, b"0." + b"1" * 500])
def test_huge_numbers_are_refused_without_converting_them(number: bytes) -> None:
    begun = time.process_time()
    with pytest.raises(ProtocolError, match="a number of"):
        parse(b"{x:" + number + b"}")
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    "data",
    [
        b"{a:[" + b"1," * 200_000 + b"]}",
        b"['" + b"\\n" * 500_000 + b"']",
        b"{" + b" " * 1_000_000 + b"a:1}",
        b"{a:'" + b"x" * 1_000_000,
        b"{" + b",".join(b"%d:%d" % (n, n) for n in range(50_000)) + b"}",
    ],
)
def test_time_grows_with_the_length_only(data: bytes) -> None:
    begun = time.process_time()
    with contextlib.suppress(ProtocolError):
        parse(data)
    assert time.process_time() - begun < 5


class Colour(IntEnum):
    """An enum of the tests."""

    RED = 0


def test_writing_is_compact_sorted_and_without_nulls() -> None:
    tree = {"b": [1, None, "a/b", 2.5], "a": None, "c": {1: Colour.RED, 0: Perm(6)}, "d": (True,)}
    assert encode(tree) == b'{"b":[1,null,"a/b",2.5],"c":{"0":6,"1":"RED"},"d":[true]}'


def test_writing_objects_as_keys() -> None:
    tree = {"t": ObjectKeyed(((QUEUE, {"x": 1}), ({"a": "中"}, None), ({}, ObjectKeyed(()))))}
    assert encode(tree) == b'{"t":{{"brokerName":"b","queueId":0,"topic":"t"}:{"x":1},{}:{}}}'


def test_what_has_no_form_is_refused() -> None:
    for value in ("\ud800", {"a": object()}, ObjectKeyed((({}, "\udfff"),))):
        with pytest.raises(InvalidValue, match="cannot hold"):
            encode(value)
    deep: list[object] = []
    for _ in range(JSON_DEPTH_MAX + 1):
        deep = [deep]
    with pytest.raises(InvalidValue, match="levels"):
        encode(deep)
