from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import ProtocolError
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.headers.client import UnregisterClientRequest
from gantrymq.wire.headers.envelope import COMMON_FIELDS, NoFields, RpcFields, SignatureFields
from gantrymq.wire.headers.query import QueryMessageRequest
from gantrymq.wire.headers.send import SendMessageRequest, SendMessageV2Request
from gantrymq.wire.registry import HEADERS

if TYPE_CHECKING:
    from gantrymq.wire.fields import Header

NOT_HANDLED = {
    13, 22, 23, 27, 47, *range(209, 215), 301, 302, *range(1014, 1019),
    *range(200070, 200080),
}  # fmt: skip
"""Defined by the protocol, handled by no Java broker, or with fields that are not known here."""


def every_schema() -> set[type[Header]]:
    pairs = [(schemas.request, schemas.response) for schemas in HEADERS.values()]
    return {schema for pair in pairs for schema in pair if schema is not None}


def test_every_code_has_an_entry() -> None:
    assert set(HEADERS) == set(RequestCode)
    assert {code for code, schemas in HEADERS.items() if schemas.request is None} == NOT_HANDLED
    assert all((found.request is None) == (found.response is None) for found in HEADERS.values())


@pytest.mark.parametrize("schema", sorted(every_schema(), key=str))
def test_every_schema_round_trips(schema: type[Header]) -> None:
    """Numbers are read wherever a number is wanted, and text wherever text is."""
    names = schema.wire_names()
    assert len(set(names)) == len(names)
    fields = dict.fromkeys(names, "1")
    header = schema.decode(fields)
    booleans = {name for name, text in header.encode().items() if text == "false"}
    assert header.encode() == {**fields, **dict.fromkeys(booleans, "false")}
    assert schema.__doc__


def test_what_is_full_on() -> None:
    assert HEADERS[RequestCode.SEND_MESSAGE_V2].full_on == {0, 10, 11, 12}
    assert HEADERS[RequestCode.PULL_MESSAGE].full_on == {0, 19, 20, 21}
    assert HEADERS[RequestCode.QUERY_MESSAGE].full_on == {0, 22}
    assert HEADERS[RequestCode.GET_MAX_OFFSET].full_on == {ResponseCode.SUCCESS}


def test_both_forms_of_a_send() -> None:
    short = dict(
        zip("abcdefghijklmn", ["pg", "T", "TBW102", "4", "1", "0", "5", "0"], strict=False)
    )
    short |= {"i": "p", "j": "2", "k": "false", "l": "16", "m": "true", "n": "broker-a"}
    header = SendMessageV2Request.decode(short)
    assert header.encode() == short
    long = header.long_form()
    assert list(long.encode().values()) == list(short.values())
    assert SendMessageRequest.decode(long.encode()) == long
    assert (long.topic, long.queue_id, long.batch, long.broker_name) == ("T", 1, True, "broker-a")


def test_names_that_are_not_camel_case() -> None:
    assert UnregisterClientRequest.wire_names()[0] == "clientID"
    assert "_UNIQUE_KEY_QUERY" in QueryMessageRequest.wire_names()
    assert NoFields.wire_names() == ()


def test_common_fields() -> None:
    assert {"AccessKey", "Signature", "SecurityToken", "OnsChannel"} <= COMMON_FIELDS
    assert {"bname", "ns", "nsd", "oway", "lo", "ReqT", "Owner", "__ZONE_NAME"} <= COMMON_FIELDS
    assert SignatureFields.decode({"AccessKey": "me"}).access_key == "me"
    assert RpcFields.decode({"nsd": "true", "ReqT": "34"}) == RpcFields(
        namespaced=True, request_type=34
    )


def test_a_missing_field_is_named() -> None:
    with pytest.raises(ProtocolError) as caught:
        SendMessageV2Request.decode({"a": "pg"})
    assert caught.value.field == "header.extFields.b"
