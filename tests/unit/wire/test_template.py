"""A frame that is sent many times: only its numbers change, and answers are found quickly."""

from __future__ import annotations

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.wire.batch import BatchMessage, decode_batch, encode_batch
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import BINARY_HEADER, JSON_HEADER, Command
from gantrymq.wire.frame import FrameParser, encode_frame
from gantrymq.wire.template import UNIQUE_KEY, FrameTemplate, quick_answers


def request(body: bytes = b"body", serialize_type: int = BINARY_HEADER) -> Command:
    fields = {"b": "Topic", "i": f"UNIQ_KEY\x01{UNIQUE_KEY}\x02WAIT\x01true"}
    return Command.request(
        RequestCode.SEND_MESSAGE_V2, 7, fields, body, serialize_type=serialize_type
    )


def test_only_the_numbers_change() -> None:
    template = FrameTemplate(request())
    first, second = template.numbered(0, 0), template.numbered(63, 0xABC)
    (one,), (two,) = FrameParser().feed(first), FrameParser().feed(second)
    assert (one.opaque, two.opaque) == (0, 63)
    assert two.fields["i"] == f"UNIQ_KEY\x01{UNIQUE_KEY[:20]}000000000ABC\x02WAIT\x01true"
    assert one == Command.request(
        RequestCode.SEND_MESSAGE_V2, 0, one.fields, b"body", serialize_type=BINARY_HEADER
    )
    assert len(first) == len(second)


def test_each_message_of_a_batch_has_its_own_key() -> None:
    messages = [BatchMessage(0, b"x", f"UNIQ_KEY\x01{UNIQUE_KEY}".encode())] * 3
    template = FrameTemplate(
        Command.request(
            RequestCode.SEND_BATCH_MESSAGE,
            0,
            {},
            encode_batch(messages),
            serialize_type=BINARY_HEADER,
        )
    )
    assert template.keys == 3
    (command,) = FrameParser().feed(template.numbered(1, 100))
    keys = [message.properties[-12:] for message in decode_batch(command.body)]
    assert keys == [b"%012X" % number for number in (100, 101, 102)]


@pytest.mark.parametrize("serialize_type", [BINARY_HEADER, JSON_HEADER])
def test_answers_are_found_however_they_arrive(serialize_type: int) -> None:
    fields = {"msgId": "7F", "queueId": "0", "x": '"opaque":9'}
    frames = [
        encode_frame(
            Command.request(1, opaque, serialize_type=serialize_type).response(
                code, fields, remark="why"
            )
        )
        for opaque, code in ((5, ResponseCode.SUCCESS), (6, ResponseCode.SYSTEM_BUSY))
    ]
    whole = b"".join(frames)
    found, behind = quick_answers(whole)
    assert [(one.opaque, one.code) for one in found] == [(5, 0), (6, ResponseCode.SYSTEM_BUSY)]
    assert [whole[one.start : one.end] for one in found] == frames
    assert behind == len(whole)
    for cut in range(len(whole)):
        found, behind = quick_answers(whole[:cut])
        assert len(found) == (0 if cut < len(frames[0]) else 1)
        assert behind == (len(frames[0]) if found else 0)


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(InvalidValue, match="binary"):
        FrameTemplate(request(serialize_type=JSON_HEADER))
    header = b'{"flag":1,"language":"JAVA"}'
    frame = (4 + len(header)).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header
    with pytest.raises(InvalidValue, match="without code or opaque"):
        quick_answers(frame)
