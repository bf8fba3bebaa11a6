"""The four hot requests, from either header codec, and everything that is not one of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.kernel.values import Frame, PullRequest, SendRequest
from support.samples import (
    LONG_NAMES,
    binary_header,
    binary_request,
    frame,
    json_request,
    pull_fields,
    send_fields,
    whole,
)

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel

SEND = SendRequest(
    310, 399, 7, False, 0, "group", "TopicTest", "TBW102", 4, 0, 0, 1700000000000, 0,
    b"KEYS\x01k1\x02WAIT\x01true\x02TAGS\x01TagA", 0, False, 0, False, None, False, 0, 0,
)  # fmt: skip
PULL = PullRequest(
    399, 7, False, 0, "group", "TopicTest", 1, 12, 32, 6, 11, 15000, "*", 5, "TAG", None, None,
    False,
)  # fmt: skip


def decode(kernel: Kernel, raw: bytes) -> SendRequest | PullRequest | None:
    return kernel.decode_request(raw, whole(raw))


def decode_send(kernel: Kernel, raw: bytes) -> SendRequest:
    request = decode(kernel, raw)
    assert isinstance(request, SendRequest)
    return request


def header(text: str) -> bytes:
    return frame(text.encode("utf-8", "surrogatepass"))


def with_ext(ext: str) -> bytes:
    return header(f'{{"code":310,"opaque":7,"version":399,"extFields":{{{ext}}}}}')


EXT = json.dumps(send_fields())[1:-1]


class TestGoodRequests:
    """What the clients send."""

    @pytest.mark.parametrize("code", [310, 320])
    def test_a_json_send_with_short_names(self, kernel: Kernel, code: int) -> None:
        raw = json_request(code, send_fields(), b"body")
        assert decode(kernel, raw) == SEND._replace(
            code=code, body_start=len(raw) - 4, body_end=len(raw)
        )
        assert type(decode(kernel, raw)) is SendRequest

    def test_a_json_send_with_long_names(self, kernel: Kernel) -> None:
        fields = {LONG_NAMES[name]: value for name, value in send_fields().items()}
        raw = json_request(10, fields)
        assert decode(kernel, raw) == SEND._replace(code=10, body_start=len(raw), body_end=len(raw))

    def test_a_binary_send(self, kernel: Kernel) -> None:
        raw = binary_request(310, send_fields(), b"body")
        assert decode(kernel, raw) == SEND._replace(
            serialize_type=1, body_start=len(raw) - 4, body_end=len(raw)
        )

    @pytest.mark.parametrize("make", [json_request, binary_request])
    def test_a_pull(self, kernel: Kernel, make: type) -> None:
        request = decode(kernel, make(11, pull_fields()))
        assert request == PULL._replace(serialize_type=int(make is binary_request))
        assert type(request) is PullRequest

    def test_a_pull_with_every_field(self, kernel: Kernel) -> None:
        fields = pull_fields(maxMsgBytes="-5", bname="broker-a", expressionType="SQL92")
        assert decode(kernel, json_request(11, fields)) == PULL._replace(
            max_bytes=-5, broker_name="broker-a", expression_type="SQL92"
        )

    def test_a_send_with_the_least(self, kernel: Kernel) -> None:
        fields = send_fields(i=None, j=None, k=None, l=None, m=None)
        request = decode_send(kernel, json_request(310, fields))
        assert request.properties == b""
        assert request.reconsume_times == 0
        assert request.max_reconsume_times is None
        assert (request.unit_mode, request.batch, request.broker_name) == (False, False, None)

    def test_a_pull_with_the_least(self, kernel: Kernel) -> None:
        fields = pull_fields(subscription=None, expressionType=None)
        assert decode(kernel, json_request(11, fields)) == PULL._replace(
            subscription=None, expression_type=None
        )

    def test_oneway(self, kernel: Kernel) -> None:
        assert decode_send(kernel, json_request(310, send_fields(), flag=2)).oneway is True
        assert decode_send(kernel, binary_request(310, send_fields(), flag=2)).oneway is True

    def test_raw_numbers_and_booleans_count_as_their_text(self, kernel: Kernel) -> None:
        fields = send_fields(a=12, e=3, f=-0, g=1700000000000, m=True, k=False, n=True)
        request = decode_send(kernel, json_request(310, fields))
        assert (request.producer_group, request.queue_id, request.batch) == ("12", 3, True)
        assert (request.broker_name, request.unit_mode) == ("true", False)

    def test_minus_zero_is_zero(self, kernel: Kernel) -> None:
        request = decode_send(kernel, with_ext(EXT + ',"e":-0,"a":-0'))
        assert (request.queue_id, request.producer_group) == (0, "0")

    @pytest.mark.parametrize("text", ["true", "TRUE", "tRuE"])
    def test_true_in_any_case(self, kernel: Kernel, text: str) -> None:
        assert decode_send(kernel, json_request(310, send_fields(m=text))).batch is True

    @pytest.mark.parametrize("text", ["1", "yes", "", "true ", "t", "truetrue", "\u0130rue"])
    def test_all_else_is_false(self, kernel: Kernel, text: str) -> None:
        assert decode_send(kernel, json_request(310, send_fields(m=text))).batch is False

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("+5", 5),
            ("-7", -7),
            ("007", 7),
            ("0" * 5000 + "9", 9),
            ("-0", 0),
            ("2147483647", 2**31 - 1),
            ("-2147483648", -(2**31)),
        ],
    )
    def test_numbers_as_java_reads_them(self, kernel: Kernel, text: str, value: int) -> None:
        assert decode_send(kernel, json_request(310, send_fields(h=text))).flag == value

    def test_longs_have_64_bits(self, kernel: Kernel) -> None:
        for value in (2**63 - 1, -(2**63)):
            request = decode_send(kernel, json_request(310, send_fields(g=str(value))))
            assert request.born_timestamp == value

    def test_text_may_be_empty(self, kernel: Kernel) -> None:
        request = decode_send(kernel, json_request(310, send_fields(a="", b="", c="", i="", n="")))
        assert (request.producer_group, request.topic, request.broker_name) == ("", "", "")

    @pytest.mark.parametrize("text", ["\u00e9\u4e2d\U0001f600", '\\"/\b\f\n\r\t', "\x00\x01\x7f"])
    @pytest.mark.parametrize("ascii_only", [True, False])
    def test_characters(self, kernel: Kernel, text: str, ascii_only: bool) -> None:
        members = json.dumps(send_fields(b=text, i=text), ensure_ascii=ascii_only)[1:-1]
        request = decode_send(kernel, with_ext(members))
        assert (request.topic, request.properties) == (text, text.encode())

    def test_an_escaped_slash_and_upper_case_escapes(self, kernel: Kernel) -> None:
        request = decode_send(kernel, with_ext(EXT + r',"b":"\/\u00E9\uD83D\uDE00"'))
        assert request.topic == "/\u00e9\U0001f600"

    def test_blanks_anywhere_between(self, kernel: Kernel) -> None:
        text = json.dumps({"code": 310, "opaque": 7, "extFields": send_fields()}, indent=" \t")
        request = decode_send(kernel, header(f" \r\n\t{text}\n "))
        assert (request.topic, request.version) == ("TopicTest", 0)

    def test_the_code_may_come_last(self, kernel: Kernel) -> None:
        raw = header(f'{{"extFields":{{{EXT}}},"opaque":7,"remark":null,"code":310}}')
        assert decode_send(kernel, raw).topic == "TopicTest"

    def test_extra_fields_are_noticed(self, kernel: Kernel) -> None:
        assert decode_send(kernel, json_request(310, send_fields(Signature="x"))).extra_fields
        assert decode_send(kernel, binary_request(310, send_fields(Signature="x"))).extra_fields
        assert decode_send(kernel, json_request(310, send_fields(topic="x"))).extra_fields
        assert not decode_send(kernel, json_request(310, send_fields(n="b"))).extra_fields
        pull = decode(kernel, json_request(11, pull_fields(liteTopic="x")))
        assert pull is not None
        assert pull.extra_fields


class TestRepeatsAndNulls:
    """The last of a name wins; null is as if it were not there."""

    def test_the_last_wins_at_both_levels(self, kernel: Kernel) -> None:
        raw = header(
            f'{{"code":11,"opaque":1,"extFields":{{"b":"lost"}},"opaque":8,"code":310,"extFields":{{{EXT},"b":"new"}}}}'
        )
        request = decode_send(kernel, raw)
        assert (request.opaque, request.topic) == (8, "new")

    def test_the_last_wins_in_a_binary_header(self, kernel: Kernel) -> None:
        pairs = [(k.encode(), str(v).encode()) for k, v in send_fields().items()]
        raw = frame(binary_header(310, [(b"b", b"old"), *pairs, (b"b", b"new")]), b"", 1)
        assert decode_send(kernel, raw).topic == "new"

    def test_a_null_field_in_json_is_unusual(self, kernel: Kernel) -> None:
        assert decode(kernel, with_ext(EXT + ',"l":null')) is None
        assert decode(kernel, with_ext('"b":null,' + EXT)) is None
        assert decode(kernel, with_ext(EXT + ',"zz":null')) is None

    def test_an_empty_value_of_a_binary_header_is_null(self, kernel: Kernel) -> None:
        pairs = [(k.encode(), str(v).encode()) for k, v in send_fields().items()]
        raw = frame(binary_header(310, [*pairs, (b"l", b"")]), b"", 1)
        assert decode_send(kernel, raw).max_reconsume_times is None
        assert decode(kernel, frame(binary_header(310, [*pairs, (b"b", b"")]), b"", 1)) is None
        again = frame(binary_header(310, [(b"b", b""), *pairs]), b"", 1)
        assert decode_send(kernel, again).topic == "TopicTest"

    def test_an_empty_value_of_an_unknown_field_is_unusual(self, kernel: Kernel) -> None:
        pairs = [(k.encode(), str(v).encode()) for k, v in send_fields().items()]
        assert decode(kernel, frame(binary_header(310, [*pairs, (b"zz", b"")]), b"", 1)) is None

    def test_null_numbers_of_the_header_are_absent(self, kernel: Kernel) -> None:
        raw = header(f'{{"code":310,"opaque":7,"version":null,"flag":null,"extFields":{{{EXT}}}}}')
        assert decode_send(kernel, raw).version == 0
        assert decode(kernel, header(f'{{"code":310,"opaque":null,"extFields":{{{EXT}}}}}')) is None

    def test_extfields_may_be_null_before_but_not_after(self, kernel: Kernel) -> None:
        good = header(f'{{"code":310,"opaque":7,"extFields":null,"extFields":{{{EXT}}}}}')
        bad = header(f'{{"code":310,"opaque":7,"extFields":{{{EXT}}},"extFields":null}}')
        assert decode_send(kernel, good).topic == "TopicTest"
        assert decode(kernel, bad) is None


NOT_HOT = {
    "response": json_request(310, send_fields(), flag=1),
    "oneway response": json_request(310, send_fields(), flag=3),
    "binary response": binary_request(310, send_fields(), flag=1),
    "other code": json_request(36, send_fields()),
    "lite pull": json_request(361, pull_fields()),
    "long names for a short code": json_request(
        310, {LONG_NAMES[k]: v for k, v in send_fields().items()}
    ),
    "no ext": header('{"code":310,"opaque":7}'),
    "ext is text": header('{"code":310,"opaque":7,"extFields":"x"}'),
    "ext is a list": header('{"code":310,"opaque":7,"extFields":[]}'),
    "ext was a number": header(f'{{"code":310,"opaque":7,"extFields":5,"extFields":{{{EXT}}}}}'),
    "no code": header(f'{{"opaque":7,"extFields":{{{EXT}}}}}'),
    "code in quotes": header(f'{{"code":"310","opaque":7,"extFields":{{{EXT}}}}}'),
    "code was in quotes": header(f'{{"code":"310","code":310,"opaque":7,"extFields":{{{EXT}}}}}'),
    "no opaque": header(f'{{"code":310,"extFields":{{{EXT}}}}}'),
    "opaque over 32 bits": header(f'{{"code":310,"opaque":2147483648,"extFields":{{{EXT}}}}}'),
    "version in quotes": header(f'{{"code":310,"opaque":7,"version":"1","extFields":{{{EXT}}}}}'),
    "flag is true": header(f'{{"code":310,"opaque":7,"flag":true,"extFields":{{{EXT}}}}}'),
    "float": with_ext(EXT + ',"zz":1.0'),
    "exponent": with_ext(EXT + ',"zz":1e2'),
    "over 64 bits": with_ext(EXT + ',"zz":9223372036854775808'),
    "under 64 bits": with_ext(EXT + ',"zz":-9223372036854775809'),
    "leading zero": with_ext(EXT + ',"zz":01'),
    "plus": with_ext(EXT + ',"zz":+1'),
    "NaN": with_ext(EXT + ',"zz":NaN'),
    "Infinity": with_ext(EXT + ',"zz":-Infinity'),
    "list in ext": with_ext(EXT + ',"zz":[1]'),
    "object in ext": with_ext(EXT + ',"zz":{}'),
    "hidden object in ext": with_ext(EXT + ',"zz":{},"zz":"1"'),
    "object within extFields": with_ext(EXT + ',"extFields":{}'),
    "list in the header": header(f'{{"code":310,"opaque":7,"x":[],"extFields":{{{EXT}}}}}'),
    "object in the header": header(f'{{"code":310,"opaque":7,"x":{{}},"extFields":{{{EXT}}}}}'),
    "endless nesting": header('{"code":310,"opaque":7,"x":' + "[" * 100_000),
    "lone high surrogate": with_ext(EXT + r',"zz":"\ud83d"'),
    "lone low surrogate": with_ext(EXT + r',"zz":"\ude00"'),
    "surrogates swapped": with_ext(EXT + r',"zz":"\ude00\ud83d"'),
    "surrogate in a key": with_ext(EXT + r',"\ud83d":"x"'),
    "surrogate in an unknown member": header(
        f'{{"code":310,"opaque":7,"x":"\\ud83d","extFields":{{{EXT}}}}}'
    ),
    "surrogate in an unknown name": header(
        f'{{"code":310,"opaque":7,"\\ud83d":1,"extFields":{{{EXT}}}}}'
    ),
    "UTF-8 surrogate": with_ext(EXT + ',"zz":"\ud83d"'),
    "bad UTF-8": frame(b'{"code":310,"opaque":7,"extFields":{' + EXT.encode() + b',"zz":"\xff"}}'),
    "control character": with_ext(EXT + ',"zz":"\n"'),
    "unknown escape": with_ext(EXT + r',"zz":"\x"'),
    "short escape": with_ext(EXT + r',"zz":"\u12"'),
    "signed escape": with_ext(EXT + r',"zz":"\u+123"'),
    "trailing comma": with_ext(EXT + ","),
    "text behind": header(f'{{"code":310,"opaque":7,"extFields":{{{EXT}}}}}x'),
    "two headers": header(f'{{"code":310,"opaque":7,"extFields":{{{EXT}}}}}' * 2),
    "BOM": header(f'\ufeff{{"code":310,"opaque":7,"extFields":{{{EXT}}}}}'),
    "cut": frame(f'{{"code":310,"opaque":7,"extFields":{{{EXT}}}'.encode()),
    "empty": frame(b""),
    "a list": header("[]"),
    "text": header('"code"'),
    "single quotes": header("{'code':310}"),
    "UTF-16": frame(f'{{"code":310,"opaque":7,"extFields":{{{EXT}}}}}'.encode("utf-16-le")),
}


@pytest.mark.parametrize("raw", NOT_HOT.values(), ids=NOT_HOT.keys())
def test_anything_unusual_is_left_to_the_general_codec(kernel: Kernel, raw: bytes) -> None:
    assert decode(kernel, raw) is None


@pytest.mark.parametrize("name", "abcdefgh")
def test_a_send_needs_its_fields(kernel: Kernel, name: str) -> None:
    fields = send_fields(**{name: None})
    assert decode(kernel, json_request(310, fields)) is None
    assert decode(kernel, binary_request(310, fields)) is None
    long = {LONG_NAMES[key]: value for key, value in fields.items()}
    assert decode(kernel, json_request(10, long)) is None


@pytest.mark.parametrize(
    "name",
    ["consumerGroup", "topic", "queueId", "queueOffset", "maxMsgNums", "sysFlag", "commitOffset",
     "suspendTimeoutMillis", "subVersion"],
)  # fmt: skip
def test_a_pull_needs_its_fields(kernel: Kernel, name: str) -> None:
    assert decode(kernel, json_request(11, pull_fields(**{name: None}))) is None


@pytest.mark.parametrize("name", "defghjl")
@pytest.mark.parametrize(
    "text", ["", "+", "-", "1 ", " 1", "1_0", "\u0661", "0x1", "1.0", "--1", str(2**63), "1" * 30]
)
def test_a_number_that_java_cannot_read(kernel: Kernel, name: str, text: str) -> None:
    assert decode(kernel, json_request(310, send_fields(**{name: text}))) is None


def test_an_int_field_has_32_bits(kernel: Kernel) -> None:
    assert decode(kernel, json_request(310, send_fields(e=str(2**31)))) is None
    assert decode(kernel, json_request(11, pull_fields(maxMsgBytes=str(2**31)))) is None


PAIRS = [(key.encode(), str(value).encode()) for key, value in send_fields().items()]
GOOD_BINARY = binary_header(310, PAIRS)
EXT_AT = 17
BAD_BINARY = {
    "empty": b"",
    "head only": GOOD_BINARY[:13],
    "no ext length": GOOD_BINARY[:17],
    "cut": GOOD_BINARY[:-1],
    "longer": GOOD_BINARY + b"\0",
    "remark length negative": GOOD_BINARY[:13] + b"\xff\xff\xff\xff" + GOOD_BINARY[17:],
    "remark length too large": GOOD_BINARY[:13] + b"\x7f\xff\xff\xff" + GOOD_BINARY[17:],
    "ext length negative": GOOD_BINARY[:17] + b"\xff\xff\xff\xff" + GOOD_BINARY[21:],
    "ext length too small": GOOD_BINARY[:17] + b"\0\0\0\1" + GOOD_BINARY[21:],
    "empty key": binary_header(310, [*PAIRS, (b"", b"x")]),
    "key length negative": binary_header(310, PAIRS)[:21] + b"\xff\xff" + GOOD_BINARY[23:],
    "value length negative": GOOD_BINARY[:24] + b"\xff\xff\xff\xff" + GOOD_BINARY[28:],
    "bad UTF-8 in a key": binary_header(310, [*PAIRS, (b"\xff", b"x")]),
    "bad UTF-8 in a value": binary_header(310, [*PAIRS, (b"zz", b"\xc3")]),
    "bad UTF-8 in the remark": binary_header(310, PAIRS, remark=b"\xff"),
    "code of 16 bits": binary_header(3442, PAIRS),
}


@pytest.mark.parametrize("raw", BAD_BINARY.values(), ids=BAD_BINARY.keys())
def test_a_malformed_binary_header(kernel: Kernel, raw: bytes) -> None:
    assert decode(kernel, frame(raw, b"", 1)) is None


def test_a_binary_header_may_have_a_remark(kernel: Kernel) -> None:
    raw = frame(binary_header(310, PAIRS, remark=b"hello", version=-1), b"", 1)
    assert decode_send(kernel, raw).version == -1


def test_a_frame_of_no_known_type(kernel: Kernel) -> None:
    raw = binary_request(310, send_fields())
    assert kernel.decode_request(raw, whole(raw)._replace(serialize_type=2)) is None


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (Frame(0, 9, 8, 10, 0), "start=9 end=8"),
        (Frame(0, 8, 9, 11, 0), "start=9 end=11"),
        (Frame(0, 8, 9, 8, 0), "start=9 end=8"),
        (Frame(0, -1, 9, 9, 0), "start=-1 end=9"),
        (Frame(0, 8, 11, 11, 0), "start=8 end=11"),
    ],
)
def test_a_frame_outside_its_buffer(kernel: Kernel, place: Frame, message: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        kernel.decode_request(b"0123456789", place)
    expected = f"range: {message} do not lie within a buffer of 10 bytes"
    assert str(caught.value) == expected
