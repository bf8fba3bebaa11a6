from __future__ import annotations

from gantrymq.wire.codes import SPOKEN_VERSION, LanguageCode, RequestCode, ResponseCode
from gantrymq.wire.command import BINARY_HEADER, JSON_HEADER, Command


def test_request() -> None:
    command = Command.request(RequestCode.GET_MIN_OFFSET, 7, {"topic": "T"}, b"x", oneway=True)
    assert not command.is_response
    assert command.is_oneway
    assert command.language is LanguageCode.PYTHON
    assert (command.version, command.serialize_type) == (SPOKEN_VERSION, JSON_HEADER)
    assert (command.fields, command.body) == ({"topic": "T"}, b"x")


def test_response_repeats_opaque_and_serialization() -> None:
    request = Command.request(RequestCode.HEART_BEAT, 9, serialize_type=BINARY_HEADER)
    response = request.response(ResponseCode.SYSTEM_BUSY, remark="later", version=513)
    assert response.is_response
    assert not response.is_oneway
    assert (response.opaque, response.serialize_type, response.version) == (9, BINARY_HEADER, 513)
    assert (response.code, response.remark, response.fields) == (2, "later", {})
    assert request.response().code == ResponseCode.SUCCESS


def test_the_command_does_not_share_the_callers_dict() -> None:
    fields = {"a": "1"}
    command = Command.request(10, 1, fields)
    fields["a"] = "2"
    assert command.fields == {"a": "1"}


def test_with_fields_forgets_the_wire_form() -> None:
    command = Command(code=1, opaque=2, fields={"a": "2"}, wire_pairs=(("a", "1"), ("a", "2")))
    changed = command.with_fields({"b": "3"})
    assert (changed.fields, changed.wire_pairs) == ({"b": "3"}, None)
    assert command.wire_pairs is not None
