from __future__ import annotations

import pickle

import pytest

from gantrymq.errors import GantryError
from gantrymq.wire import response_errors
from gantrymq.wire.codes import LanguageCode, RequestCode, ResponseCode, Version
from gantrymq.wire.response_errors import (
    NoPermission,
    PollingFull,
    ResponseError,
    UnknownResponse,
    error_for,
)

RETRIABLE = {1, 2, 14, 16, 17, 204, 205, 1500}
"""Where Apache's producers try another broker."""


def error_classes() -> list[type[ResponseError]]:
    return [
        found
        for found in vars(response_errors).values()
        if isinstance(found, type)
        and issubclass(found, ResponseError)
        and found not in {ResponseError, UnknownResponse}
    ]


def test_every_code_but_success_has_one_class() -> None:
    codes = [found.code for found in error_classes()]
    assert sorted(codes) == sorted(code for code in ResponseCode if code != ResponseCode.SUCCESS)


@pytest.mark.parametrize("code", [code for code in ResponseCode if code != ResponseCode.SUCCESS])
def test_error_for(code: ResponseCode) -> None:
    error = error_for(code, "why")
    assert isinstance(error, GantryError)
    assert (error.code, error.remark) == (code, "why")
    assert str(error) == f"{code.name} ({code.value}): why"
    assert error.retriable == (code in RETRIABLE)
    assert not (error.retriable and error.fatal)
    assert type(error).__doc__


def test_unknown_code_keeps_its_number() -> None:
    error = error_for(777)
    assert isinstance(error, UnknownResponse)
    assert (error.code, error.remark, str(error)) == (777, "", "response code 777")
    assert not error.retriable


def test_success_is_no_error() -> None:
    with pytest.raises(ValueError, match="SUCCESS"):
        error_for(0)


@pytest.mark.parametrize("error", [NoPermission("no"), UnknownResponse(777, "hm")])
def test_errors_cross_process_borders(error: ResponseError) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - of our own making
    assert type(copy) is type(error)
    assert (copy.code, copy.remark) == (error.code, error.remark)


def test_a_code_has_no_second_class() -> None:
    with pytest.raises(TypeError, match="SystemBusy"):
        type("Again", (ResponseError,), {}, code=ResponseCode.SYSTEM_BUSY)


def test_both_meanings_of_a_code_share_a_class() -> None:
    assert ResponseCode["UPDATE_AND_CREATE_ACL_CONFIG_FAILED"] is ResponseCode["POLLING_FULL"]
    assert "4.9" in (PollingFull.__doc__ or "")
    assert "5.x" in (PollingFull.__doc__ or "")


def test_numbers_that_must_not_change() -> None:
    assert len(RequestCode) == 174
    assert len(ResponseCode) == 68
    assert RequestCode(200050).name == "POP_MESSAGE"
    assert [language.value for language in LanguageCode] == list(range(14))
    assert Version.V5_5_0 - Version.V5_4_0 == 20
